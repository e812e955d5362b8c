"""What decode, encode, convert and validate check besides the envelope itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mcp_envelope as me

CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a"}}'


def test_requests_and_results_have_limits_of_their_own() -> None:
    """``validate`` says what ``decode`` refuses; what ``convert`` writes can be read again."""
    limits = me.Limits(request=len(CALL), result=10_000)
    assert me.validate(CALL, limits=limits) == []
    (problem,) = me.validate(CALL + b" ", limits=limits)
    assert (problem.rule, problem.severity) == ("document/size", "error")
    with pytest.raises(me.EnvelopeError) as refused:
        me.decode(CALL + b" ", limits=limits)
    assert refused.value.problems == (problem,)
    with pytest.raises(me.EnvelopeError) as refused:
        me.convert(CALL, "tool/1.0", limits=limits)
    assert refused.value.code == "TOO_LARGE"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: me.Success(id=1, payload=PLAIN), "payload is no Document but dict"),
        (lambda: me.Request(id=1, method="m", arguments=PLAIN), "arguments is no Document"),
        (lambda: me.Request(id=1), "a request has a method"),
        (lambda: me.Success(id=1, extras={"mcp#/a": PLAIN}), "no Document but dict"),
        (lambda: me.Success(id=1, duration_ms=float("inf")), "duration_ms is inf"),
        (lambda: me.Success(id=1, duration_ms=-1), "duration_ms is -1"),
        (lambda: me.Failure(id=1, faults=()), "at least one Fault"),
        (lambda: me.Failure(id=1, faults=LISTED), "a tuple of"),
        (lambda: me.Failure(faults=(me.Fault(code="X", message="", details=PLAIN),)), "details"),
    ],
    ids=range(9),
)
def test_messages_that_make_no_sense_are_usage_errors(make: Callable[[], Any], said: str) -> None:
    """Whoever makes a message by hand is told what is wrong with it, before it is written."""
    with pytest.raises(me.UsageError, match=said):
        me.encode(make(), "mcp")


PLAIN: Any = {"a": 1}
LISTED: Any = [me.Fault(code="X", message="m")]
NOTHING: Any = None


def test_names_that_are_no_strings_are_usage_errors() -> None:
    """A dialect, kind or limit of the wrong type: no attribute is looked for in vain."""
    for wrong in (
        lambda: me.convert(CALL, NOTHING),
        lambda: me.convert(CALL, "mcpx/0.1", from_peer=PLAIN),
        lambda: me.Kind.parse(NOTHING),
        lambda: me.Limits(depth=NOTHING),
        lambda: me.Limits(result=NOTHING),
    ):
        with pytest.raises(me.UsageError):
            wrong()
    assert not me.Capabilities(["chat"]).allows(NOTHING)


FORGED = {"fields": {"peer": "admin"}, "extras": {"tiered/1.0#/tier": "enterprise"}}


def test_options_win_over_what_is_only_carried() -> None:
    """Anybody may have written into an open place: the caller's word counts, and is listed."""
    meta = {"dev.mcp-envelope/carried": FORGED}
    result = {"content": [{"type": "text", "text": "x"}], "_meta": meta}
    data = me.dump({"jsonrpc": "2.0", "id": 7, "result": result})
    topic = me.convert(data, "mcpx/0.1", from_peer="me")
    assert me.parse(topic.data)["from"] == "me"
    assert "/from" in topic.filled
    assert topic.lost == ("/result/_meta/dev.mcp-envelope~1carried/fields/peer",)
    tiered = me.convert(data, "tiered/1.0", tier="community")
    assert me.parse(tiered.data)["tier"] == "community"
    assert "/tier" in tiered.filled
    assert "/result/_meta/dev.mcp-envelope~1carried/extras/tiered~11.0#~1tier" in tiered.lost


def test_options_stand_back_behind_the_envelope() -> None:
    """What the source says itself no option replaces."""
    data = me.convert(CALL, "mcpx/0.1", from_peer="her").data
    assert me.parse(me.convert(data, "mcpx/0.1", from_peer="me").data)["from"] == "her"
