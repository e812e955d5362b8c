"""Server-sent events, without I/O: bytes in, events out, and back (WHATWG HTML, 9.2.6).

An event keeps the bytes it came in, so that ids, ``retry`` fields, comments and events without
data can be passed on as they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from .errors import EnvelopeError

_BLANK: Final = re.compile(rb"(?>\r\n|\r|\n)(?>\r\n|\r|\n)")
_BOM: Final = b"\xef\xbb\xbf"
_LINES: Final = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Event:
    """One event, or a block of comments. ``data`` is None where it has no data field."""

    raw: bytes
    data: bytes | None = None
    id: bytes | None = None
    name: bytes | None = None
    retry: bytes | None = None

    def with_data(self, data: bytes) -> Event:
        """The same event with other data."""
        fields = [(b"event", self.name), (b"id", self.id), (b"retry", self.retry)]
        lines = [name + b": " + value for name, value in fields if value is not None]
        lines += [b"data: " + line for line in _LINES.split(data)]
        raw = b"\r\n".join(lines) + b"\r\n\r\n"
        return Event(raw, data, self.id, self.name, self.retry)


def event_of(data: bytes, *, id: bytes | None = None) -> Event:
    """An event of our own that carries a message."""
    return Event(b"", None, id, b"message").with_data(data)


class EventReader:
    """Cuts a stream into events. ``limit`` bounds one event, TOO_LARGE if it is passed."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pending = bytearray()
        self._searched = 0
        self._first = True

    def feed(self, data: bytes) -> list[Event]:
        """The events that are complete with these bytes."""
        self._pending += data
        if self._first:
            if len(self._pending) < len(_BOM) and _BOM.startswith(self._pending):
                return []  # it may still become one
            if self._pending.startswith(_BOM):
                del self._pending[: len(_BOM)]
            self._first = False
        return self._cut(last=False)

    def finish(self) -> list[Event]:
        """The event that only the end of the stream completes; the rest is no event."""
        return self._cut(last=True)

    def _cut(self, *, last: bool) -> list[Event]:
        found: list[Event] = []
        start = 0
        while (end := _BLANK.search(self._pending, max(start, self._searched))) is not None:
            if not last and end.end() == len(self._pending) and self._pending[-1:] == b"\r":
                break  # the line end may go on with "\n"
            found.append(read_event(bytes(self._pending[start : end.end()])))
            start = self._searched = end.end()
        del self._pending[:start]
        self._searched = max(0, len(self._pending) - 4)
        if len(self._pending) > self._limit:
            raise EnvelopeError(
                f"an event has more than the {self._limit:,} bytes accepted", code="TOO_LARGE"
            )
        return found


def read_event(raw: bytes) -> Event:
    """One block of lines as an event."""
    data: list[bytes] = []
    fields: dict[bytes, bytes] = {}
    for line in _LINES.split(raw):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name in (b"id", b"event", b"retry"):
            fields[name] = value
    return Event(
        raw,
        b"\n".join(data) if data else None,
        fields.get(b"id"),
        fields.get(b"event"),
        fields.get(b"retry"),
    )
