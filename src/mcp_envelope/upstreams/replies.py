"""What comes back from a child, kept until it is taken."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Protocol

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, Id, IdKey, id_key
from mcp_envelope.core.link import Item

_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
LISTEN: Final = "subscriptions/listen"
CANCELLED: Final = "notifications/cancelled"
PROGRESS: Final = "notifications/progress"
LOG_MESSAGE: Final = "notifications/message"
#: Ids of the gateway's own requests begin like this; they are no client's.
OWN_IDS: Final = "mcp-envelope/"


def key_of(value: object) -> IdKey | None:
    """What to look an id or a token up by; None for what is neither text nor number."""
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return id_key(value)
    return None


class PipeReply:
    """What no pipe can say (status, headers), and what is the same for all replies."""

    status: int = 200
    headers: Mapping[str, str] = _NO_HEADERS
    streams: bool | None = None
    body: bytes = b""

    def __aiter__(self) -> PipeReply:
        return self

    async def __anext__(self) -> Item:
        raise StopAsyncIteration

    async def close(self) -> None:
        """Nothing is under way."""


class Accepted(PipeReply):
    """The reply to what wants no answer."""

    status = 202


class CallOwner(Protocol):
    """Who is told what happens to a call."""

    def taken(self, call: Call) -> None:
        """Something was taken out of a call that is ``held``."""

    def closed(self, call: Call) -> None:
        """Nobody wants any more of a call that has not ended."""

    def over(self, call: Call) -> None:
        """A call has ended, one way or another."""


class Call(PipeReply):
    """A request that is under way, and its reply.

    ``mark`` is how many bytes had been sent to the child with it. ``held`` marks a call of
    which too much is waiting to be taken. ``cancelled``: the child was told so already.
    """

    def __init__(self, frame: Frame, owner: CallOwner) -> None:
        found = frame.id
        assert found is not None  # noqa: S101 - only requests are made into calls
        meta = frame.meta
        self.id: Id = found
        self.key: IdKey = id_key(found)
        self.token: object = meta.get("progressToken")
        self.token_key = key_of(self.token)
        self.method = frame.method
        self.asks_logs = LOG_LEVEL in meta and self.method != LISTEN
        self.mark = 0
        self.number = 0
        self.held = self.cancelled = self.ended = False
        self.size = 0
        self._owner = owner
        self._items: deque[Item] = deque()
        self._error: EnvelopeError | None = None
        self._waiter: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._items)

    def put(self, frame: Frame) -> None:
        """Something on the way to the answer."""
        if not self.ended:
            self._items.append(Item(frame))
            self.size += len(frame.raw)
            self._wake()

    def finish(self, frame: Frame | None = None) -> None:
        """The answer, or the end without one."""
        if frame is not None:
            self.put(frame)
        if not self.ended:
            self.ended = True
            self._owner.over(self)
            self._wake()

    def fail(self, error: EnvelopeError, *, at_once: bool = False) -> None:
        """There will be no answer; ``at_once`` drops what has not been taken yet."""
        if not self.ended:
            if at_once:
                self._items.clear()
                self.size = 0
            self._error = error
            self.finish()

    async def __anext__(self) -> Item:
        while not self._items:
            if self.ended:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            waiter = self._waiter = asyncio.get_running_loop().create_future()
            await waiter
        item = self._items.popleft()
        if item.frame is not None:
            self.size -= len(item.frame.raw)
        if self.held:
            self._owner.taken(self)
        return item

    async def close(self) -> None:
        """Cancel it, if it has not ended."""
        self._items.clear()
        self.size = 0
        self._error = None
        if not self.ended:
            self._owner.closed(self)
            self.finish()
        if self.held:
            self._owner.taken(self)

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


class MailboxOwner(Protocol):
    """Who is told what happens to a mailbox."""

    def mail_taken(self) -> None:
        """Something was taken out."""

    def mail_dropped(self, frame: Frame) -> None:
        """Something was dropped, because nobody listens."""


class Mailbox:
    """What belongs to no request, until somebody listens.

    Several may listen; each message goes to one of them, the latest if it is waiting.
    """

    def __init__(self, owner: MailboxOwner, *, most: int, most_bytes: int) -> None:
        self._owner = owner
        self._most = most
        self._most_bytes = most_bytes
        self.frames: deque[Frame] = deque()
        self.size = 0
        self.listeners: list[Listening] = []
        self.ended = False

    def listen(self) -> PipeReply:
        """One more listener."""
        listener = Listening(self)
        self.listeners.append(listener)
        return listener

    def put(self, frame: Frame) -> None:
        """Keep it for whoever listens; where nobody does, only so many are kept."""
        if self.ended:
            return
        self.frames.append(frame)
        self.size += len(frame.raw)
        for listener in reversed(self.listeners):
            if listener.wake():
                return
        while not self.listeners and self.frames and self.is_full():
            self._owner.mail_dropped(self.take())

    def is_full(self) -> bool:
        """Whether more is kept than should be."""
        return len(self.frames) > self._most or self.size > self._most_bytes

    def take(self) -> Frame:
        """The oldest."""
        frame = self.frames.popleft()
        self.size -= len(frame.raw)
        return frame

    def end(self) -> None:
        """Nothing will come any more."""
        self.ended = True
        for listener in self.listeners:
            listener.wake()

    def took(self) -> None:
        """A listener took something."""
        self._owner.mail_taken()


class Listening(PipeReply):
    """One listener's end of a mailbox."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    def wake(self) -> bool:
        """Let it look again; False if it was not waiting."""
        waiter, self._waiter = self._waiter, None
        if waiter is None or waiter.done():
            return False
        waiter.set_result(None)
        return True

    async def __anext__(self) -> Item:
        mailbox = self._mailbox
        while self._closed or not mailbox.frames:
            if self._closed or mailbox.ended:
                raise StopAsyncIteration
            waiter = self._waiter = asyncio.get_running_loop().create_future()
            await waiter
        frame = mailbox.take()
        mailbox.took()
        return Item(frame)

    async def close(self) -> None:
        """Listen no longer; what was not taken waits for the next one."""
        if not self._closed:
            self._closed = True
            self._mailbox.listeners.remove(self)
            self.wake()
            for other in self._mailbox.listeners:
                other.wake()
            self._mailbox.took()
