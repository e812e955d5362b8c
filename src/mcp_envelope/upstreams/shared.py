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
from typing import Final, Protocol

from mcp_envelope.core import spans
from mcp_envelope.core.document import dump
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, IdKey

from .backoff import Backoff, UnavailableError
from .child import Child
from .lines import Flaw, Overlong, one_line, read_line
from .own import Nursery, cancellation, refusal
from .replies import (
    CANCELLED,
    LISTEN,
    LOG_MESSAGE,
    PROGRESS,
    SUBSCRIPTION,
    Accepted,
    Call,
    Mailbox,
    PipeReply,
    key_of,
)  # fmt: skip
from .reports import ended, lost, unreadable

_MOST: Final = 10_000
_MOST_BYTES: Final = 64 * 1024 * 1024
_REMEMBERED: Final = 10_000
_ACCEPTED: Final = Accepted()
_TOKEN: Final = ("params", "_meta", "progressToken")


class House(Nursery, Protocol):
    """A nursery that knows how many children there may be."""

    def has_room(self) -> bool:
        """Whether one more child may be started."""

    def crowded(self) -> UnavailableError:
        """What is said where one more may not."""


class Room:
    """One shared child, and the calls that are with it.

    ``asker`` is the call with it that asked for logs. ``doubtful`` holds such calls that were
    cancelled and not answered: logs may still be theirs, so they are nobody's.
    """

    def __init__(self, pool: Pool, house: Nursery, backoff: Backoff) -> None:
        self._pool = pool
        self._house = house
        self._backoff = backoff
        self.calls: dict[int, Call] = {}
        self.asker: Call | None = None
        self.doubtful: set[int] = set()
        self._dropped: dict[int, None] = {}
        self.idle: asyncio.TimerHandle | None = None
        self.child: Child = house.start(self._received, self._lost, backoff)

    @property
    def is_quiet(self) -> bool:
        """Whether logs of a further call could be told to be its own."""
        return self.asker is None and not self.doubtful

    async def send(self, call: Call, frame: Frame, number: int) -> None:
        """Send a request under another id."""
        raw = spans.put(frame.raw, ("id",), b"%d" % number)
        if "progressToken" in frame.meta:
            raw = spans.put(raw, _TOKEN, b"%d" % number)
        call.number = number
        self.calls[number] = call
        if not self.child.write(one_line(raw)):
            self.forget(call)
            raise lost(self._house.name, await self.child.finished(), sys.maxsize)
        call.mark = self.child.accepted

    def forget(self, call: Call) -> None:
        """A call is over."""
        self.calls.pop(call.number, None)
        if self.asker is call:
            self.asker = None
        self._pool.freed(self)

    def drop(self, call: Call) -> None:
        """A call is over for its client, and the child is told so."""
        if self.calls.get(call.number) is call:
            if self.asker is call:
                self.doubtful.add(call.number)
            self.forget(call)
            self._dropped[call.number] = None
            while len(self._dropped) > _REMEMBERED:
                del self._dropped[next(iter(self._dropped))]
            if not call.cancelled:
                self.child.write(cancellation(call.number))

    def _received(self, line: bytes | Overlong) -> None:
        found = read_line(line, self._house.limits)
        if found is None:
            return
        if isinstance(found, Flaw):
            self._misheard(found)
            return
        self.child.heard = True
        if found.shape == "response":
            self._answered(found)
        elif found.shape == "notification":
            self._told(found)
        else:
            self._house.oddities.note("a request of its own was refused", found.method)
            self.child.write(refusal(found, -32601, "clients of 2026-07-28 are asked nothing"))

    def _misheard(self, flaw: Flaw) -> None:
        call = self._call(flaw.id)
        what = "an answer is unreadable" if call else "a line of its output is no message"
        self._house.oddities.note(f"{what} ({flaw.why.message})", flaw.excerpt)
        if call is not None:
            self.forget(call)
            call.fail(unreadable(self._house.name, flaw))

    def _call(self, number: object) -> Call | None:
        """The call of a number. ``1.0`` is the same id as ``1``, and true is none."""
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            return None
        return self.calls.get(number)  # type: ignore[call-overload,no-any-return]

    def _answered(self, frame: Frame) -> None:
        call = self._call(frame.id)
        if call is not None:
            self.forget(call)
            frame = frame.put(("id",), call.id)
            if SUBSCRIPTION in frame.meta:
                frame = frame.put(("result", "_meta", SUBSCRIPTION), call.id)
            call.finish(frame)
            return
        number = frame.id
        if number in self._dropped:
            del self._dropped[number]  # type: ignore[arg-type]
            self.doubtful.discard(number)  # type: ignore[arg-type]
            self._pool.freed(self)
        else:
            self._house.oddities.note("a response to no request was dropped", number)

    def _told(self, frame: Frame) -> None:
        method = frame.method
        if method == PROGRESS:
            number = frame.params.get("progressToken")
            call = self._call(number)
            if call is not None and call.token is not None:
                self._give(call, frame.put(("params", "progressToken"), call.token))
                return
        elif method == CANCELLED:
            number = frame.params.get("requestId")
            call = self._call(number)
            if call is not None and call.method == LISTEN:
                self._dropped[call.number] = None
                self.forget(call)
                call.finish(frame.put(("params", "requestId"), call.id))
                return
        elif SUBSCRIPTION in frame.meta:
            number = frame.meta[SUBSCRIPTION]
            call = self._call(number)
            if call is not None:
                self._give(call, frame.put(("params", "_meta", SUBSCRIPTION), call.id))
                return
        else:
            number = None
            if method == LOG_MESSAGE and self.asker is not None and not self.doubtful:
                self._give(self.asker, frame)
                return
        if number is None or number not in self._dropped:
            self._house.oddities.note("a message that is nobody's was dropped", method)

    def _give(self, call: Call, frame: Frame) -> None:
        call.put(frame)
        if len(call) > _MOST or call.size > _MOST_BYTES:
            self.drop(call)
            call.fail(
                EnvelopeError(
                    f"upstream {self._house.name!r} said more on the way to its answer than "
                    "was taken in time",
                    code="TOO_LARGE",
                    hint="read faster, or ask for less progress and fewer logs",
                ),
                at_once=True,
            )

    def _lost(self, child: Child) -> None:
        self._pool.leave(self)
        self._house.bury(child, self._backoff)
        calls, gone = list(self.calls.values()), child.gone
        self.calls.clear()
        self.asker = None
        for call in calls:
            if gone is not None and not child.is_ending:
                call.fail(lost(self._house.name, gone, call.mark))
            else:
                call.fail(ended(self._house.name))


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
        room = self.open()
        if room.child.full:
            await room.child.room()
        if not room.child.write(one_line(frame.raw)):
            raise lost(self.house.name, await room.child.finished(), sys.maxsize)

    async def _place(self, call: Call) -> Room:
        while True:
            room = await self._usable(self._choose(call))
            if room is not None:
                return room
            turn = asyncio.get_running_loop().create_future()
            self._turns.append(turn)
            try:
                await turn
            finally:
                if not turn.done() or turn.cancelled():
                    self._turns.remove(turn)

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

    async def _usable(self, room: Room | None) -> Room | None:
        while room is not None and not room.child.usable:
            await room.child.finished()
            room = self.open()
        return room

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
        if self._turns and room.is_quiet:
            self._next_turn()
        if room.calls or room not in self._rooms or room is self._rooms[0]:
            return
        if room.doubtful:
            self._retire(room)
        elif room.idle is None:
            loop = asyncio.get_running_loop()
            room.idle = loop.call_later(self._idle, self._retire, room)

    def leave(self, room: Room) -> None:
        """A child is gone, or is to be."""
        if room in self._rooms:
            self._rooms.remove(room)
        if room.idle is not None:
            room.idle.cancel()
            room.idle = None
        self._next_turn()

    def _retire(self, room: Room) -> None:
        if not room.calls and room.asker is None:
            self.leave(room)
            self.house.end(room.child)

    def _next_turn(self) -> None:
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
            self._next_turn()


class SharedLink:
    """One client's, or one door's, part in the shared children."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._calls: dict[Call, Room] = {}
        self._by_id: dict[IdKey, Call] = {}
        self._mail = Mailbox(self, most=0, most_bytes=0)
        self._closed = False

    async def send(self, frame: Frame, head: Mapping[str, str]) -> PipeReply:
        """Send one message. A reply may still raise UnavailableError: nothing reached the child."""
        if self._closed:
            raise UnavailableError("the conversation is closed", hint="open another one")
        if frame.shape == "request":
            call = Call(frame, self)
            room = await self._pool.send(call, frame)
            if self._closed:
                room.drop(call)
                raise ended(self._pool.house.name)
            if not call.ended:
                self._calls[call] = room
                self._by_id[call.key] = call
            return call
        if frame.shape == "notification":
            if frame.method == CANCELLED:
                self._cancel(frame)
            else:
                await self._pool.tell(frame)
        return _ACCEPTED

    def _cancel(self, frame: Frame) -> None:
        """Pass a cancellation on, if it means a request that is under way."""
        key = key_of(frame.params.get("requestId"))
        call = self._by_id.get(key) if key is not None else None
        room = self._calls.get(call) if call is not None else None
        if call is not None and room is not None and call.number in room.calls:
            raw = spans.put(frame.raw, ("params", "requestId"), dump(call.number))
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
                room.drop(call)
                call.fail(ended(self._pool.house.name))
            self._calls.clear()
            self._by_id.clear()

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
