"""Bytes to messages, messages to bytes, and one dialect into another, nothing lost in silence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from mcp_envelope.core.document import DEFAULT_LIMITS, Document, Limits, parse
from mcp_envelope.core.errors import ConversionError, EnvelopeError, Problem, UsageError
from mcp_envelope.core.message import Event, Message, Request
from mcp_envelope.core.ports import Dialect, Filling

from . import DIALECTS, recognise

#: The options of ``convert``: what they stand for, for messages that lack it.
OPTIONS: Final[Mapping[str, str]] = {
    "id": "the id of the request, or of the envelope where that has one of its own",
    "timestamp": "when it was sent, RFC 3339",
    "from_peer": "who sent it",
    "tool": "the tool (or prompt, or resource) that it is about",
    "method": "the MCP method that it answers",
    "correlation_id": "the id of the envelope that it answers",
    "tier": "the caller's tier: community, pro or enterprise",
    "tool_version": "the version of the tool, semantic",
    "version": "the version of the tool/1.0 envelope",
}


@dataclass(frozen=True, slots=True)
class Converted:
    """The result of a conversion.

    ``lost`` are RFC 6901 pointers into the source that the target cannot hold, ``filled``
    pointers into the result for what the source did not have.
    """

    data: bytes
    lost: tuple[str, ...]
    filled: tuple[str, ...]
    source: str
    target: str


def decode(
    data: bytes | Document, dialect: str | None = None, *, limits: Limits = DEFAULT_LIMITS
) -> Message:
    """Read an envelope; the dialect is recognised unless it is named.

    Raises EnvelopeError for whatever is not a valid envelope.
    """
    document = _document(data, limits)
    known, part = place(document, dialect)
    message = known.decode(document, part)
    if isinstance(message, (Request, Event)) and len(document.raw) > limits.request:
        raise EnvelopeError(
            f"the request has {len(document.raw):,} bytes, "
            f"more than the {limits.request:,} accepted",
            code="TOO_LARGE",
        )
    return message


def encode(message: Message, dialect: str, **filling: str | None) -> bytes:
    """Write a message in a dialect; what it requires and the message lacks is filled in.

    Use :func:`convert` to be told what was filled in and what did not fit.
    """
    return DIALECTS[dialect].encode(message, _filling(filling)).document.raw


def convert(
    data: bytes | Document,
    to: str,
    from_: str | None = None,
    strict: bool = False,
    *,
    limits: Limits = DEFAULT_LIMITS,
    **filling: str | None,
) -> Converted:
    """Turn an envelope of one dialect into one of another.

    ``filling`` gives values for what the target requires (see :data:`OPTIONS`); where none is
    given a placeholder stands in. With ``strict`` anything lost or filled in is a
    ConversionError, and so is a conversion that has no meaning, strict or not.
    """
    target = DIALECTS[to]
    values = _filling(filling)
    message = decode(data, from_, limits=limits)
    if message.method is None and filling.get("method") is not None:
        message = replace(message, method=filling["method"])
    encoded = target.encode(message, values)
    if strict and (encoded.lost or encoded.filled):
        raise ConversionError(
            f"this conversion to {to} is not exact",
            lost=encoded.lost,
            filled=encoded.filled,
            hint="without strict, what is lost and filled in is listed instead",
        )
    source = message.origin.dialect if message.origin is not None else to
    return Converted(encoded.document.raw, encoded.lost, encoded.filled, source, to)


def validate(
    data: bytes | Document,
    dialect: str | None = None,
    part: str | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
) -> list[Problem]:
    """Everything that is wrong with an envelope; empty if it holds.

    Problems of severity ``warning`` do not make it invalid.
    """
    try:
        document = _document(data, limits)
        known, part = place(document, dialect, part)
    except EnvelopeError as error:
        return list(error.problems) or [Problem("", "envelope/unreadable", str(error))]
    return known.problems(document, part)


def _document(data: bytes | Document, limits: Limits) -> Document:
    return data if isinstance(data, Document) else parse(data, limits=limits)


def place(document: Document, dialect: str | None, part: str | None = None) -> tuple[Dialect, str]:
    """The dialect and the part to read a document as."""
    if dialect is None and part is None:
        return recognise(document)
    if dialect is None:
        return _with_part(document, str(part)), str(part)
    known = DIALECTS[dialect]
    if part is None:
        part = known.part_of(document.value)
    elif part not in known.parts:
        raise UsageError(f"{dialect} has no part {part!r}", hint=f"it has {', '.join(known.parts)}")
    return known, part


def _with_part(document: Document, part: str) -> Dialect:
    """The dialect for a part named without one: the recognised, else the only one with it."""
    try:
        dialect, _ = recognise(document)
    except EnvelopeError:
        dialect = None
    if dialect is not None and part in dialect.parts:
        return dialect
    owners = [name for name in DIALECTS if part in DIALECTS[name].parts]
    if len(owners) == 1:
        return DIALECTS[owners[0]]
    if not owners:
        every = sorted({p for name in DIALECTS for p in DIALECTS[name].parts})
        raise UsageError(f"no dialect has a part {part!r}", hint=f"parts: {', '.join(every)}")
    raise UsageError(f"which dialect's {part}?", hint=f"name one of {', '.join(owners)}")


def _filling(values: Mapping[str, str | None]) -> Filling:
    strange = [name for name in values if name not in OPTIONS]
    if strange:
        raise UsageError(f"unknown option {strange[0]!r}", hint=f"options: {', '.join(OPTIONS)}")
    return Filling({name: value for name, value in values.items() if value is not None})
