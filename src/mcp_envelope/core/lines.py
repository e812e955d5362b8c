"""Cutting a stream into lines, with a bound on what one may cost. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from .salvage import KEPT


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
            self._head, self._tail = whole[:KEPT], whole[-KEPT:]
        else:
            self._tail = (self._tail + data)[-KEPT:]

    def _complete(self) -> bytes | Overlong:
        size, self._size = self._size, 0
        if self._head is not None:
            found = Overlong(self._head, self._tail, size)
            self._head, self._tail = None, b""
            return found
        line = b"".join(self._chunks)
        self._chunks.clear()
        return line
