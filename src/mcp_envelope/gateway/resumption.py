"""Answers that come on another stream than the one on which they were asked for.

A server of 2025-11-25 may close the stream of a request before it has answered; the client then
opens another one with GET, and the answer comes there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

from mcp_envelope.core.door import Answer
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, IdKey, id_key
from mcp_envelope.core.link import Item, Reply
from mcp_envelope.core.sse import event_of

#: How long an answer may stay away after its stream was closed.
_PATIENCE: Final = 300.0


class Parked:
    """The outlet of a call whose stream was closed: its answer goes where it came from."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._item: asyncio.Future[Item] = loop.create_future()
        self._answer: asyncio.Future[Answer] = loop.create_future()

    async def arrival(self) -> Item:
        """The item that holds the answer, once it comes."""
        try:
            async with asyncio.timeout(_PATIENCE):
                return await self._item
        except TimeoutError:
            raise EnvelopeError(
                "the upstream closed the stream, and nobody took it up again to the answer",
                code="OUTCOME_UNKNOWN",
            ) from None

    async def finish(self, item: Item) -> Answer:
        """Hand over the answer as it came; what the client is to be told instead of it."""
        if not self._item.done():
            self._item.set_result(item)
        return await self._answer

    async def begin(self, reply: Reply) -> None:
        """Nothing: another stream is open already."""

    async def item(self, item: Item) -> None:
        """Nothing: what is no answer is not held up."""

    async def suspend(self) -> bool:
        """It is suspended."""
        return False

    async def answer(self, answer: Answer) -> None:
        """Let the other stream go on."""
        if not self._answer.done():
            self._answer.set_result(answer)


class Resumed:
    """A stream on which answers to parked calls may come; they are finished on the way."""

    def __init__(
        self,
        reply: Reply,
        parked: Mapping[IdKey, Parked],
        noticed: Callable[[Item], Item],
        closed: Callable[[], None],
    ) -> None:
        self._reply = reply
        self._closed: Callable[[], None] | None = closed
        self._parked = parked
        self._noticed = noticed
        self.status = reply.status
        self.headers = reply.headers
        self.streams = reply.streams
        self.body = reply.body

    async def __aiter__(self) -> AsyncIterator[Item]:
        """The items, with finished answers in place of those that were waited for."""
        async for item in self._reply:
            waiting = self._waiting_for(item.frame)
            if waiting is None:
                yield self._noticed(item)
                continue
            answer = await waiting.finish(item)
            if answer.raw is not None:
                event = item.event or event_of(answer.raw)
                yield Item(None, event.with_data(answer.raw))

    def _waiting_for(self, frame: Frame | None) -> Parked | None:
        if not self._parked or frame is None or frame.shape != "response" or frame.id is None:
            return None
        return self._parked.get(id_key(frame.id))

    async def close(self) -> None:
        """Want no more of it."""
        if self._closed is not None:
            self._closed()
            self._closed = None
        await self._reply.close()
