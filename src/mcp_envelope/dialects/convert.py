"""Bytes to messages, messages to bytes, and one dialect into another, nothing lost in silence."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mcp_envelope.core.document import DEFAULT_LIMITS, Document, Limits, parse
from mcp_envelope.core.errors import ConversionError, EnvelopeError, Problem, UsageError
from mcp_envelope.core.message import Event, Message, Request
from mcp_envelope.core.ports import Dialect

from . import DIALECTS, recognise
from .options import checked_filling


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

    Raises EnvelopeError for whatever breaks the schema, the version or the limits of a part;
    :func:`validate` looks further, as at whether a kind fits its payload (docs/dialects.md).
    """
    document = _document(data, limits)
    known, part = place(document, dialect)
    message = known.decode(document, part)
    _check_size(document, message, limits)
    return message


def encode(message: Message, dialect: str, **filling: str | None) -> bytes:
    """Write a message in a dialect; what it requires and the message lacks is filled in.

    Use :func:`convert` to be told what was filled in and what did not fit. Raises
    ConversionError for what the dialect cannot say, and UsageError for a message made by hand
    that makes no sense.
    """
    if message.origin is None:
        message.check()
    return DIALECTS[dialect].encode(message, checked_filling(filling)).document.raw


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

    ``filling`` gives values for what the target requires (see ``OPTIONS`` in options.py); where
    none is given a placeholder stands in. With ``strict`` anything lost or filled in is a
    ConversionError, and so is a conversion that has no meaning, strict or not.
    """
    target = DIALECTS[to]
    values = checked_filling(filling)
    message = decode(data, from_, limits=limits)
    if message.method is None and filling.get("method") is not None:
        message = replace(message, method=filling["method"])
    encoded = target.encode(message, values)
    _check_size(encoded.document, message, limits)
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
    found = known.problems(document, part)
    if len(document.raw) > limits.request and not any(p.severity == "error" for p in found):
        try:
            decode(document, known.id, limits=limits)
        except EnvelopeError as error:
            found += [problem for problem in error.problems if problem.rule == "document/size"]
    return found


def _check_size(document: Document, message: Message, limits: Limits) -> None:
    """Raise EnvelopeError for a message that is larger than what is accepted of its sort."""
    asks = isinstance(message, (Request, Event))
    size, most = len(document.raw), limits.request if asks else limits.result
    if size > most:
        what = "request" if asks else "result"
        raise EnvelopeError(
            f"the {what} has {size:,} bytes, more than the {most:,} accepted",
            code="TOO_LARGE",
            problems=[Problem("", "document/size", f"{size:,} bytes in a {what}, limit {most:,}")],
        )


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
