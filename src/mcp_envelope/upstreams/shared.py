"""Conversations that share children: ids and progress tokens are told apart on the way.

Only for 2026-07-28, where each request stands for itself. What a child says is given to the
request that it names; log messages name none, so of the requests that ask for logs only one
at a time is with a child, and others go to further children.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Protocol

from mcp_envelope.core import spans
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, IdKey

from .backoff import Backoff, UnavailableError
from .lines import one_line
from .own import Nursery
from .replies import CANCELLED, Accepted, Call, Mailbox, PipeReply, key_of
from .reports import ended, lost
from .room import Room

_ACCEPTED: Final = Accepted()


class House(Nursery, Protocol):
    """A nursery that knows how many children there may be."""

    def has_room(self) -> bool:
        """Whether one more child may be started."""

    def crowded(self) -> UnavailableError:
        """What is said where one more may not."""


class Pool:
    """The shared children of an upstream. The first takes whatever another one need not."""

    def __init__(self, house: House, idle: float) -> None:
        self.house = house
        self._idle = idle
        self._backoff = Backoff()
        self._rooms: list[Room] = []
        self._numbers = itertools.count(1)
        self._turns: deque[asyncio.Future[None]] = deque()
        self._closed = False

    @property
    def count(self) -> int:
        """How many children there are."""
        return len(self._rooms)

    def link(self) -> SharedLink:
        """One more conversation."""
        return SharedLink(self)

    def open(self) -> Room:
        """The first child, started if there is none."""
        if not self._rooms:
            return self._further()
        return self._rooms[0]

    async def send(self, call: Call, frame: Frame) -> Room:
        """Send a request to a child that can take it, once there is one."""
        room = await self._place(call)
        if call.ended:
            self.next_turn()
            raise EnvelopeError("the request was cancelled in time", code="CANCELLED")
        if call.asks_logs and room.is_quiet:
            room.asker = call
        if room.idle is not None:
            room.idle.cancel()
            room.idle = None
        try:
            if room.child.full:
                await room.child.room()
            await room.send(call, frame, next(self._numbers))
        except BaseException:
            room.forget(call)
            raise
        return room

    async def tell(self, frame: Frame) -> None:
        """Send a notification to the first child."""
        while not (room := self.open()).child.usable:
            await room.child.finished()
        if room.child.full:
            await room.child.room()
        if not room.child.write(one_line(frame.raw)):
            raise lost(self.house.name, await room.child.finished(), sys.maxsize)

    async def _place(self, call: Call) -> Room:
        has_waited = False
        while True:
            room = self._choose(call)
            if room is not None:
                if room.child.usable:
                    return room
                await room.child.finished()
                continue
            turn = asyncio.get_running_loop().create_future()
            if has_waited:
                self._turns.appendleft(turn)
            else:
                self._turns.append(turn)
            has_waited = True
            try:
                await turn
            except asyncio.CancelledError:
                with suppress(ValueError):
                    self._turns.remove(turn)
                self.next_turn()
                raise

    def _choose(self, call: Call) -> Room | None:
        """Where a call can go now; None if it has to wait its turn."""
        first = self.open()
        if not call.asks_logs:
            return first
        for room in self._rooms:
            if room.is_quiet:
                return room
        if self.house.has_room():
            return self._further()
        if any(not room.doubtful for room in self._rooms):
            return None
        self.house.oddities.note("logs that may be those of a cancelled request are dropped")
        return first

    def _further(self) -> Room:
        if self._closed:
            raise UnavailableError("the upstream is closed")
        if not self.house.has_room():
            raise self.house.crowded()
        room = Room(self, self.house, self._backoff)
        self._rooms.append(room)
        return room

    def freed(self, room: Room) -> None:
        """A call is over: somebody may have waited for that, or nobody needs the child."""
        if room.asker is None:
            self.next_turn()
        if room.calls or room.asker or room not in self._rooms or room is self._rooms[0]:
            return
        if room.doubtful:
            self._retire(room)
        elif room.idle is None:
            loop = asyncio.get_running_loop()
            room.idle = loop.call_later(self._idle, self._expire, room)

    def leave(self, room: Room) -> None:
        """A child is gone, or is to be."""
        if room in self._rooms:
            self._rooms.remove(room)
        if room.idle is not None:
            room.idle.cancel()
            room.idle = None
        self.next_turn()

    def _expire(self, room: Room) -> None:
        room.idle = None
        if room is not self._rooms[0] and not room.calls and room.asker is None:
            self._retire(room)

    def _retire(self, room: Room) -> None:
        self.leave(room)
        self.house.end(room.child)

    def next_turn(self) -> None:
        """Let the call that waits longest try again."""
        while self._turns:
            turn = self._turns.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    async def close(self) -> None:
        """End all of them."""
        self._closed = True
        rooms, self._rooms = self._rooms, []
        for room in rooms:
            self.leave(room)
            for call in list(room.calls.values()):
                room.forget(call)
                call.fail(ended(self.house.name))
            self.house.end(room.child)
        while self._turns:
            self.next_turn()


class SharedLink:
    """One client's, or one door's, part in the shared children."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._calls: dict[Call, Room | None] = {}  # None while a call waits its turn
        self._by_id: dict[IdKey, Call] = {}
        self._mail = Mailbox(self, most=0, most_bytes=0)
        self._closed = False

    async def send(self, frame: Frame, head: Mapping[str, str]) -> PipeReply:
        """Send one message. A reply may still raise UnavailableError: nothing reached the child.

        A request may have to wait its turn, and is CANCELLED if it is cancelled meanwhile.
        """
        if self._closed:
            raise UnavailableError("the conversation is closed", hint="open another one")
        if frame.shape == "request":
            return await self._call(Call(frame, self), frame)
        if frame.shape == "notification":
            if frame.method == CANCELLED:
                self._cancel(frame)
            else:
                await self._pool.tell(frame)
        return _ACCEPTED

    async def _call(self, call: Call, frame: Frame) -> Call:
        self._calls[call] = None
        self._by_id[call.key] = call
        try:
            self._calls[call] = await self._pool.send(call, frame)
        except BaseException:
            self.over(call)
            raise
        return call

    def _cancel(self, frame: Frame) -> None:
        """Pass a cancellation on, if it means a request that is under way."""
        key = key_of(frame.params.get("requestId"))
        call = self._by_id.get(key) if key is not None else None
        if call is None:
            return
        room = self._calls[call]
        if room is None:
            call.finish()
        else:
            raw = spans.put(frame.raw, ("params", "requestId"), b"%d" % call.number)
            room.child.write(one_line(raw))
            call.cancelled = True

    async def listen(self, head: Mapping[str, str]) -> PipeReply:
        """Nothing comes here: in this revision all that is said belongs to a request."""
        return self._mail.listen()

    async def close(self) -> None:
        """Cancel what is under way; the children stay for others."""
        if not self._closed:
            self._closed = True
            self._mail.end()
            for call, room in list(self._calls.items()):
                if room is not None:
                    room.drop(call)
                call.fail(ended(self._pool.house.name))

    def closed(self, call: Call) -> None:
        """Nobody wants the answer any more."""
        room = self._calls.get(call)
        if room is not None:
            room.drop(call)

    def over(self, call: Call) -> None:
        """A call has ended."""
        self._calls.pop(call, None)
        if self._by_id.get(call.key) is call:
            del self._by_id[call.key]

    def taken(self, call: Call) -> None:
        """Nothing is held up here."""

    def mail_taken(self) -> None:
        """There is none."""

    def mail_dropped(self, frame: Frame) -> None:
        """There is none."""
