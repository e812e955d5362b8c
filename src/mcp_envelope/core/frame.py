"""One JSON-RPC message as it travels: its exact bytes, and what routing has to know of it.

A frame is read once and passed on as it came. Where something must change (an id that has to
be told apart from another client's, a member of ``_meta``) only that is cut out and replaced,
so that vendor members, the spelling of numbers and the order of keys survive.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal

from . import salvage, spans
from .document import DEFAULT_LIMITS, Document, Limits, dump, parse
from .errors import EnvelopeError, Problem

Shape = Literal["request", "notification", "response"]
Id = str | int | float

#: What tells two ids apart: ``7`` and ``"7"`` are different, ``7`` and ``7.0`` are not.
IdKey = tuple[bool, Id]

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_SHAPE: Final = "jsonrpc/envelope"
_PROTOCOL: Final = "io.modelcontextprotocol/protocolVersion"


class FrameError(EnvelopeError):
    """Bytes that are no JSON-RPC message.

    ``id`` is that of the message, None where it cannot be known; ``parsed`` tells whether it
    was JSON at all.
    """

    def __init__(self, why: EnvelopeError, *, id: Id | None = None, parsed: bool = True) -> None:
        super().__init__(
            why.message,
            code=why.code,
            problems=why.problems,
            pointer=why.pointer,
            line=why.line,
            column=why.column,
            hint=why.hint,
        )
        self.id = id
        self.parsed = parsed

    @property
    def outline(self) -> str:
        """What is wrong and at which line, in words that hold nothing of the message."""
        rule = self.problems[0].rule if self.problems else _SHAPE
        if rule == _SHAPE:
            return self.message
        return rule if self.line is None else f"{rule} at line {self.line}, column {self.column}"


class Frame:
    """A JSON-RPC message. Make one with :func:`read_frame`, or :func:`frame_of`.

    ``raw`` are its exact bytes and ``value`` the message as plain Python. ``id`` is None for a
    notification, and for an error that could not name one; ``method`` is empty for a response,
    ``params`` where there are none. ``meta`` is ``params._meta``, or ``result._meta`` of a
    response; empty where there is none. Treat all of it as frozen.
    """

    # Not properties: each is asked for many times on the way of a call.
    __slots__ = ("document", "id", "meta", "method", "params", "raw", "shape", "value")

    def __init__(self, document: Document, shape: Shape) -> None:
        value: dict[str, Any] = document.value
        self.document: Final = document
        self.shape: Final = shape
        self.raw: Final = document.raw
        self.value: Final = value
        self.id: Final[Id | None] = value.get("id")
        self.params: Final[Mapping[str, Any]] = value.get("params", _NOTHING)
        if shape == "response":
            method, holder = "", value.get("result")
        else:
            method, holder = value.get("method", ""), self.params
        meta = holder.get("_meta") if isinstance(holder, dict) else None
        self.method: Final[str] = method
        self.meta: Final[Mapping[str, Any]] = meta if isinstance(meta, dict) else _NOTHING

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frame):
            return NotImplemented
        return self.shape == other.shape and self.document == other.document

    __hash__ = None  # type: ignore[assignment]  # documents have none

    def __repr__(self) -> str:
        return f"<Frame {self.shape}, {len(self.raw)} bytes>"

    @property
    def result(self) -> Document | None:
        """The result of a response, with its exact bytes; None for anything else."""
        found = "result" in self.value and self.shape == "response"
        return self.document["result"] if found else None

    @property
    def revision(self) -> str | None:
        """The protocol version that the message itself names (from 2026-07-28 on)."""
        found = self.meta.get(_PROTOCOL) if self.shape != "response" else None
        return found if isinstance(found, str) else None

    def put(self, path: tuple[str, ...], value: object) -> Frame:
        """The same message with one member set; what the path leads through are objects."""
        raw = spans.put(self.raw, path, dump(value), self.value)
        return Frame(parse(raw, size=len(raw)), self.shape)


def id_key(id: Id) -> IdKey:
    """What to look an id up by."""
    return (isinstance(id, str), id)


def read_frame(raw: bytes, *, limits: Limits = DEFAULT_LIMITS, size: int | None = None) -> Frame:
    """Read one message, or raise :class:`FrameError`.

    It is as lenient as MCP is: ids are texts or whole numbers, unknown members are welcome.
    A batch is refused, as MCP does since 2025-06-18.
    """
    try:
        document = parse(raw, limits=limits, size=size)
    except EnvelopeError as error:
        too_large = error.code == "TOO_LARGE"
        id = None if too_large else salvage.asked(raw)
        raise FrameError(error, id=id, parsed=too_large) from None
    value = document.value
    flaw = _flaw(value)
    if flaw is not None:
        pointer, message, hint = flaw
        problem = Problem(pointer, _SHAPE, message, hint)
        why = EnvelopeError(message, problems=[problem], pointer=pointer, hint=hint)
        raise FrameError(why, id=_usable_id(value))
    return Frame(document, _shape(value))


def frame_of(value: Mapping[str, object]) -> Frame:
    """A message of our own; it may hold documents anywhere inside."""
    return Frame(Document.of(dict(value)), _shape(value))


def _shape(value: Mapping[str, object]) -> Shape:
    if "method" in value and "result" not in value and "error" not in value:
        return "request" if "id" in value else "notification"
    return "response"


def _flaw(value: Any) -> tuple[str, str, str] | None:
    """What makes a value no JSON-RPC message: pointer, message, hint."""
    if isinstance(value, list):
        return "", "batches are not accepted", "send each message by itself"
    if not isinstance(value, dict):
        return "", "a JSON-RPC message is an object", "send one object"
    if value.get("jsonrpc") != "2.0":
        return "/jsonrpc", 'jsonrpc must be "2.0"', 'add "jsonrpc": "2.0"'
    if "method" in value and "result" not in value and "error" not in value:
        return _question_flaw(value)
    return _answer_flaw(value)


def _question_flaw(value: dict[str, Any]) -> tuple[str, str, str] | None:
    if not isinstance(value["method"], str) or not value["method"]:
        return "/method", "method must be a text that is not empty", "name the method"
    if "id" in value and _usable_id(value) is None:
        return "/id", "id must be a text or a whole number", "leave it out for a notification"
    if "params" in value and not isinstance(value["params"], dict):
        return "/params", "params must be an object", "put the parameters into an object"
    if not isinstance(value.get("params", {}).get("_meta", {}), dict):
        return "/params/_meta", "_meta must be an object", "leave it out, or send an object"
    return None


def _answer_flaw(value: dict[str, Any]) -> tuple[str, str, str] | None:
    if "result" not in value and "error" not in value:
        return "", "there is neither a method nor a result nor an error", "add one of them"
    if "result" in value and "error" in value:
        return "/error", "there is both a result and an error", "send exactly one of them"
    if "error" in value and not isinstance(value["error"], dict):
        return "/error", "error must be an object", "send code and message"
    if _usable_id(value) is None and ("result" in value or value.get("id") is not None):
        return "/id", "id must be a text or a whole number", "repeat the id of the request"
    return None


def _usable_id(value: Any) -> Id | None:
    found = value.get("id") if isinstance(value, dict) else None
    if isinstance(found, str):
        return found
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return None
    return found if found == int(found) else None
