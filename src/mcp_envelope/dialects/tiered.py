"""``tiered/1.0``: one response shape for every tool, with tier and upgrade hints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from mcp_envelope.core import codes
from mcp_envelope.core.errors import Problem
from mcp_envelope.core.message import Failure, Fault, Message, Success
from mcp_envelope.core.pointer import pointer_of
from mcp_envelope.core.ports import Filling

from .base import SchemaDialect
from .calls import TOOL_CALL, speaks_of_tools
from .reader import Layout, Reader
from .sources import is_safe, without_code
from .writer import NULL, Writer

_NAMESPACES: Final = {"": "tiered/1.0"}
_MARK: Final = "envelope-v1"
_DETAILS: Final = "/error/error_details"
_FIELDS: Final = (
    "tier",
    "tool_version",
    "tool_id",
    "request_id",
    "capabilities",
    "duration_ms",
    "error",
    "upgrade_hints",
    "data",
)


class Tiered(SchemaDialect):
    """The response envelope of seed 002.

    It has no request, and no open place but ``error.error_details``: of a success, what has
    no field is lost.
    """

    id: ClassVar[str] = "tiered/1.0"
    parts: ClassVar[Mapping[str, str]] = {"response": "response.read.schema.json"}
    written: ClassVar[Mapping[str, str]] = {"response": "response.schema.json"}

    def detect(self, value: object) -> str | None:
        marks = ("tier", "tool_id", "upgrade_hints")
        known = isinstance(value, dict) and sum(mark in value for mark in marks) >= 2
        return "response" if known else None

    def faults(self, value: Any, part: str) -> list[Problem]:
        found = []
        for name in value:
            if name not in _FIELDS:
                message = f"{name[:60]!r} is no field of tiered/1.0; it is kept, never written"
                found.append(_warning(pointer_of([name]), "unknown-field", message))
        if _MARK not in value["capabilities"]:
            message = "'envelope-v1' is missing from the capabilities"
            found.append(_warning("/capabilities", "envelope-v1", message))
        if value.get("duration_ms") is None:
            found.append(_warning("/duration_ms", "duration", "the duration is missing"))
        error = value["error"]
        if error is not None and error["error_code"] not in codes.TIERED_CODES:
            message = f"{error['error_code'][:60]!r} is no error code of tiered/1.0"
            found.append(_warning("/error/error_code", "error-code", message))
        return found

    def layout(self, value: Any, part: str) -> Layout:
        return Layout(_NAMESPACES, _DETAILS if value["error"] is not None else None)

    def read(self, reader: Reader, part: str) -> Message:
        error = reader.document.value["error"]
        fields: dict[str, Any] = {
            "method": TOOL_CALL,
            "target": reader.text("/tool_id", "target"),
            "id": reader.text("/request_id", "id"),
            "duration_ms": reader.value("/duration_ms", "duration_ms"),
        }
        data = reader.take("/data", "payload")
        if error is None:
            reader.take("/error")
            return reader.message(Success, payload=data, **fields)
        own = error["error_code"]
        reader.take("/error/error_code")
        details = reader.meta(_DETAILS, "faults.0.details")
        if details is not None and details.value is None:
            details = None
        made_up = reader.is_filled("/error/error_code")
        fault = Fault(
            code=None if made_up else codes.by_tiered(own) or own,
            message=reader.text("/error/error") or "",
            details=details,
        )
        reader.mark("faults", "/error")
        reader.mark("faults.0.code", "/error/error_code")
        partial = None if data is None or data.value is None else data
        return reader.message(Failure, payload=partial, faults=(fault,), **fields)

    def write(self, message: Message, filling: Filling) -> Writer:
        if not speaks_of_tools(message) or not isinstance(message, (Success, Failure)):
            raise self.no_meaning(message)
        details = message.faults[0].details if isinstance(message, Failure) else None
        open_place = isinstance(message, Failure) and (details is None or details.is_object)
        place = _DETAILS if open_place else None
        may_carry = _anything if _is_ours(message) else is_safe
        writer = Writer(message, _NAMESPACES, filling, open_place=place, may_carry=may_carry)
        writer.withhold(lambda pointer: pointer.split("/")[1] not in _FIELDS)
        writer.drop("method")
        writer.need("/tool_id", "target", "tool")
        writer.text_id("/request_id")
        writer.need("/duration_ms", "duration_ms", "duration_ms", 0)
        writer.fill("/tier", "tier")
        writer.fill("/tool_version", "tool_version")
        _write_capabilities(writer)
        writer.fill("/upgrade_hints", "upgrade_hints", [])
        if isinstance(message, Success):
            writer.null_or("/data", writer.get("payload"), required=True)
            writer.put("/error", NULL)
        else:
            writer.null_or("/data", writer.get("payload"), required=False)
            _write_fault(writer, message)
        return writer


def _write_capabilities(writer: Writer) -> None:
    own = writer.extra("/capabilities")
    names = own.elements() if own is not None else []
    if own is not None and _MARK not in own:  # read leniently, never written so
        writer.put("/capabilities", [*names, _MARK])
        writer.filled(f"/capabilities/{len(own)}")
    else:
        writer.fill("/capabilities", "capabilities", [_MARK])


def _write_fault(writer: Writer, message: Failure) -> None:
    first = message.faults[0]
    ours = _is_ours(message)
    said = first.message if ours else without_code(first.message)
    written_code = tiered_code(first.code)
    details = first.details
    if details is not None and not (details.is_object and (ours or is_safe(details))):
        details = None
    writer.put("/error/error", said)
    writer.put("/error/error_code", written_code)
    writer.put(_DETAILS, details if details is not None else NULL)
    # A tool's own word that is read here leniently is carried, but what is written is made up.
    foreign = first.code not in codes.TABLE and first.code != written_code
    if first.code is None or (ours and foreign):
        writer.filled("/error/error_code")
    code = None
    if first.code is not None:
        code = codes.by_tiered(written_code) or written_code
    again = Fault(code=code, message=said, details=details)
    writer.read_back((again,))
    kept = first.code if ours or is_safe(first.code) else code
    writer.carry_instead("faults", (replace(again, code=kept, retryable=first.retryable),))


def _is_ours(message: Message) -> bool:
    """Whether this was read from this very dialect, and goes out as it came in."""
    return message.origin is not None and message.origin.dialect == Tiered.id


def _anything(value: object) -> bool:
    return True


def tiered_code(code: str | None) -> str:
    """The listed error code for a canonical code or a tool's own."""
    row = codes.TABLE.get(code or "")
    if row is not None:
        return row.tiered
    return code if code in codes.TIERED_CODES else "internal_error"


def _warning(pointer: str, rule: str, message: str) -> Problem:
    return Problem(pointer, f"tiered/1.0 {rule}", message, "accepted when read", "warning")
