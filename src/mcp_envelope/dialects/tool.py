"""``tool/1.0``: versioned request and response envelopes for tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from mcp_envelope.core import codes
from mcp_envelope.core.document import Document
from mcp_envelope.core.errors import Problem
from mcp_envelope.core.message import Failure, Fault, Message, Request, Success
from mcp_envelope.core.pointer import pointer_of
from mcp_envelope.core.ports import Filling

from .base import SchemaDialect
from .calls import TOOL_CALL, speaks_of_tools
from .reader import Layout, Reader
from .writer import Writer

_NAMESPACES: Final = {"": "tool/1.0"}
_OPEN: Final = "/metadata"
_OTHER_MAJOR: Final = re.compile(r"(?!1\.)[0-9]+\.[0-9]+\.[0-9]+")
SERVED: Final = "1.x (ours is 1.0.0)"


class Tool(SchemaDialect):
    """The tool envelopes of seed 004. Open place: ``metadata``, on both sides."""

    id: ClassVar[str] = "tool/1.0"
    parts: ClassVar[Mapping[str, str]] = {
        "request": "request.schema.json",
        "response": "response.schema.json",
    }

    def detect(self, value: object) -> str | None:
        if not isinstance(value, dict) or "version" not in value:
            return None
        if "status" in value:
            return "response"
        return "request" if "tool" in value else None

    def version_problem(self, value: Any, part: str) -> Problem | None:
        version = value.get("version") if isinstance(value, dict) else None
        if not isinstance(version, str) or not _OTHER_MAJOR.fullmatch(version):
            return None
        message = f"version {version[:40]} is not served; versions served: {SERVED}"
        return Problem("/version", "tool/1.0 version", message, "send a 1.x envelope")

    def schema_problems(self, value: Any, part: str) -> list[Problem]:
        found = super().schema_problems(value, part)
        # A later 1.x may have added the field, so say what this side knows.
        return [
            replace(
                p,
                hint=f"{p.hint}; versions served: {SERVED}"
                if p.hint
                else f"versions served: {SERVED}",
            )
            if p.rule.endswith("/additionalProperties") and p.pointer.count("/") == 1
            else p
            for p in found
        ]

    def layout(self, value: Any, part: str) -> Layout:
        return Layout(_NAMESPACES, _OPEN)

    def read(self, reader: Reader, part: str) -> Message:
        known: dict[str, Any] = {
            "id": reader.text("/id", "id"),
            "time": reader.text("/timestamp", "time"),
        }
        if part == "request":
            return reader.message(
                Request,
                **known,
                method=TOOL_CALL,
                target=reader.text("/tool", "target"),
                arguments=reader.take("/payload", "arguments"),
                trace_id=reader.text("/trace_id", "trace_id"),
                auth=reader.take("/auth", "auth"),
            )
        known |= {"method": TOOL_CALL, "duration_ms": reader.value("/duration_ms", "duration_ms")}
        status = reader.document.value["status"]["code"]
        reader.take("/status/code", "accepted")
        known["target"] = reader.text("/metadata/tool", "target")
        output = reader.take("/output", "payload")
        if status in ("success", "accepted"):
            return reader.message(
                Success,
                **known,
                payload=output,
                accepted=status == "accepted",
            )
        faults = _read_faults(reader, retry=status == "retry")
        if reader.peek("/status/http") is None and faults[0].code in codes.TABLE:
            reader.absent("/status/http")
        return reader.message(Failure, **known, payload=output, faults=faults)

    def write(self, message: Message, filling: Filling) -> Writer:
        if not speaks_of_tools(message) or not isinstance(message, (Request, Success, Failure)):
            raise self.no_meaning(message)
        writer = Writer(message, _NAMESPACES, filling, open_place=_OPEN)
        writer.text_id("/id")
        writer.fill("/version", "version")
        writer.need("/timestamp", "time", "timestamp")
        writer.drop("method")
        if isinstance(message, Request):
            if message.proposal:
                raise self.no_meaning(message)
            _write_request(writer, message)
            return writer
        writer.place("/duration_ms", "duration_ms")
        writer.place("/metadata/tool", "target")
        writer.place("/output", "payload")
        if isinstance(message, Success):
            writer.put("/status/code", "accepted" if message.accepted else "success", "accepted")
        else:
            _write_faults(writer, message)
        return writer


def _write_request(writer: Writer, message: Request) -> None:
    writer.need("/tool", "target", "tool")
    arguments = writer.get("arguments")
    if arguments is None or not arguments.is_object:
        writer.fill("/payload", "payload", {})
        if arguments is not None:
            writer.inexact("arguments")
    else:
        writer.put("/payload", arguments, "arguments")
    writer.place("/trace_id", "trace_id")
    writer.place("/auth", "auth")


def _read_faults(reader: Reader, *, retry: bool) -> tuple[Fault, ...]:
    errors = reader.peek("/errors")
    entries = errors.elements() if errors is not None else []
    if not entries:
        reader.mark("faults", "/status")
        said = reader.peek("/status/message")
        message = (reader.text("/status/message") or "") if said and said.value else ""
        return (Fault(code=None, message=message, retryable=retry),)
    if len(entries) == 1 and len(entries[0]) == 1:
        # It says no more than ``status.message`` would: left as it is, so that it stays there.
        reader.mark("faults", "/errors/0")
        return (Fault(code=None, message=entries[0]["message"].value, retryable=retry),)
    reader.take("/errors")
    bare = len(entries) == 1 and "code" not in entries[0]
    if bare and reader.peek("/status/message") is None and not reader.comes_from_elsewhere:
        reader.absent("/status/message")  # where the text would go if the detail were lost
    return tuple(
        _read_fault(reader, index, entry, retry=retry if index == 0 else None)
        for index, entry in enumerate(entries)
    )


def _read_fault(reader: Reader, index: int, entry: Document, *, retry: bool | None) -> Fault:
    place = f"/errors/{index}"
    members = entry.members()
    code, detail = members.pop("code", None), members.pop("detail", None)
    message = members.pop("message").value
    reader.mark(f"faults.{index}", place)
    reader.mark(f"faults.{index}.details", place + "/detail")
    reader.mark(f"faults.{index}.code", place + "/code")
    reader.keep({place + pointer_of([name]): part for name, part in members.items()})
    own = code.value if code is not None else None
    return Fault(code=own, message=message, details=detail, retryable=retry)


def _write_faults(writer: Writer, message: Failure) -> None:
    first = message.faults[0]
    row = codes.TABLE.get(first.code or "")
    retry = first.retryable if first.retryable is not None else bool(row and row.retry)
    writer.put("/status/code", "retry" if retry else "error")
    if row is not None:
        writer.offer("/status/http", row.http)
    entries: list[dict[str, object]] = []
    again: list[Fault] = []
    for fault in message.faults:
        detail = fault.details if fault.details is not None and fault.details.is_object else None
        said = retry if fault is first else None
        again.append(replace(fault, details=detail, retryable=said))
        entry = {"message": fault.message, "code": fault.code, "detail": detail}
        entries.append({name: part for name, part in entry.items() if part is not None})
    kept = writer.extra("/errors")
    if kept is None or not kept.value:
        more = any(key.startswith("tool/1.0#/errors/") for key in message.extras)
        more = more or (writer.has_extra("/status/message") and not writer.extra("/status/message"))
        if more or len(entries) > 1 or len(entries[0]) > 1:
            writer.put("/errors", entries)
        elif first.message:
            writer.put("/status/message", first.message)
    writer.read_back(tuple(again))
