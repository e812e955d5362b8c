"""Wrapping: number text, room for the envelope, failures."""

from __future__ import annotations

import pytest

import mcp_envelope as me
from mcp_envelope.dialects.wrap import wrap_failure

ENVELOPE = b'{"schema_version":"mcp.envelope.v0.1","result":[1e2, -0]}'


def nested(levels: int) -> bytes:
    """Arrays within arrays."""
    return b"[" * levels + b"]" * levels


def test_a_document_keeps_its_number_text() -> None:
    """A document is wrapped with its bytes, as they are; an envelope keeps them as well."""
    wrapped = me.wrap(me.parse(b"[1e2, -0]"))
    assert me.dump(wrapped) == ENVELOPE
    assert me.dump(me.wrap(me.parse(ENVELOPE))) == ENVELOPE
    assert me.wrap(me.wrap(b"[1e2, -0]")) == ENVELOPE


@pytest.mark.parametrize("given", [nested, lambda levels: me.parse(nested(levels)).value])
def test_what_is_wrapped_can_be_read_again(given: object) -> None:
    """A value so deep that there is no room around it is refused, and no other."""
    assert callable(given)
    wrapped = me.wrap(given(199))
    me.decode(wrapped if isinstance(wrapped, bytes) else me.dump(wrapped))
    with pytest.raises(me.EnvelopeError) as refused:
        me.wrap(given(200))
    assert refused.value.problems[0].rule == "document/too-deep"


def test_limits_hold_for_the_envelope_too() -> None:
    """Sizes and lowered depths are those of the result of wrapping."""
    limits = me.Limits(result=100, depth=3)
    assert len(me.wrap(b'"' + b"x" * 50 + b'"', limits=limits)) == 100
    with pytest.raises(me.EnvelopeError) as refused:
        me.wrap(b'"' + b"x" * 51 + b'"', limits=limits)
    assert refused.value.code == "TOO_LARGE"
    assert me.wrap(b"[[1]]", limits=limits)
    with pytest.raises(me.EnvelopeError):
        me.wrap(b"[[[1]]]", limits=limits)


def test_a_failure_is_always_a_valid_envelope() -> None:
    """Codes and messages are cut; partial output that is an envelope gets one error more."""
    partial = me.parse(ENVELOPE[:-1] + b',"errors":[{"code":"A","message":"a"}]}')
    for failure in (
        wrap_failure("m" * 3_000, code="c" * 300, exit_code=2),
        wrap_failure("", partial=partial),
        wrap_failure("m", partial=me.parse(ENVELOPE)),
    ):
        assert me.validate(failure) == []
    merged = me.parse(wrap_failure("m", code="B", partial=partial))
    assert merged["result"].raw == b"[1e2, -0]"
    assert [each["code"].value for each in merged["errors"].elements()] == ["A", "B"]
