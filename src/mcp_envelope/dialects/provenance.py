"""``provenance/0.1``: ``mcp.request.v0.1`` and ``mcp.envelope.v0.1`` with its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from mcp_envelope.core import codes
from mcp_envelope.core.document import Document, dump
from mcp_envelope.core.errors import ConversionError, Problem
from mcp_envelope.core.message import Event, Failure, Fault, Message, Request, Success
from mcp_envelope.core.plain import same_value
from mcp_envelope.core.pointer import pointer_of
from mcp_envelope.core.ports import Filling
from mcp_envelope.core.provenance import (
    artifact_problem,
    digest_problem,
    method_id_problem,
    record_problems,
)

from .base import SchemaDialect
from .calls import TOOL_CALL
from .reader import Layout, Reader
from .writer import Writer

ENVELOPE: Final = "mcp.envelope.v0.1"
REQUEST: Final = "mcp.request.v0.1"
_NAMESPACES: Final = {"": "provenance/0.1", "/params": "provenance.params"}
_META: Final = "/params/_meta"
_HINTS: Final = "/meta/schema_hints"
_CONTROLS: Final[Mapping[str, tuple[object, ...]]] = {
    "capture_provenance": (True, False),
    "capture_artifacts": (True, False),
    "provenance_mode": ("minimal", "full"),
}
_LONGEST: Final = {"code": 200, "message": 2000}
_FAMILIES: Final = {
    "mcp.request.": "request",
    "mcp.envelope.": "response",
    "prov.record.": "record",
    "artifact.ref.": "artifact_ref",
    "artifact.": "artifact",
    "evidence.": "evidence",
}


class Provenance(SchemaDialect):
    """The formats of seed 000.

    Open places: ``params._meta`` of a request whose params are an object, and
    ``meta.schema_hints``, which holds short strings only.
    """

    id: ClassVar[str] = "provenance/0.1"
    parts: ClassVar[Mapping[str, str]] = {
        "request": "mcp.request.schema.v0.1.json",
        "response": "mcp.envelope.schema.v0.1.json",
        "record": "prov.record.schema.v0.1.json",
        "artifact": "artifact.schema.v0.1.json",
        "artifact_ref": "artifact.ref.schema.v0.1.json",
        "evidence": "evidence.schema.v0.1.json",
        "digest": "digest.schema.v0.1.json",
        "capabilities": "prov-capabilities.schema.v0.1.json",
    }
    records: ClassVar[frozenset[str]] = frozenset(parts) - {"request", "response"}

    def detect(self, value: object) -> str | None:
        if not isinstance(value, dict):
            return None
        version = value.get("schema_version")
        if isinstance(version, str):
            return next((p for start, p in _FAMILIES.items() if version.startswith(start)), None)
        schema = value.get("schema")
        known = isinstance(schema, str) and schema.startswith("prov-capabilities@")
        return "capabilities" if known else None

    def version_problem(self, value: Any, part: str) -> Problem | None:
        served = {"request": REQUEST, "response": ENVELOPE, "record": "prov.record.v0.1"}.get(part)
        version = value.get("schema_version") if isinstance(value, dict) else None
        if served is None or not isinstance(version, str) or version == served:
            return None
        if not version.startswith(served.rpartition(".v")[0] + ".v"):
            return None
        message = f"{version[:60]} is not supported; {served} is"
        hint = f"send {served}, or wrap it as a legacy payload"
        return Problem("/schema_version", "provenance/0.1 schema_version", message, hint)

    def refusals(self, value: Any, part: str) -> list[Problem]:
        if part != "response" or not _names_envelope(value.get("result")):
            return []
        message = "the result is itself an envelope; envelopes are never nested"
        return [Problem("/result", "provenance/0.1 no-nesting", message, "return it unchanged")]

    def faults(self, value: Any, part: str) -> list[Problem]:
        if part == "response":
            record = value.get("provenance")
            return record_problems(record, "/provenance") if record is not None else []
        if part == "record":
            return record_problems(value)
        if part in ("artifact", "artifact_ref"):
            found = artifact_problem(value)
        elif part == "digest":
            found = digest_problem(value)
        else:
            return _listed_problems(value, part)
        return [found] if found is not None else []

    def layout(self, value: Any, part: str) -> Layout:
        if part != "request":
            return Layout(_NAMESPACES, _HINTS, flat=True)
        params = value["params"]
        is_open = type(params) is dict and type(params.get("_meta", {})) is dict
        return Layout(_NAMESPACES, _META if is_open else None)

    def read(self, reader: Reader, part: str) -> Message:
        reader.take("/schema_version")
        return _read_request(reader) if part == "request" else _read_envelope(reader)

    def write(self, message: Message, filling: Filling) -> Writer:
        if isinstance(message, Event) or (isinstance(message, Request) and message.proposal):
            raise self.no_meaning(message)
        if isinstance(message, Request):
            if message.method not in (None, TOOL_CALL):
                raise self.no_meaning(message)
            return _write_request(message, filling)
        if isinstance(message, Success) and message.waiting:
            raise self.no_meaning(message)
        writer = Writer(message, _NAMESPACES, filling, open_place=_HINTS, flat=True)
        payload = message.payload if isinstance(message, (Success, Failure)) else None
        if payload is not None and _names_envelope(payload.value):
            self._pass_through(writer, message, payload)
            return writer
        writer.put("/schema_version", ENVELOPE)
        _write_meta(writer)
        if isinstance(message, Success):
            writer.null_or("/result", writer.get("payload"), required=True)
        elif isinstance(message, Failure):
            writer.null_or("/result", writer.get("payload"), required=False)
            _write_faults(writer, message)
        return writer

    def _pass_through(self, writer: Writer, message: Message, payload: Document) -> None:
        """An envelope that a tool returned is the envelope: never nested, never changed."""
        faults = [p for p in self.problems(payload, "response") if p.severity == "error"]
        if faults:
            raise ConversionError(
                f"the payload calls itself {ENVELOPE} and is not valid: {faults[0].message}",
                problems=faults,
                hint="envelopes are never nested; mend it, or give it another schema_version",
            )
        if isinstance(message, Failure) != bool(payload.value.get("errors")):
            raise ConversionError(
                "the payload is an envelope itself, and says otherwise whether the call failed",
                hint="envelopes are never nested; convert the payload by itself",
            )
        writer.pass_through(payload)


def _names_envelope(value: object) -> bool:
    return isinstance(value, dict) and value.get("schema_version") == ENVELOPE


def _listed_problems(value: Any, part: str) -> list[Problem]:
    found: list[Problem | None] = []
    if part == "request":
        refs = value["artifacts"]
        found = [artifact_problem(ref, f"/artifacts/{i}") for i, ref in enumerate(refs)]
        found += _control_problems(value["params"])
    elif part == "capabilities":
        for name in ("implements", "optional"):
            methods = value.get(name, [])
            found += [method_id_problem(m, f"/{name}/{i}") for i, m in enumerate(methods)]
    return [problem for problem in found if problem is not None]


def _control_problems(params: Any) -> list[Problem | None]:
    """Warnings for what asks for provenance in words that nobody will understand (seed 000, §5)."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    given = meta if isinstance(meta, dict) else {}
    found: list[Problem | None] = []
    for name, known in _CONTROLS.items():
        # 1 == True in Python, but not in JSON.
        if name in given and not any(same_value(given[name], word) for word in known):
            words = " or ".join(dump(word).decode() for word in known)
            rule = f"provenance/0.1 {name}"
            hint = f"write {words}; as it stands it asks for nothing"
            place = pointer_of(["params", "_meta", name])
            found.append(Problem(place, rule, f"must be {words}", hint, "warning"))
    return found


# -- requests ----------------------------------------------------------------------------


def _read_request(reader: Reader) -> Message:
    fields: dict[str, Any] = {
        "method": TOOL_CALL,
        "target": reader.text("/tool/name", "target"),
        "id": reader.text("/request_id", "id"),
        "time": reader.text("/time", "time"),
    }
    meta = reader.peek(_META)
    if meta is not None and meta.is_object:
        fields["meta"] = reader.meta(_META)
        fields["arguments"] = reader.object_without_ours("/params", "arguments", "_meta")
    else:
        fields["arguments"] = reader.take("/params", "arguments")
    return reader.message(Request, **fields)


def _write_request(message: Request, filling: Filling) -> Writer:
    given = message.arguments.value if message.arguments is not None else {}
    has_place = isinstance(given, dict) and isinstance(given.get("_meta", {}), dict)
    writer = Writer(message, _NAMESPACES, filling, open_place=_META if has_place else None)
    arguments = writer.get("arguments")
    writer.put("/schema_version", REQUEST)
    writer.drop("method")
    writer.need("/tool/name", "target", "tool")
    if arguments is None:
        writer.fill("/params", "params", {})
    elif has_place and "_meta" in arguments:
        # Here ``_meta`` is the adapter's; an argument of that name would be taken for it.
        writer.put("/params", arguments.without("_meta"), "arguments")
        writer.inexact("arguments", *writer.parts_of("arguments", "_meta"))
    else:
        writer.put("/params", arguments, "arguments")
    if has_place:
        writer.place(_META, "meta")
    writer.fill("/artifacts", "artifacts", [])
    if writer.get("id") is not None:
        writer.text_id("/request_id")
    writer.place("/time", "time")
    return writer


# -- envelopes ---------------------------------------------------------------------------


def _read_envelope(reader: Reader) -> Message:
    fields: dict[str, Any] = {
        "method": TOOL_CALL,
        "id": reader.text("/meta/request_id", "id"),
        "duration_ms": reader.value("/meta/duration_ms", "duration_ms"),
    }
    name = reader.peek("/provenance/tool/name")
    if name is not None:
        fields["target"] = name.value
        reader.mark("target", "/provenance/tool/name")
    result = reader.take("/result", "payload")
    errors = reader.peek("/errors")
    if errors is None or not errors.value:
        return reader.message(Success, payload=result, **fields)
    partial = None if result is None or result.value is None else result
    reader.take("/errors")
    reader.mark("faults", "/errors")
    faults = tuple(_read_fault(reader, i, entry) for i, entry in enumerate(errors.elements()))
    return reader.message(Failure, payload=partial, faults=faults, **fields)


def _read_fault(reader: Reader, index: int, entry: Document) -> Fault:
    members = entry.members()
    code, retryable = members.pop("code").value, members.pop("retryable", None)
    text, details = members.pop("message").value, members.pop("details", None)
    for name in ("code", "message", "details", "retryable"):
        reader.mark(f"faults.{index}.{name}", f"/errors/{index}/{name}")
    reader.mark(f"faults.{index}", f"/errors/{index}")
    place = f"/errors/{index}"
    reader.keep({place + pointer_of([name]): part for name, part in members.items()})
    if code in codes.TABLE:  # the tool's own word for what we call so, too
        reader.keep({place + "/code": entry["code"]})
    return Fault(
        code=None if reader.is_filled(place + "/code") else codes.by_provenance(code) or code,
        message="" if reader.is_filled(place + "/message") else text,
        details=details,
        retryable=retryable.value if retryable is not None else None,
    )


def _write_meta(writer: Writer) -> None:
    message = writer.message
    if message.method == TOOL_CALL:
        writer.drop("method")
    elif message.method is None and isinstance(message, Success) and message.origin is not None:
        writer.method_is_unknown()
    record = writer.extra("/provenance")
    name = record.at("/tool/name") if record is not None else None
    if name is not None and name.value == message.target:
        writer.drop("target")
    if writer.get("id") is not None:
        writer.text_id("/meta/request_id")
    duration = writer.get("duration_ms")
    if duration is not None:
        writer.put("/meta/duration_ms", max(round(duration), 0), "duration_ms")
        if round(duration) != duration:
            writer.inexact("duration_ms")


def _write_faults(writer: Writer, message: Failure) -> None:
    entries, again = [], []
    for index, fault in enumerate(message.faults):
        code, text = _shortened(fault)
        own = writer.extra(f"/errors/{index}/code")
        kept = own is not None and own.value == code
        entry: dict[str, object] = {"code": code if kept else _own_code(code), "message": text}
        for name, value in (("code", fault.code), ("message", fault.message)):
            if not value:
                writer.filled(f"/errors/{index}/{name}")
        flat = fault.details is not None and _is_flat(fault.details)
        if flat:
            entry["details"] = fault.details
        if fault.retryable is not None:
            entry["retryable"] = fault.retryable
        entries.append(entry)
        again.append(
            replace(
                fault,
                code=code if fault.code else None,
                message=text if fault.message else "",
                details=fault.details if flat else None,
            )
        )
    writer.put("/errors", entries)
    writer.read_back(tuple(again))


def _shortened(fault: Fault) -> tuple[str, str]:
    code = fault.code or "EXECUTION_FAILED"
    return code[: _LONGEST["code"]], fault.message[: _LONGEST["message"]] or "unknown"


def _own_code(code: str) -> str:
    row = codes.TABLE.get(code)
    return row.provenance if row is not None else code


def _is_flat(details: Document) -> bool:
    return details.is_object and not any(
        isinstance(part, (dict, list)) for part in details.value.values()
    )
