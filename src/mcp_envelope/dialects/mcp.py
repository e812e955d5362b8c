"""``mcp``: plain Model Context Protocol, as clients and servers speak it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from mcp_envelope.core import codes
from mcp_envelope.core.answers import RESULT_IS_ERROR, UPSTREAM_OWN
from mcp_envelope.core.message import Event, Failure, Message, Request, Success
from mcp_envelope.core.ports import Filling

from .base import SchemaDialect
from .calls import (
    TOOL_CALL,
    read_call,
    read_meta,
    read_notification,
    read_repeated,
    read_result,
    write_call,
    write_result,
)
from .failures import (
    PARSE_ERROR,
    Numbers,
    error_place,
    numbered,
    read_error,
    read_tool_failure,
    write_error,
    write_tool_failure,
)
from .reader import Layout, Reader
from .writer import Writer

NAMESPACES: Final = {
    "": "mcp",
    "/params": "mcp.params",
    "/result": "mcp.result",
    "/error": "mcp.error",
}


def _number(code: str | None) -> int | None:
    """The number of a code, None where MCP wants a result marked ``isError`` instead."""
    row = codes.TABLE.get(code or "")
    if row is None or row.mcp_later.answer in (RESULT_IS_ERROR, UPSTREAM_OWN):
        return None
    # Codes that the MCP door says without a message still need one in a file.
    return row.mcp_later.code if row.mcp_later.code is not None else row.jsonrpc


def _meaning(number: object) -> str | None:
    """The code of a number, unless MCP does not use it so."""
    code = codes.by_jsonrpc(number)
    row = codes.TABLE.get(code or "")
    known = row is not None and number in (row.mcp_2025_06_18.code, _number(code))
    return code if known or number == PARSE_ERROR else None


NUMBERS: Final = Numbers(of=_number, meaning=_meaning)


class Mcp(SchemaDialect):
    """MCP's JSON-RPC messages. Open places: ``params._meta``, ``result._meta``, ``error.data``."""

    id: ClassVar[str] = "mcp"
    parts: ClassVar[Mapping[str, str]] = {
        "request": "request.schema.json",
        "notification": "notification.schema.json",
        "response": "response.schema.json",
        "error": "error.schema.json",
    }

    def detect(self, value: object) -> str | None:
        if not isinstance(value, dict) or "jsonrpc" not in value:
            return None
        return part_of(value)

    def layout(self, value: Any, part: str) -> Layout:
        return Layout(NAMESPACES, open_place(value))

    def read(self, reader: Reader, part: str) -> Message:
        reader.take("/jsonrpc")
        return read_message(reader, reader.document.value, answers=part in ("response", "error"))

    def write(self, message: Message, filling: Filling) -> Writer:
        writer = Writer(message, NAMESPACES, filling, open_place=place_for(message))
        writer.put("/jsonrpc", "2.0")
        chatting = isinstance(message, Event) and message.name != "notification"
        if chatting or (isinstance(message, Request) and message.proposal):
            raise self.no_meaning(message)
        write_message(writer)
        return writer


def part_of(value: Mapping[str, Any]) -> str:
    """Which part of MCP a JSON-RPC object looks like."""
    if "error" in value:
        return "error"
    if "method" in value and "result" not in value:  # an answer may repeat what it answers
        return "request" if "id" in value else "notification"
    return "response"


def open_place(value: Mapping[str, Any], base: str = "") -> str | None:
    """The open place of a JSON-RPC message."""
    if part_of(value) in ("request", "notification"):
        params = value.get("params", {})
        return base + "/params/_meta" if isinstance(params, dict) else None
    if "error" in value:
        return error_place(value["error"], base)
    return base + "/result/_meta" if isinstance(value.get("result"), dict) else None


def place_for(message: Message, base: str = "") -> str | None:
    """The open place that a message will have once it is written."""
    if isinstance(message, (Request, Event)):
        return base + "/params/_meta"
    if isinstance(message, Failure) and writes_error(message):
        details = message.faults[0].details
        return base + "/error/data" if details is None or details.is_object else None
    return base + "/result/_meta"


def read_message(
    reader: Reader,
    value: Mapping[str, Any],
    base: str = "",
    *,
    answers: bool = False,
    **known: Any,
) -> Message:
    """The message of a JSON-RPC object at ``base``; ``known`` are fields from around it.

    An answer may repeat the method it answers, so ``answers`` says where it is known to be one.
    """
    known["id"] = reader.value(base + "/id", "id")
    if "method" in value and not answers:
        return _read_question(reader, value, base, known)
    known = {**read_repeated(reader, value, base), **known}
    method = known.pop("method", None) or reader.hint("method")
    if "error" in value:
        faults = read_error(reader, base, NUMBERS)
        return reader.message(Failure, **known, faults=faults, method=method)
    if value["result"].get("isError") is True:
        known["method"] = method or TOOL_CALL
        known["meta"] = read_meta(reader, base + "/result/_meta")
        return reader.message(Failure, **known, **read_tool_failure(reader, base))
    return reader.message(Success, **known, **read_result(reader, base, method))


def _read_question(
    reader: Reader, value: Mapping[str, Any], base: str, known: dict[str, Any]
) -> Message:
    if "id" in value or known.get("proposal"):
        return reader.message(Request, **known, **read_call(reader, base))
    del known["id"]
    said = read_notification(reader, base)
    return reader.message(Event, name="notification", **known, **said)


def writes_error(message: Failure) -> bool:
    """Whether a failure becomes an error object; else it is a result marked ``isError``."""
    return numbered(message) is not None or NUMBERS.of(message.faults[0].code) is not None


def write_message(writer: Writer, base: str = "") -> None:
    """Put a message's fields into a JSON-RPC object at ``base``."""
    message = writer.message
    if isinstance(message, Event):
        writer.put(base + "/method", message.method, "method", "name")
        payload = writer.get("payload")
        writer.put(base + "/params", payload, "payload")
        writer.place(base + "/params/_meta", "meta")
        if payload is not None and payload.is_object and not len(payload):
            writer.verbatim(alone=False)
        return
    if isinstance(message, Request):
        if message.proposal:
            writer.drop("id") if message.id is None else None
        else:
            writer.need(base + "/id", "id", "id")
        write_call(writer, base)
        return
    if writer.has_extra(base + "/method"):  # it repeats its question
        writer.drop("method", "target")
    if isinstance(message, Failure) and writes_error(message):
        writer.place(base + "/id", "id")
        writer.drop("method") if message.method == TOOL_CALL else None
        write_error(writer, base, NUMBERS)
        return
    writer.need(base + "/id", "id", "id")
    if isinstance(message, Failure):
        write_tool_failure(writer, base)
        writer.drop("method") if message.method == TOOL_CALL else None
        writer.place(base + "/result/_meta", "meta")
    else:
        write_result(writer, base)
