"""The stdio door: one client on standard input and output, one message a line."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final, Protocol

from mcp_envelope.core import salvage
from mcp_envelope.core.door import Answer, Conversation, Desk, RefusedError
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, FrameError, read_frame
from mcp_envelope.core.hops import HELLO, SUSPENDED
from mcp_envelope.core.lines import Overlong
from mcp_envelope.core.link import Item, Reply
from mcp_envelope.core.strict import Limits

log = logging.getLogger("mcp_envelope.stdio")

DOOR: Final = "stdio"
#: Whoever started us.
PEER: Final = "local"
#: How long calls may still be answered once the client has ended its input.
_LAST_CALLS: Final = 30.0
#: How long calls may take to end once we are told to stop.
_STOPPING: Final = 2.0
#: Requests that end with the conversation: nobody waits for their answers.
_LASTING: Final = frozenset({"subscriptions/listen"})
_LINE_ENDS: Final = bytes.maketrans(b"\r\n", b"  ")


class Lines(Protocol):
    """Where lines come from and go to. ``stdio_pipes`` has the real one."""

    async def read(self) -> bytes | Overlong | None:
        """The next line without its end, the ends of one that is too long; None at the end."""

    async def write(self, line: bytes) -> None:
        """Write a line, and wait until there is room for more. OSError if nobody reads."""


class StdioDoor:
    """Serves one client on ``lines`` until it ends its input, or :meth:`stop` is called."""

    def __init__(self, desk: Desk, lines: Lines, limits: Limits) -> None:
        self._desk = desk
        self._lines = lines
        self._limits = limits
        self._conversation: Conversation | None = None
        self._opening = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._lasting: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._outlet = _Outlet(self)
        self._for_gateway = False

    async def serve(self) -> None:
        """Answer everything; returns once all that was read is answered, or had its time."""
        reading = asyncio.create_task(self._read())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not self._stopping.is_set() and self._tasks:
                answered = asyncio.create_task(_done(self._tasks))
                waited = {answered, stopping}
                first = asyncio.FIRST_COMPLETED
                await asyncio.wait(waited, timeout=_LAST_CALLS, return_when=first)
                answered.cancel()
        finally:
            reading.cancel()
            stopping.cancel()
            await self._end()

    def stop(self) -> None:
        """End: what is under way is answered as lost, nothing more is read."""
        self._stopping.set()

    async def _read(self) -> None:
        most = self._limits.request
        while (line := await self._lines.read()) is not None:
            if isinstance(line, Overlong):
                why = f"the message has {line.size:,} bytes, more than the {most:,} accepted"
                error = EnvelopeError(why, code="TOO_LARGE")
                flaw = FrameError(error, id=salvage.asked_in(line.head))
                self._start(self._malformed(flaw, line.size))
            elif line.strip():
                try:
                    frame = read_frame(line, limits=self._limits, size=self._limits.request)
                except FrameError as error:
                    self._start(self._malformed(error, len(line)))
                    continue
                if frame.method == HELLO:
                    self._for_gateway = True
                elif frame.method in _LASTING:
                    self._start(self._handle(frame), self._lasting)
                else:
                    self._start(self._handle(frame))

    def _start(
        self, work: Coroutine[Any, Any, None], among: set[asyncio.Task[None]] | None = None
    ) -> None:
        tasks = self._tasks if among is None else among
        task = asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _handle(self, frame: Frame) -> None:
        try:
            conversation = self._conversation or await self._open(frame)
        except RefusedError as refused:
            if frame.shape == "request":
                await self.write_answer(refused.answer)
            return
        await conversation.handle(frame, {}, self._outlet)

    async def _malformed(self, error: FrameError, size: int) -> None:
        answer = await self._desk.malformed(error, size, door=DOOR, peer=PEER)
        await self.write_answer(answer)

    async def _open(self, frame: Frame) -> Conversation:
        async with self._opening:
            if self._conversation is None:
                found = await self._desk.converse(frame, {}, door=DOOR, peer=PEER)
                self._listening = asyncio.create_task(self._listen(found))
                self._conversation = found
        return self._conversation

    async def _listen(self, conversation: Conversation) -> None:
        """Hand on what belongs to no request of the client's."""
        try:
            async for item in await conversation.listen({}):
                await self.write_item(item)
        except EnvelopeError as error:
            log.warning("messages of the upstream's own are not heard any more: %s", error)

    async def write_item(self, item: Item) -> None:
        """Write a message on the way to an answer."""
        frame = item.frame
        if frame is not None and (self._for_gateway or frame.method != SUSPENDED):
            await self._write(frame.raw)

    async def write_answer(self, answer: Answer) -> None:
        """Write an answer, where there is one."""
        if answer.raw is not None:
            await self._write(answer.raw)

    async def _write(self, raw: bytes) -> None:
        if b"\n" in raw or b"\r" in raw:  # white space between tokens: JSON texts hold no other
            raw = raw.translate(_LINE_ENDS)
        try:
            await self._lines.write(raw)
        except OSError as error:
            log.info("the client does not read any more: %s", error)
            self.stop()

    async def _end(self) -> None:
        left = self._tasks | self._lasting
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=_STOPPING)
        if self._listening is not None:
            self._listening.cancel()
        if self._conversation is not None:
            await self._conversation.close()


async def _done(tasks: set[asyncio.Task[None]]) -> None:
    """Wait for all tasks, those as well that are added meanwhile."""
    while tasks:
        await asyncio.wait(tasks)


class _Outlet:
    """Everything goes to the one output; nothing has to be told apart but by its id."""

    def __init__(self, door: StdioDoor) -> None:
        self._door = door

    async def begin(self, reply: Reply) -> None:
        """Nothing is written before there is a message."""

    async def item(self, item: Item) -> None:
        """Write it."""
        await self._door.write_item(item)

    async def suspend(self) -> bool:
        """There is no other stream."""
        return False

    async def answer(self, answer: Answer) -> None:
        """Write it."""
        await self._door.write_answer(answer)
