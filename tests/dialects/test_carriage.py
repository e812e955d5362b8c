"""What rides in an open place: when it is believed, and when it is left alone."""

from __future__ import annotations

import pytest

import mcp_envelope as me

TIERED_ERROR = {
    "tier": "pro",
    "tool_version": "3.2.8",
    "tool_id": "count",
    "request_id": "r",
    "capabilities": ["envelope-v1"],
    "duration_ms": 27.5,
    "upgrade_hints": [],
    "data": None,
}


@pytest.mark.parametrize("text", ["x" * 600, "first line\nsecond line"], ids=["long", "lines"])
def test_a_tiered_error_of_its_own_code_is_read_again_as_it_was(text: str) -> None:
    """A code that is not listed rides in the details, however the text of the error looks.

    Found by fuzzing: the carried code was doubted, since a text from elsewhere is shortened.
    """
    error = {"error": text, "error_code": "teapot", "error_details": None}
    message = me.decode(me.dump({**TIERED_ERROR, "error": error}))
    written = me.encode(message, "tiered/1.0")
    assert me.parse(written)["error"]["error"] == text
    assert me.decode(written) == message
