"""Streams that can be taken up again: what was sent on them is kept, in front of pipes.

From 2025-11-25 on each stream begins with an event that has an id and no data. A client that
lost the stream, or whose stream was closed, names the last event it has seen in a GET, and gets
all that came after it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final

from mcp_envelope.core.door import Answer
from mcp_envelope.core.hops import SUSPENDED
from mcp_envelope.core.link import Item, Reply
from mcp_envelope.core.sse import event_of

from .http_answers import PING, HttpOutlet, Send, begin_stream, send_body

#: The first revision whose clients know such streams.
SINCE: Final = "2025-11-25"
_MOST_STREAMS: Final = 100
_MOST_BYTES: Final = 16 * 1024 * 1024
#: What clients are asked to wait, in milliseconds, before they come back.
_RETRY: Final = b"retry: 1000\r\n"


class Stream:
    """The events of one stream, as they were written. ``grown`` is told by how many bytes."""

    def __init__(self, name: int, grown: Callable[[Stream, int], None]) -> None:
        self.name = name
        self._grown = grown
        self.count = 0
        self.size = 0
        self._events: deque[bytes] = deque()
        self.is_done = False
        self.news = asyncio.Event()

    def add(self, data: bytes | None) -> bytes:
        """Keep a message (None for the first event, which has no data); the event to write."""
        place = f"{self.name}-{self.count}".encode()
        if data is None:
            event = b"id: " + place + b"\r\n" + _RETRY + b"data: \r\n\r\n"
        else:
            event = event_of(data, id=place).raw
        self._events.append(event)
        self.count += 1
        before = self.size
        self.size += len(event)
        while self.size > _MOST_BYTES and len(self._events) > 1:
            self.size -= len(self._events.popleft())
        self._grown(self, self.size - before)
        self.news.set()
        return event

    def has(self, seen: int) -> bool:
        """Whether all events after the first so many are still there."""
        return self.count - len(self._events) <= seen <= self.count

    def after(self, seen: int) -> list[bytes]:
        """The events after the first so many, or of these what is still there."""
        gone = self.count - len(self._events)
        return list(islice(self._events, max(0, seen - gone), None))

    def finish(self) -> None:
        """Nothing more will come."""
        self.is_done = True
        self.news.set()


class Streams:
    """The streams of one session. Those that are done are forgotten first, then the oldest."""

    def __init__(self) -> None:
        self._streams: OrderedDict[int, Stream] = OrderedDict()
        self._count = 0
        self._size = 0

    def open(self) -> Stream:
        """A new one."""
        self._count += 1
        made = self._streams[self._count] = Stream(self._count, self._grown)
        self._forget()
        return made

    def find(self, last: str) -> tuple[Stream, int] | None:
        """The stream that an event id is of, and how many of its events were seen."""
        name, _, number = last.partition("-")
        if not (name.isdecimal() and number.isdecimal() and len(last) < 40):
            return None
        found = self._streams.get(int(name))
        seen = int(number) + 1
        return (found, seen) if found is not None and found.has(seen) else None

    def _grown(self, stream: Stream, by: int) -> None:
        if stream.name in self._streams:
            self._size += by
            self._forget()

    def _forget(self) -> None:
        while len(self._streams) > _MOST_STREAMS or self._size > _MOST_BYTES:
            if len(self._streams) == 1:
                return
            streams = self._streams.values()
            name = next((each.name for each in streams if each.is_done), next(iter(self._streams)))
            self._size -= self._streams.pop(name).size


class KeptOutlet(HttpOutlet):
    """An outlet that is always a stream, and keeps what it wrote."""

    __slots__ = ("_stream",)

    def __init__(self, send: Send, streams: Streams, extra: Mapping[str, str]) -> None:
        super().__init__(send, relays=False, resumable=True, extra=extra)
        self._stream = streams.open()

    async def begin(self, reply: Reply) -> None:
        """The upstream has the request: the stream begins, if it had not on an earlier try."""
        if not self._streaming:
            await self._begin_stream(200, {})

    async def item(self, item: Item) -> None:
        """Something on the way to the answer."""
        if item.frame is None:
            return
        if item.frame.method == SUSPENDED:
            await self.suspend()
            return
        await self._write(self._stream.add(item.frame.raw))

    async def suspend(self) -> bool:
        """Let the client come back for the rest."""
        if not self.is_gone:
            await self._write(b"", last=True)
            self.is_gone = True
        return True

    async def answer(self, answer: Answer) -> None:
        """The answer; nothing follows it."""
        if not self._streaming:
            await super().answer(answer)
        else:
            self.is_done = True
            last = self._stream.add(answer.raw) if answer.raw is not None else b""
            await self._write(last, last=True)
        self._stream.finish()

    async def _begin_stream(self, status: int, headers: Mapping[str, str]) -> None:
        await super()._begin_stream(status, headers)
        await self._write(self._stream.add(None))


async def send_again(send: Send, stream: Stream, seen: int, ping_every: float) -> None:
    """Write what came on a stream after the events that were seen, until it is done.

    ``ping_every`` is in seconds.
    """
    await begin_stream(send, 200, {})
    while True:
        stream.news.clear()
        count, events = stream.count, stream.after(seen)
        for event in events:
            await send_body(send, event)
        seen = count
        if stream.is_done and stream.count == seen:
            break
        if stream.count != seen:
            continue
        try:
            async with asyncio.timeout(ping_every):
                await stream.news.wait()
        except TimeoutError:
            await send_body(send, PING)
    await send_body(send, b"", last=True)
