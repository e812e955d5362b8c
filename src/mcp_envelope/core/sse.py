"""Server-sent events, without I/O: bytes in, events out, and back (WHATWG HTML, 9.2.6).

An event keeps the bytes it came in, so that ids, ``retry`` fields, comments and events without
data can be passed on as they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from .errors import EnvelopeError

_BOM: Final = b"\xef\xbb\xbf"
_FEED, _CARRIAGE = b"\n\r"
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
        start, at = 0, self._searched
        while (end := self._blank_line(at, last=last)) > 0:
            found.append(read_event(bytes(self._pending[start:end])))
            start = at = end
        del self._pending[:start]
        self._searched -= start
        if len(self._pending) > self._limit:
            raise EnvelopeError(
                f"an event has more than the {self._limit:,} bytes accepted", code="TOO_LARGE"
            )
        return found

    def _blank_line(self, at: int, *, last: bool) -> int:
        """Where the next blank line ends, 0 if that is not known; then notes where to go on.

        Most of a stream is long lines, and single bytes are what is found fastest.
        """
        text, size = self._pending, len(self._pending)
        feed, carriage = text.find(b"\n", at), text.find(b"\r", at)
        while feed >= 0 or carriage >= 0:
            place = feed if carriage < 0 or 0 <= feed < carriage else carriage
            after = place + 2 if place == carriage and feed == place + 1 else place + 1
            follower = text[after] if after < size else None
            if follower == _FEED:
                return after + 1
            if follower == _CARRIAGE and (last or after + 1 < size):
                return after + (2 if text[after + 1 : after + 2] == b"\n" else 1)
            if follower is None or follower == _CARRIAGE:
                self._searched = place  # what comes next decides
                return 0
            if 0 <= feed < after:
                feed = text.find(b"\n", after)
            if 0 <= carriage < after:
                carriage = text.find(b"\r", after)
        self._searched = size
        return 0


def read_event(raw: bytes) -> Event:
    """One block of lines as an event."""
    data: list[bytes] = []
    fields: dict[bytes, bytes] = {}
    text = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in raw else raw
    for line in text.split(b"\n"):
        if line.startswith(b"data:"):
            data.append(line[6:] if line[5:6] == b" " else line[5:])
            continue
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(b"")
        elif name in (b"id", b"event", b"retry"):
            fields[name] = value.removeprefix(b" ")
    return Event(
        raw,
        b"\n".join(data) if data else None,
        fields.get(b"id"),
        fields.get(b"event"),
        fields.get(b"retry"),
    )
