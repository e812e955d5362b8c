"""One child that several conversations share, and who is told what it says."""

from __future__ import annotations

import asyncio
import sys
from typing import Final, Protocol

from mcp_envelope.core import spans
from mcp_envelope.core.document import parse
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame
from mcp_envelope.core.lines import Overlong

from .backoff import Backoff
from .child import Child
from .lines import Flaw, one_line, read_line
from .own import Nursery, cancellation, refusal
from .replies import CANCELLED, LISTEN, LOG_LEVEL, LOG_MESSAGE, PROGRESS, SUBSCRIPTION, Call
from .reports import ended, lost, unreadable

_MOST: Final = 10_000
_MOST_BYTES: Final = 64 * 1024 * 1024
_REMEMBERED: Final = 10_000
_TOKEN: Final = ("params", "_meta", "progressToken")


class Rooms(Protocol):
    """Who gives out the rooms."""

    def freed(self, room: Room) -> None:
        """A call is over."""

    def leave(self, room: Room) -> None:
        """The child is gone."""


class Room:
    """One shared child, and the calls that are with it.

    ``asker`` is the call with it that asked for logs. ``doubtful`` holds such calls that were
    cancelled and not answered: logs may still be theirs, so they are nobody's.
    """

    def __init__(self, pool: Rooms, house: Nursery, backoff: Backoff) -> None:
        self._pool = pool
        self._house = house
        self._backoff = backoff
        self.calls: dict[int, Call] = {}
        self.asker: Call | None = None
        self.doubtful: set[int | None] = set()
        self._dropped: dict[int | None, None] = {}
        self.idle: asyncio.TimerHandle | None = None
        self.child: Child = house.start(self._received, self._lost, backoff)

    @property
    def is_quiet(self) -> bool:
        """Whether logs of a further call could be told to be its own."""
        return self.asker is None and not self.doubtful

    async def send(self, call: Call, frame: Frame, number: int) -> None:
        """Send a request under another id."""
        raw = spans.put(frame.raw, ("id",), b"%d" % number)
        if call.token is not None:
            raw = spans.put(raw, _TOKEN, b"%d" % number)
        if call.method == LISTEN and LOG_LEVEL in frame.meta:
            # It never ends, and would keep all others from having logs.
            meta = parse(raw, size=len(raw))["params"]["_meta"].without(LOG_LEVEL)
            raw = spans.put(raw, ("params", "_meta"), meta.raw)
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
        if call is None:
            what = f"a line of its output is no message ({flaw.why.outline})"
            self._house.oddities.note(what, excerpt=flaw.excerpt)
        else:  # what stands in an answer is not ours to tell
            self._house.oddities.note("an answer is unreadable")
            self.forget(call)
            call.fail(unreadable(self._house.name, flaw))

    def _call(self, number: object) -> Call | None:
        key = _number(number)
        return self.calls.get(key) if key is not None else None

    def _answered(self, frame: Frame) -> None:
        call = self._call(frame.id)
        if call is not None:
            self.forget(call)
            frame = frame.put(("id",), call.id)
            if SUBSCRIPTION in frame.meta:
                frame = frame.put(("result", "_meta", SUBSCRIPTION), call.id)
            call.finish(frame)
            return
        number = _number(frame.id)
        if number in self._dropped:
            del self._dropped[number]
            self.doubtful.discard(number)
            self._pool.freed(self)
        else:
            self._house.oddities.note("a response to no request was dropped", frame.id)

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
        if _number(number) not in self._dropped:
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


def _number(value: object) -> int | None:
    """The number that an id or a token is: ``1.0`` is the same as ``1``, and true is none."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
