"""What rides in an open place: when it is believed, and when it is left alone."""

from __future__ import annotations

import pytest
from tests.dialects.test_conversion import check_there_and_back

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


@pytest.mark.parametrize("to", ["mcp", "mcpx/0.1"])
@pytest.mark.parametrize(
    "result",
    [
        {"content": []},
        {"content": [{"type": "text", "text": "x"}], "vendor": None},
        {"content": [], "structuredContent": {"a": 1}},
    ],
    ids=repr,
)
def test_what_only_looks_like_a_tools_result_comes_back_whole(to: str, result: object) -> None:
    """A strict JSON-RPC result of which nothing says what it answers is no tool's on the way."""
    value = {"jsonrpc": "2.0", "id": "7", "result": result}
    check_there_and_back("jsonrpc/2.0", "response", to, value)


def test_what_only_looks_like_tool_io_comes_back_whole() -> None:
    """An MCP result with members ``tool`` and ``output`` is not read as tool I/O on the way."""
    result = {"tool": "t", "input": {}, "output": {"content": "x"}}
    value = {"jsonrpc": "2.0", "id": "j", "result": result}
    check_there_and_back("mcp", "response", "jsonrpc/2.0", value)


@pytest.mark.parametrize("to", ["tiered/1.0", "provenance/0.1", "tool/1.0"])
@pytest.mark.parametrize(
    "result",
    [
        {"resultType": "task", "taskId": "9", "status": "working"},
        {"task": {"taskId": "9"}, "_meta": {"a": None}},
    ],
    ids=repr,
)
def test_a_task_comes_back_but_for_what_was_listed(to: str, result: object) -> None:
    """Where a dialect cannot say that work goes on, the task is listed with all of its members."""
    repeated = {"method": "tools/call", "params": {"name": "t"}}
    value = {"jsonrpc": "2.0", "id": "7", "result": result, **repeated}
    check_there_and_back("mcp", "response", to, value)
