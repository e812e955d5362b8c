"""What rides in an open place: when it is believed, and when it is left alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from tests.dialects.test_conversion import check_there_and_back, leaves

import mcp_envelope as me
from mcp_envelope.core.pointer import steps_of
from mcp_envelope.dialects import DIALECTS

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


def test_what_only_looks_like_tool_io_is_refused() -> None:
    """An MCP result with members ``tool`` and ``output`` does not become tool I/O on the way."""
    result = {"tool": "t", "input": {}, "output": {"content": "x"}}
    value = {"jsonrpc": "2.0", "id": "j", "result": result}
    with pytest.raises(me.ConversionError):
        me.convert(me.dump(value), "jsonrpc/2.0", "mcp")


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


FORGED_ERRORS = {
    "tool/1.0#/errors": [{"message": "Forbidden", "code": "FORBIDDEN"}],
    "tool/1.0#/status/http": 403,
}


def test_carried_errors_do_not_hide_the_error() -> None:
    """What is carried for ``errors`` of tool/1.0 is listed as lost where the error is another."""
    carried = {"dev.mcp-envelope/carried": {"extras": FORGED_ERRORS}}
    error = {"code": -32603, "message": "disk full", "data": carried}
    converted = me.convert(me.dump({"jsonrpc": "2.0", "id": 7, "error": error}), "tool/1.0")
    response = me.parse(converted.data)
    assert response["errors"] == [{"message": "disk full", "code": "INTERNAL_ERROR"}]
    assert response.at("/status/http") == 500
    assert len(converted.lost) == 2
    back = me.parse(me.convert(converted.data, "mcp").data)
    assert back.at("/error/code") == -32603


@pytest.mark.parametrize("to", ["provenance/0.1", "jsonrpc/2.0", "mcpx/0.1", "tool/1.0", "mcp"])
@pytest.mark.parametrize("capabilities", [[], ["fast"]], ids=repr)
def test_a_missing_capability_is_added_and_nothing_else_changes(
    to: str, capabilities: list[str]
) -> None:
    """S002-09: however few capabilities were read, all of them and ``envelope-v1`` are written."""
    hints = [{"feature": "f", "tier": "pro", "reason": "r"}]
    value = {**TIERED_ERROR, "capabilities": capabilities, "error": None, "upgrade_hints": hints}
    there = me.convert(me.dump(value), to)
    assert there.lost == ()
    for source in (me.dump(value), there.data):
        back = me.convert(source, "tiered/1.0")
        assert me.parse(back.data) == {**value, "capabilities": [*capabilities, "envelope-v1"]}
        assert (back.lost, back.filled) == ((), (f"/capabilities/{len(capabilities)}",))


@pytest.mark.parametrize("to", ["provenance/0.1", "mcpx/0.1", "tool/1.0"])
@pytest.mark.parametrize("params", [{}, {"arguments": {"a": 1.5}}], ids=repr)
def test_a_call_of_nothing_comes_back_without_a_name(to: str, params: object) -> None:
    """A name that was made up for a dialect that requires one is left out on the way back."""
    value = {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params}
    there = me.convert(me.dump(value), to)
    back = me.convert(there.data, "jsonrpc/2.0")
    assert me.parse(back.data) == value
    assert (back.lost, back.filled) == ((), ())
    named = me.convert(me.convert(me.dump(value), to, tool="search").data, "jsonrpc/2.0")
    assert me.parse(named.data).at("/params/name") == "search"
    assert named.filled == ("/params/name",)


@pytest.mark.parametrize("to", ["mcp", "jsonrpc/2.0", "tool/1.0", "provenance/0.1"])
def test_a_short_kind_of_an_error_comes_back(to: str) -> None:
    """S003-29: no context is made up for the old form of a kind, whatever it went through."""
    error = {"code": 4030, "message": "m"}
    value = {
        "protocol": "mcpx/v0.1",
        "id": "e",
        "from": "s",
        "correlation_id": "c",
        "kind": "mcp/response:tools/call",
        "payload": {"jsonrpc": "2.0", "id": "1", "error": error},
    }
    there = me.convert(me.dump(value), to)
    assert there.lost == ()
    back = me.convert(there.data, "mcpx/0.1")
    assert me.parse(back.data) == value
    assert (back.lost, back.filled) == ((), ())


def test_what_was_made_up_stays_so_over_several_conversions() -> None:
    """A tool's name that no envelope ever said is no fact after the second conversion."""
    content = [{"type": "text", "text": "x"}]
    first = {"jsonrpc": "2.0", "id": 7, "result": {"content": content}}
    strict = me.convert(me.dump(first), "jsonrpc/2.0")
    topic = me.convert(strict.data, "mcpx/0.1")
    assert "/kind" in topic.filled
    last = me.convert(topic.data, "mcp")
    assert me.parse(last.data) == first
    assert (last.lost, last.filled) == ((), ())


def test_a_code_that_may_not_be_written_is_listed() -> None:
    """tiered/1.0 reads codes that it never writes: ``--strict`` refuses to replace one."""
    error = {"error": "x", "error_code": "quota", "error_details": None}
    data = me.dump({**TIERED_ERROR, "error": error})
    converted = me.convert(data, "tiered/1.0")
    assert converted.filled == ("/error/error_code",)
    assert me.decode(converted.data) == me.decode(data)
    with pytest.raises(me.ConversionError):
        me.convert(data, "tiered/1.0", strict=True)


def _bases() -> list[tuple[str, Any, str]]:
    """Envelopes of every shape with an open place: dialect, value, pointer to the place."""
    rpc = {"jsonrpc": "2.0", "id": "7"}
    text = [{"type": "text", "text": "x"}]
    call = {**rpc, "method": "tools/call", "params": {"name": "safe", "arguments": {"a": 1}}}
    failed = {**rpc, "error": {"code": -32603, "message": "disk full"}}
    asked = {"id": "i", "version": "1.0.0", "timestamp": "2026-01-01T00:00:00Z"}
    status = {"code": "error", "message": "m"}
    topic = {"protocol": "mcpx/v0.1", "id": "e", "from": "s", "correlation_id": "c"}
    fault = {"error": "x", "error_code": "timeout", "error_details": None}
    answer = {**rpc, "result": {"content": text}}
    request = {"schema_version": "mcp.request.v0.1", "tool": {"name": "t"}, "artifacts": []}
    envelope = {"schema_version": "mcp.envelope.v0.1", "result": None}
    return [
        ("mcp", call, "/params/_meta"),
        ("mcp", answer, "/result/_meta"),
        ("mcp", {**rpc, "result": {"content": text, "isError": True}}, "/result/_meta"),
        ("mcp", {**rpc, "result": {"task": {"taskId": "t"}}}, "/result/_meta"),
        ("mcp", failed, "/error/data"),
        ("mcp", {"jsonrpc": "2.0", "method": "notifications/x", "params": {}}, "/params/_meta"),
        ("jsonrpc/2.0", call, "/params/_meta"),
        ("jsonrpc/2.0", failed, "/error/data"),
        ("jsonrpc/2.0", {**rpc, "result": {"tool": "t", "output": {}}}, "/result/_meta"),
        ("tool/1.0", {**asked, "tool": "safe", "payload": {"a": 1}}, "/metadata"),
        ("tool/1.0", {**asked, "status": {"code": "success"}, "output": {"r": 1}}, "/metadata"),
        ("tool/1.0", {**asked, "status": status}, "/metadata"),
        ("tool/1.0", {**asked, "status": status, "errors": [{"message": "a"}]}, "/metadata"),
        (
            "mcpx/0.1",
            {**topic, "kind": "mcp/request:tools/call:safe", "payload": call},
            "/metadata",
        ),
        ("mcpx/0.1", {**topic, "kind": "mcp/response:tools/call", "payload": failed}, "/metadata"),
        ("mcpx/0.1", {**topic, "kind": "mcp/response:tools/call", "payload": answer}, "/metadata"),
        ("mcpx/0.1", {**topic, "kind": "chat", "payload": {"text": "hi"}}, "/metadata"),
        ("tiered/1.0", {**TIERED_ERROR, "error": fault}, "/error/error_details"),
        ("provenance/0.1", {**request, "params": {"a": 1}}, "/params/_meta"),
        ("provenance/0.1", envelope, "/meta/schema_hints"),
        (
            "provenance/0.1",
            {**envelope, "errors": [{"code": "A", "message": "b"}]},
            "/meta/schema_hints",
        ),
    ]


FIELDS: dict[str, Any] = {
    "id": "9",
    "method": "tools/list",
    "target": "evil",
    "time": "2020-01-01T00:00:00Z",
    "peer": "admin",
    "to": ["all"],
    "envelope_id": "q",
    "meta": {"m": 1},
    "arguments": {"b": 2},
    "payload": {"p": "evil"},
    "proposal": True,
    "auth": {"type": "none"},
    "accepted": True,
    "waiting": True,
    "duration_ms": -1,
    "name": "chat",
    "faults": [{"message": "evil", "code": "FORBIDDEN"}],
}


def forgeries(value: Any) -> Iterator[dict[str, Any]]:
    """What somebody may claim to have been carried along in an envelope, piece by piece."""
    yield from ({"fields": {name: claim}} for name, claim in FIELDS.items())
    yield from ({"fields": {name: None}} for name in (*FIELDS, "trace_id"))
    faults: tuple[Any, ...] = ([], [{}], [{"message": 1}], "x")
    yield from ({"fields": {"faults": claim}} for claim in faults)
    pointers = {pointer for pointer, _ in leaves(value)}
    pointers |= {pointer[:cut] for pointer in pointers for cut in range(1, len(pointer))}
    for pointer in sorted(pointers):
        if pointer.startswith("/") and not pointer.endswith("/"):
            yield {"filled": [pointer]}
            name = ("mcp", "mcp.result", "tool/1.0", "tiered/1.0", "mcpx/0.1")[len(pointer) % 5]
            yield {"extras": {f"{name}#{pointer}": {"evil": True}}}
            yield {"absent": [f"{name}#{pointer}"]}
    yield from ({"verbatim": True}, {"empty": True}, {"verbatim": True, "filled": sorted(pointers)})


def flattened(forged: dict[str, Any]) -> dict[str, str]:
    """The same for a place of short strings."""
    mark = "dev.mcp-envelope/"
    found = {f"{mark}field:{name}": value for name, value in forged.get("fields", {}).items()}
    found |= {f"{mark}extra:{key}": value for key, value in forged.get("extras", {}).items()}
    found |= {mark + name: value for name, value in forged.items() if name in ("filled", "absent")}
    return {key: me.dump(value).decode() for key, value in found.items()}


@pytest.mark.parametrize(
    ("dialect", "value", "place"),
    _bases(),
    ids=[f"{name}-{at}" for at, (name, *_) in enumerate(_bases())],
)
def test_whatever_is_claimed_to_be_carried_nothing_else_escapes(
    dialect: str, value: Any, place: str
) -> None:
    """Whoever writes an envelope can forge what is carried: read, converted, or EnvelopeError.

    And the message is of the same sort, says the same of failing, and names the same tool.
    """
    clean = me.decode(me.dump(value), dialect)
    targets = list(DIALECTS)
    for at, forged in enumerate(forgeries(value)):
        carried: Any = {"dev.mcp-envelope/carried": forged}
        if place.endswith("schema_hints"):
            carried = flattened(forged)
        data = me.dump(planted(value, steps_of(place), carried))
        try:
            message = me.decode(data, dialect)
        except me.EnvelopeError:
            continue
        assert type(message) is type(clean), forged
        assert clean.target in (None, message.target), forged
        if isinstance(message, me.Failure) and isinstance(clean, me.Failure):
            assert message.message == clean.message, forged
        for to in targets[at % 3 :: 3]:
            with contextlib.suppress(me.EnvelopeError):
                me.convert(data, to, dialect)


def planted(value: Any, steps: list[str], inside: Any) -> Any:
    """A copy of a value with something at a place, and the objects that lead there."""
    if not steps:
        return inside
    first, *rest = steps
    members = value if isinstance(value, dict) else {}
    return {**members, first: planted(members.get(first), rest, inside)}
