"""Cutting what a child writes into lines, and knowing what a spoilt line was about. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mcp_envelope.core import salvage
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, FrameError, Id, read_frame
from mcp_envelope.core.strict import Limits

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
            self._head, self._tail = whole[: salvage.KEPT], whole[-salvage.KEPT :]
        else:
            self._tail = (self._tail + data)[-salvage.KEPT :]

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
        return Flaw(why, salvage.answered_in(line.head, line.tail), line.head[:200])
    if line.endswith(b"\r"):
        line = line[:-1]
    try:
        return read_frame(line, limits=limits, size=limits.result)
    except FrameError as error:
        if not line or line.isspace():
            return None
        return Flaw(error, salvage.answered(line), line[:200])


def one_line(raw: bytes) -> bytes:
    """A message as a line of its own; line ends in a JSON text are nothing but white space."""
    if b"\n" in raw or b"\r" in raw:
        raw = raw.translate(_LINE_ENDS)
    return raw + b"\n"
