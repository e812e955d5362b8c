"""Seed 001, strict JSON-RPC envelopes and canonical errors: rule by rule (docs/rules.md)."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any, Final

import pytest
from tests.rules.seeds import cli, errors, raw, text

import mcp_envelope as me
from mcp_envelope.dialects import DIALECTS

DIALECT: Final = "jsonrpc/2.0"
CALL: Final = {
    "id": "3fd7d2b1-79d1-4b8e-92c8-105c1ce9b6f7", "jsonrpc": "2.0", "method": "tools/call",
    "params": {"name": "search", "arguments": {"query": "maps"}},
}  # fmt: skip
INPUT: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
}
OUTPUT: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"hits": {"type": "array"}},
    "required": ["hits"],
}


def call(**members: object) -> bytes:
    """The request with some members replaced; ``...`` takes one out."""
    value = {**CALL, **members}
    return text({name: part for name, part in value.items() if part is not ...})


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder of schemas with two tools that have the same input and output."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("search", "find"):
        (folder / f"{name}.input.schema.json").write_text(json.dumps(INPUT))
        (folder / f"{name}.output.schema.json").write_text(json.dumps(OUTPUT))
    return tmp_path


# -- the envelope ------------------------------------------------------------------------------


def test_the_envelope_schema_is_2020_12() -> None:
    """S001-01: the published envelope schema names draft 2020-12, and the registry loads it."""
    schema = DIALECTS[DIALECT].schemas()["envelope.schema.json"].value
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_the_registry_has_the_envelope(tools: Path) -> None:
    """S001-01: where a schema root has no envelope schema, ours is the one that is loaded."""
    envelope = me.SchemaRegistry(schema_root=tools).load_envelope()
    envelope.validate(CALL)
    with pytest.raises(me.EnvelopeError):
        envelope.validate({**CALL, "id": 7})


@pytest.mark.parametrize("name", ["id", "jsonrpc", "method", "params"])
def test_four_members_are_required(name: str) -> None:
    """S001-02: without any one of them it is no envelope, and the missing one is named."""
    assert errors(call()) == []
    assert errors(call(**{name: ...}), DIALECT, "request") == [f"/{name}"]


@pytest.mark.parametrize("id_", [7, 1.5, None, True, "", ["x"], {}])
def test_an_id_is_a_string(id_: object) -> None:
    """S001-03: an id of another type, or an empty one, is refused."""
    assert errors(call(id="any text"), DIALECT) == []
    assert errors(call(id=id_), DIALECT) == ["/id"]


def test_made_up_ids_are_uuids() -> None:
    """S001-04: an id that a conversion has to make up is a UUID, the same for the same source."""
    ids = [
        me.parse(me.convert(raw(name), DIALECT).data)["id"].value
        for name in ("000-legacy-json", "000-legacy-json", "000-legacy-text")
    ]
    assert ids[0] == ids[1] != ids[2]
    assert [str(uuid.UUID(id_)) for id_ in ids] == ids


@pytest.mark.parametrize("version", ["2", "1.0", "2.0 ", 2.0, 2, None])
def test_jsonrpc_is_2_0(version: object) -> None:
    """S001-05: nothing but the string "2.0" will do."""
    assert errors(call(jsonrpc=version), DIALECT) == ["/jsonrpc"]


@pytest.mark.parametrize("method", ["", None, 1, ["tools/call"]])
def test_a_method_is_a_name(method: object) -> None:
    """S001-06: the method is a string with something in it."""
    assert errors(call(method="research.search"), DIALECT) == []
    assert errors(call(method=method), DIALECT) == ["/method"]


@pytest.mark.parametrize("params", [[], ["maps"], "maps", 1, None, True])
def test_params_are_an_object(params: object) -> None:
    """S001-07: positional params, and anything else that is no object, are refused."""
    assert errors(call(params={}, method="ping"), DIALECT) == []
    assert errors(call(params=params), DIALECT, "request") == ["/params"]


def test_further_members_are_kept() -> None:
    """S001-08: members that JSON-RPC does not name are allowed, and come out as they went in."""
    more = call(idempotencyKey="k-1", traceparent="00-ab", extensions={"a": [1.0]})
    assert me.validate(more) == []
    assert me.parse(me.encode(me.decode(more), DIALECT)) == me.parse(more)


# -- tool input and output ---------------------------------------------------------------------


def test_tool_is_the_id_that_was_asked_for(tools: Path) -> None:
    """S001-09: what speaks of another tool than the one asked for is refused."""
    io = me.SchemaRegistry(schema_root=tools).load_tool_io("search")
    io.validate({"tool": "search", "input": {"query": "maps"}, "output": {"hits": []}})
    with pytest.raises(me.EnvelopeError) as caught:
        io.validate({"tool": "find", "input": {"query": "maps"}, "output": {"hits": []}})
    assert [problem.pointer for problem in caught.value.problems] == ["/tool"]


@pytest.mark.parametrize("value", [[], "maps", None, 3])
@pytest.mark.parametrize("name", ["input", "output"])
def test_input_and_output_are_objects(tools: Path, name: str, value: object) -> None:
    """S001-10, S001-11: whatever else they may be, the envelope's ``input`` and ``output`` are."""
    good: dict[str, Any] = {"tool": "search", "input": {"query": "maps"}, "output": {"hits": []}}
    bad = {**good, name: value}
    assert errors(text(bad), DIALECT, "tool_io") == [f"/{name}"]
    with pytest.raises(me.EnvelopeError):
        me.SchemaRegistry(schema_root=tools).load_tool_io("search").validate(bad)


def test_output_that_is_no_object_is_put_into_one() -> None:
    """S001-11: a text answer of another dialect arrives as ``{"content": …}``."""
    response = me.parse(me.convert(raw("000-legacy-text"), DIALECT).data)
    assert response["result"]["output"] == {"content": "done"}


def test_both_schemas_come_from_the_registry(tools: Path) -> None:
    """S001-12: ``load_tool_io`` gives both checks of a tool; an unknown tool is a KeyError."""
    registry = me.SchemaRegistry(schema_root=tools)
    io = registry.load_tool_io("search")
    with pytest.raises(me.EnvelopeError):
        io.input.validate({"tool": "search", "input": {"query": 7}})
    with pytest.raises(me.EnvelopeError):
        io.output.validate({"tool": "search", "output": {"hits": "none"}})
    io.input.validate({"tool": "search", "input": {"query": "maps"}})
    io.output.validate({"tool": "search", "output": {"hits": []}})
    for unknown in ("sesame", "../tools/search", ""):
        with pytest.raises(KeyError):
            registry.load_tool_io(unknown)


def test_schemas_are_cached_by_fingerprint(tools: Path) -> None:
    """S001-13: the same schema is compiled once, and a changed file is noticed at once."""
    registry = me.SchemaRegistry(schema_root=tools)
    first = registry.load_tool_io("search")
    assert registry.load_tool_io("search") is first
    twin = registry.load_tool_io("find")
    assert twin.fingerprint == first.fingerprint
    assert twin.input.validator is first.input.validator
    assert twin.output.validator is first.output.validator
    changed = {**INPUT, "required": ["query", "language"]}
    (tools / "tools" / "search.input.schema.json").write_text(json.dumps(changed))
    again = registry.load_tool_io("search")
    assert again.fingerprint != first.fingerprint
    with pytest.raises(me.EnvelopeError):
        again.validate({"tool": "search", "input": {"query": "maps"}, "output": {"hits": []}})


# -- canonical errors --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "http", "number", "message"),
    [
        ("INVALID_ENVELOPE", 400, -32600, "Invalid MCP envelope"),
        ("INVALID_TOOL_INPUT", 422, -32602, "Invalid tool input"),
        ("TOOL_NOT_FOUND", 404, -32001, "Unknown tool"),
        ("INTERNAL_ERROR", 500, -32603, "Internal error"),
    ],
)
def test_codes_become_statuses_and_errors(code: str, http: int, number: int, message: str) -> None:
    """S001-14, S001-15, S001-16, S001-17, S001-18: the four rows, and nothing beside them."""
    assert me.CanonicalError.to_http_status(code) == http
    assert me.CanonicalError.to_jsonrpc_error(code) == {"code": number, "message": message}


@pytest.mark.parametrize("code", ["", "NO_SUCH_CODE", "invalid_envelope", "-32600"])
def test_unknown_codes_raise_key_error(code: str) -> None:
    """S001-19: no status and no error is made up for a code that the table does not have."""
    with pytest.raises(KeyError):
        me.CanonicalError.to_http_status(code)
    with pytest.raises(KeyError):
        me.CanonicalError.to_jsonrpc_error(code)


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"{",
        b"[]",
        b"[%s]" % call(),
        call(id=7),
        call(params=...),
        call(jsonrpc="1.0"),
        b"\xff",
    ],
    ids=["empty", "torn", "empty batch", "batch", "id", "no params", "version", "no text"],
)
def test_an_invalid_envelope_has_the_canonical_code(bad: bytes) -> None:
    """S001-21: whatever is wrong with an envelope, the code is INVALID_ENVELOPE."""
    with pytest.raises(me.EnvelopeError) as caught:
        me.decode(bad, DIALECT)
    assert caught.value.code == "INVALID_ENVELOPE"
    assert me.CanonicalError.to_http_status(caught.value.code) == 400


def test_standard_input_and_files_are_checked_alike(tmp_path: Path) -> None:
    """S001-21: the same bytes give the same verdict from a file and from standard input."""
    file = tmp_path / "call.json"
    file.write_bytes(call(id=7))
    words = ("--dialect", DIALECT, "--json")
    from_file, piped = (
        cli("validate", str(file), *words),
        cli("validate", "-", *words, given=call(id=7)),
    )
    assert from_file.returncode == piped.returncode == 1
    assert from_file.stdout == piped.stdout
