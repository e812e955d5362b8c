"""What is said of common mistakes, in words that help."""

from __future__ import annotations

import pytest

import mcp_envelope as me

BOTH = b'{"jsonrpc":"2.0","id":"x","result":{},"error":{"code":1,"message":"m"}}'


@pytest.mark.parametrize("dialect", ["jsonrpc/2.0", "mcp"])
def test_a_response_with_result_and_error(dialect: str) -> None:
    """One problem, which says that it is the one or the other."""
    (problem,) = me.validate(BOTH, dialect)
    assert "a response holds a result or an error, never both" in problem.hint


def test_a_batch_is_refused_as_such() -> None:
    """Whoever sends several messages at once reads that these go one by one."""
    with pytest.raises(me.EnvelopeError) as refused:
        me.decode(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]')
    assert refused.value.code == "INVALID_ENVELOPE"
    assert "send each message by itself" in refused.value.hint
