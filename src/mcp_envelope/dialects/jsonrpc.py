"""``jsonrpc/2.0``: the strict JSON-RPC envelope with tool I/O and canonical errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from mcp_envelope.core import codes
from mcp_envelope.core.document import build
from mcp_envelope.core.errors import ConversionError, Problem
from mcp_envelope.core.message import Failure, Message, Request, Success
from mcp_envelope.core.ports import Filling

from .base import SchemaDialect
from .calls import TOOL_CALL, read_call, read_meta, told_by, write_call
from .failures import UNNUMBERED, Numbers, error_place, read_error, write_error
from .reader import Layout, Reader
from .writer import NULL, Writer

_REQUEST: Final = {"": "jsonrpc/2.0", "/params": "mcp.params"}
_ANSWER: Final = {"": "jsonrpc/2.0"}
_RESULT_META: Final = "/result/_meta"


def _number(code: str | None) -> int | None:
    row = codes.TABLE.get(code) if code is not None else None
    return row.jsonrpc if row is not None else UNNUMBERED


def _meaning(number: object) -> str | None:
    """The code of a number, unless only MCP uses it so."""
    code = codes.by_jsonrpc(number)
    return code if code is not None and codes.TABLE[code].jsonrpc == number else None


_NUMBERS: Final = Numbers(of=_number, meaning=_meaning)


class JsonRpc(SchemaDialect):
    """The envelopes of seed 001.

    Open places: ``params._meta``, ``result._meta`` and ``error.data``, where those are objects.
    """

    id: ClassVar[str] = "jsonrpc/2.0"
    parts: ClassVar[Mapping[str, str]] = {
        "request": "envelope.schema.json",
        "response": "response.schema.json",
        "tool_io": "tool_io.schema.json",
    }
    records: ClassVar[frozenset[str]] = frozenset({"tool_io"})

    def detect(self, value: object) -> str | None:
        """A JSON-RPC object is ours if its id is a string and nothing in it is MCP's own."""
        if not isinstance(value, dict) or "jsonrpc" not in value:
            return None
        if not isinstance(value.get("id"), str):
            return None
        if "method" in value and "result" not in value and "error" not in value:
            params = value.get("params")
            return None if not isinstance(params, dict) or _names_mcp(params) else "request"
        result = value.get("result")
        if "error" in value or (isinstance(result, dict) and "tool" in result):
            return "response"
        return None

    def part_of(self, value: object) -> str:
        members = value if isinstance(value, dict) else {}
        if "jsonrpc" not in members and "tool" in members:
            return "tool_io"
        answers = "result" in members or "error" in members
        return "response" if answers else "request"

    def schema_problems(self, value: Any, part: str) -> list[Problem]:
        found = super().schema_problems(value, part)
        if not isinstance(value, dict) or not {"result", "error"} <= value.keys():
            return found
        # In these words, rather than that two alternatives fit.
        hint = "leave one of them out: a response holds a result or an error, never both"
        return [
            replace(p, message="there is a result and an error", hint=hint)
            if p.rule.endswith("response.schema.json#/oneOf")
            else p
            for p in found
        ]

    def layout(self, value: Any, part: str) -> Layout:
        if part == "request":
            return Layout(_REQUEST, "/params/_meta")
        if "error" in value:
            return Layout(_ANSWER, error_place(value["error"]))
        return Layout(_ANSWER, _RESULT_META if isinstance(value.get("result"), dict) else None)

    def read(self, reader: Reader, part: str) -> Message:
        value = reader.document.value
        reader.take("/jsonrpc")
        if part == "request":
            return reader.message(Request, id=reader.value("/id", "id"), **read_call(reader))
        if "error" in value:
            faults = read_error(reader, "", _NUMBERS)
            return reader.message(Failure, id=reader.value("/id", "id"), faults=faults)
        return _read_result(reader, value["result"])

    def write(self, message: Message, filling: Filling) -> Writer:
        if isinstance(message, Request) and not message.proposal:
            writer = Writer(message, _REQUEST, filling, open_place="/params/_meta")
            writer.put("/jsonrpc", "2.0")
            writer.text_id("/id")
            writer.need("/method", "method", "method")
            write_call(writer, named=False)
            writer.require("/params", {})
            return writer
        if isinstance(message, Failure):
            details = message.faults[0].details
            open_place = "/error/data" if details is None or details.is_object else None
            writer = Writer(message, _ANSWER, filling, open_place=open_place)
            writer.put("/jsonrpc", "2.0")
            _write_failure(writer)
            return writer
        if not isinstance(message, Success):
            raise self.no_meaning(message)
        is_tool = message.method == TOOL_CALL and not message.waiting
        is_object = message.payload is not None and message.payload.is_object
        place = _RESULT_META if is_tool or is_object else None
        writer = Writer(message, _ANSWER, filling, open_place=place)
        writer.put("/jsonrpc", "2.0")
        writer.text_id("/id")
        _write_result(writer, message, is_tool=is_tool)
        return writer


def _names_mcp(params: Mapping[str, Any]) -> bool:
    meta = params.get("_meta")
    return isinstance(meta, dict) and any(k.startswith("io.modelcontextprotocol/") for k in meta)


def _read_result(reader: Reader, result: Any) -> Message:
    fields: dict[str, Any] = {"id": reader.value("/id", "id")}
    is_tool = _is_tool_io(result)
    fields["meta"] = read_meta(reader, _RESULT_META)
    if not is_tool:
        names = ("_meta",) if fields["meta"] is not None or reader.place else ()
        fields["payload"] = reader.object_without_ours("/result", "payload", *names)
        return reader.message(Success, method=reader.hint("method") or told_by(result), **fields)
    fields["method"] = TOOL_CALL
    fields["target"] = reader.text("/result/tool", "target")
    given = reader.peek("/result/input")
    if given is not None and given.is_object:
        fields["arguments"] = reader.take("/result/input", "arguments")
    elif given is None:
        reader.absent("/result/input")
    output = reader.take("/result/output", "payload")
    if output is not None and _is_wrapped(output.value) and not reader.verbatim:
        output = output["content"]
        reader.mark("payload", "/result/output/content")
    return reader.message(Success, payload=output, **fields)


def _is_tool_io(result: Any) -> bool:
    return (
        isinstance(result, dict)
        and isinstance(result.get("tool"), str)
        and isinstance(result.get("output"), dict)
    )


def _is_wrapped(output: Any) -> bool:
    """Whether an output is ``{"content": …}`` around a payload that is no object."""
    return list(output) == ["content"] and not isinstance(output["content"], dict)


def _write_result(writer: Writer, message: Success, *, is_tool: bool) -> None:
    if not is_tool:
        payload = writer.get("payload")
        writer.null_or("/result", payload, required=True)
        if payload is not None and payload.is_object:
            writer.place(_RESULT_META, "meta")
        told = told_by(payload.value) if payload is not None else None
        writer.drop("method") if message.method == told else None
        if not writer.at_home and payload is not None and _is_tool_io(payload.value):
            hint = "here it would be read as what the tool of that name returned"
            raise ConversionError("a result with tool and output that is no tool's", hint=hint)
        return
    writer.drop("method")
    writer.need("/result/tool", "target", "tool")
    arguments = writer.get("arguments")
    if arguments is None or not arguments.is_object:
        if arguments is not None:
            writer.inexact("arguments")
        writer.offer("/result/input", {})
    else:
        writer.put("/result/input", arguments, "arguments")
    payload = writer.get("payload")
    writer.place(_RESULT_META, "meta")
    if payload is None:
        writer.fill("/result/output", "payload", {})
        return
    output = payload if payload.is_object else build({"content": payload})
    writer.put("/result/output", output, "payload")
    if payload.is_object and _is_wrapped(payload.value):
        writer.verbatim()


def _write_failure(writer: Writer) -> None:
    if writer.get("id") is not None:
        writer.text_id("/id")
    elif not writer.has_extra("/id"):  # the request's id was unusable
        writer.drop("id")
        writer.fill("/id", "id", NULL)
    writer.drop("method") if writer.message.method == TOOL_CALL else None
    write_error(writer, "", _NUMBERS)
