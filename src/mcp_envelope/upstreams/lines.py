"""Cutting what a child writes into lines, and knowing what a spoilt line was about. No I/O."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, FrameError, Id, read_frame
from mcp_envelope.core.strict import Limits

_KEPT: Final = 64 * 1024
_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_KEY: Final = re.compile(rb"[ \t\r\n,{]*+(" + _STRING + rb")[ \t\r\n]*+:[ \t\r\n]*+", re.DOTALL)
_SCALAR: Final = re.compile(
    _STRING + rb"|-?[0-9][0-9.eE+-]*+(?=[ \t\r\n,}])|true|false|null", re.DOTALL
)
_LAST_ID: Final = re.compile(
    rb',\s*+"id"\s*+:\s*+('
    + _STRING
    + rb'|-?[0-9]++)\s*+(?:,\s*+"jsonrpc"\s*+:\s*+"2\.0"\s*+)?}\s*+\Z',
    re.DOTALL,
)
_LINE_ENDS: Final = bytes.maketrans(b"\r\n", b"  ")


@dataclass(frozen=True, slots=True)
class Overlong:
    """What is kept of a line that is longer than accepted: its two ends."""

    head: bytes
    tail: bytes
    size: int


class LineCutter:
    """Cuts a stream at its line ends. Of a line over ``limit`` bytes only the ends are kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunks: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None
        self._tail = b""

    def feed(self, data: bytes) -> list[bytes | Overlong]:
        """The lines that are complete with these bytes, without their line feeds."""
        found: list[bytes | Overlong] = []
        if self._size:
            cut = data.find(b"\n")
            if cut < 0:
                self._keep(data)
                return found
            self._keep(data[:cut])
            found.append(self._complete())
            data = data[cut + 1 :]
        lines = data.split(b"\n")
        last = lines.pop()
        if len(data) <= self._limit:
            found += lines
        else:
            for line in lines:
                self._keep(line)
                found.append(self._complete())
        if last:
            self._keep(last)
        return found

    def rest(self) -> bytes | Overlong | None:
        """What follows the last line feed, where the stream has ended."""
        return self._complete() if self._size else None

    def _keep(self, data: bytes) -> None:
        self._size += len(data)
        if self._size <= self._limit:
            self._chunks.append(data)
            return
        if self._head is None:
            whole = b"".join(self._chunks) + data
            self._chunks.clear()
            self._head, self._tail = whole[:_KEPT], whole[-_KEPT:]
        else:
            self._tail = (self._tail + data)[-_KEPT:]

    def _complete(self) -> bytes | Overlong:
        size, self._size = self._size, 0
        if self._head is not None:
            found = Overlong(self._head, self._tail, size)
            self._head, self._tail = None, b""
            return found
        line = b"".join(self._chunks)
        self._chunks.clear()
        return line


@dataclass(frozen=True, slots=True)
class Flaw:
    """A line that is no message: why, and the id of the request that it seems to answer."""

    why: EnvelopeError
    id: Id | None
    excerpt: bytes


def read_line(line: bytes | Overlong, limits: Limits) -> Frame | Flaw | None:
    """What a line holds; None if it is blank."""
    if isinstance(line, Overlong):
        message = f"a line has {line.size:,} bytes, more than the {limits.result:,} accepted"
        hint = "raise the limit for results, or let the tool return less at once"
        why = EnvelopeError(message, code="TOO_LARGE", hint=hint)
        return Flaw(why, _answered_in(line.head, line.tail), line.head[:200])
    if line.endswith(b"\r"):
        line = line[:-1]
    try:
        return read_frame(line, limits=limits, size=limits.result)
    except FrameError as error:
        if not line or line.isspace():
            return None
        return Flaw(error, _answered_by(line), line[:200])


def one_line(raw: bytes) -> bytes:
    """A message as a line of its own; line ends in a JSON text are nothing but white space."""
    if b"\n" in raw or b"\r" in raw:
        raw = raw.translate(_LINE_ENDS)
    return raw + b"\n"


def _answered_by(line: bytes) -> Id | None:
    """The id that a spoilt line answers: read leniently, so NaN and repeated keys are fine."""
    try:
        value = json.loads(line.decode("utf-8", "replace").lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return _answered_in(line[:_KEPT], line[-_KEPT:])
    if not isinstance(value, dict) or "method" in value:
        return None
    return _usable(value.get("id")) if "result" in value or "error" in value else None


def _answered_in(head: bytes, tail: bytes) -> Id | None:
    """The same for what is no JSON, or only the ends of it: outermost members are looked at."""
    found: Id | None = None
    answers = False
    position = 0 if head.lstrip().startswith(b"{") else len(head)
    while (key := _KEY.match(head, position)) is not None:
        if key[1] == b'"method"':
            return None
        answers = answers or key[1] in (b'"result"', b'"error"')
        value = _SCALAR.match(head, key.end())
        if value is None:
            break
        if key[1] == b'"id"':
            found = _scalar(value[0])
        position = value.end()
    if answers and found is None and (last := _LAST_ID.search(tail)) is not None:
        found = _scalar(last[1])
    return found if answers else None


def _scalar(text: bytes) -> Id | None:
    try:
        return _usable(json.loads(text))
    except ValueError:
        return None


def _usable(value: Any) -> Id | None:
    if isinstance(value, float):
        return value if value.is_integer() else None
    return value if isinstance(value, (str, int)) and not isinstance(value, bool) else None
