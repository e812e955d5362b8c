"""A conversation that has a child of its own: everything is passed on as it is."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, Id, IdKey, frame_of, id_key
from mcp_envelope.core.hops import SUSPENDED
from mcp_envelope.core.lines import Overlong
from mcp_envelope.core.strict import Limits

from .backoff import Backoff, UnavailableError
from .child import Child, OnGone, OnLine
from .lines import Flaw, one_line, read_line
from .memory import Opening
from .replies import (
    CANCELLED,
    LISTEN,
    LOG_MESSAGE,
    OWN_IDS,
    PROGRESS,
    SUBSCRIPTION,
    Accepted,
    Call,
    Mailbox,
    PipeReply,
    key_of,
)  # fmt: skip
from .reports import Oddities, ended, lost, unreadable

_MOST: Final = 1_000
_MOST_BYTES: Final = 16 * 1024 * 1024
_MOST_MAIL_BYTES: Final = 8 * 1024 * 1024
_REMEMBERED: Final = 1_000
_MAIL: Final = frozenset({
    "notifications/tools/list_changed", "notifications/prompts/list_changed",
    "notifications/resources/list_changed", "notifications/resources/updated",
})  # fmt: skip
_ACCEPTED: Final = Accepted()


class Nursery(Protocol):
    """Who starts children, and sees to it that all of them end."""

    name: str
    limits: Limits
    oddities: Oddities

    def start(self, on_line: OnLine, on_gone: OnGone, backoff: Backoff) -> Child:
        """A new child; UnavailableError if there is none, or not yet."""

    def bury(self, child: Child, backoff: Backoff) -> None:
        """A child is gone: count it if it went by itself, and end what is left of its group."""

    def end(self, child: Child) -> None:
        """End a child without waiting for it."""


def cancellation(id: Id) -> bytes:
    """What tells a server that the answer to a request is not wanted any more."""
    params = {"requestId": id, "reason": "nobody waits for the answer any more"}
    return one_line(frame_of({"jsonrpc": "2.0", "method": CANCELLED, "params": params}).raw)


def refusal(frame: Frame, code: int, message: str) -> bytes:
    """An error as the answer to a request of a server's."""
    error = {"code": code, "message": message}
    return one_line(frame_of({"jsonrpc": "2.0", "id": frame.id, "error": error}).raw)


class OwnLink:
    """A link to one child, which is started again if it ends; ``leave`` is told of the close.

    If the child is gone when a message is sent, it is started again and told how the
    conversation was opened; until then all that is sent waits.
    """

    def __init__(self, nursery: Nursery, leave: Callable[[OwnLink], None]) -> None:
        self._nursery = nursery
        self._leave = leave
        self._backoff = Backoff()
        self._opening = Opening(nursery.name)
        self._child: Child | None = None
        self._starting: asyncio.Task[None] | None = None
        self._closed = False
        self._calls: dict[IdKey, Call] = {}
        self._tokens: dict[IdKey, Call] = {}
        self._clients: dict[IdKey, Call] = {}
        self._asked: set[IdKey] = set()
        self._dropped: dict[tuple[str, IdKey | None], None] = {}
        self._holds = 0
        self._mail_held = False
        self._mail = Mailbox(self, most=_MOST, most_bytes=_MOST_MAIL_BYTES)

    def open(self) -> None:
        """Start the child; UnavailableError if that cannot be."""
        self._child = self._nursery.start(self._received, self._lost, self._backoff)

    async def send(self, frame: Frame, head: Mapping[str, str]) -> PipeReply:
        """Send one message. A reply may still raise UnavailableError: nothing reached the child."""
        is_request = frame.shape == "request"
        if not is_request and not self._is_wanted(frame):
            return _ACCEPTED
        child = self._child
        if child is None or not child.usable or child.full or self._starting or self._closed:
            child = await self._ready(frame)
            if not is_request and not self._is_wanted(frame):
                return _ACCEPTED
        call = self._new_call(frame) if is_request else _ACCEPTED
        self._opening.sent(frame)
        if not child.write(one_line(frame.raw)):
            raise lost(self._nursery.name, await child.finished(), sys.maxsize)
        if isinstance(call, Call):
            self._register(call, child)
        else:
            self._note(frame)
        return call

    async def listen(self, head: Mapping[str, str]) -> PipeReply:
        """What belongs to no request. Each message goes to one listener only."""
        return self._mail.listen()

    async def close(self) -> None:
        """End the conversation and its child."""
        if not self._closed:
            self._closed = True
            calls = list(self._calls.values())
            self._forget_all()
            for call in calls:
                call.fail(ended(self._nursery.name))
            self._mail.end()
            self._leave(self)
            if self._child is not None:
                self._nursery.end(self._child)
        if self._child is not None:
            await self._child.end()

    # What goes to the child.

    async def _ready(self, frame: Frame) -> Child:
        while True:
            child = self._child
            if self._closed:
                raise UnavailableError("the conversation is closed", hint="open another one")
            if self._starting is not None:
                await asyncio.shield(self._starting)
            elif child is None or child.gone is not None:
                self.open()
                if self._opening.is_needed(frame):
                    self._starting = asyncio.create_task(self._reopen())
                    self._starting.add_done_callback(self._started)
            elif not child.usable:
                await child.finished()
            elif child.full:
                await child.room()
            else:
                return child

    async def _reopen(self) -> None:
        child = self._child
        if child is not None:
            try:
                await self._opening.repeat(child)
            except UnavailableError:
                if self._child is child:
                    self._child = None
                self._nursery.end(child)
                raise

    def _started(self, task: asyncio.Task[None]) -> None:
        self._starting = None
        if not task.cancelled():
            task.exception()  # whoever waits has it too; nobody may

    def _new_call(self, frame: Frame) -> Call:
        call = Call(frame, self)
        if call.key in self._calls:
            raise EnvelopeError(
                f"the request id {call.id!r:.100} is in use by a request under way",
                pointer="/id",
                hint="give each request an id of its own",
            )
        return call

    def _register(self, call: Call, child: Child) -> None:
        call.mark = child.accepted
        self._calls[call.key] = call
        if call.token_key is not None:
            self._tokens[call.token_key] = call
        is_own = isinstance(call.id, str) and call.id.startswith(OWN_IDS)
        if not is_own and call.method != LISTEN:
            self._clients[call.key] = call

    def _is_wanted(self, frame: Frame) -> bool:
        """Whether a child is there that a response or a cancellation can be meant for."""
        if frame.shape == "response":
            return key_of(frame.id) in self._asked
        if frame.method == CANCELLED:
            return self._child is not None and self._child.gone is None
        return True

    def _note(self, frame: Frame) -> None:
        if frame.shape == "response":
            self._asked.discard(id_key(frame.id or 0))
        elif frame.method == CANCELLED:
            key = key_of(frame.params.get("requestId"))
            call = self._calls.get(key) if key is not None else None
            if call is not None:
                call.cancelled = True

    # What the child says.

    def _received(self, line: bytes | Overlong) -> None:
        found = read_line(line, self._nursery.limits)
        if found is None or self._closed:
            return
        if isinstance(found, Flaw):
            self._misheard(found)
            return
        if self._child is not None:
            self._child.heard = True
        if found.shape == "response":
            self._answered(found)
        elif found.shape == "notification":
            self._told(found)
        else:
            self._asked.add(id_key(found.id or 0))
            self._unattributed(found)

    def _misheard(self, flaw: Flaw) -> None:
        key = key_of(flaw.id)
        call = self._calls.get(key) if key is not None else None
        if call is None:
            what = f"a line of its output is no message ({flaw.why.outline})"
            self._nursery.oddities.note(what, excerpt=flaw.excerpt)
        else:  # what stands in an answer is not ours to tell
            self._nursery.oddities.note("an answer is unreadable")
            self._forget(call)
            call.fail(unreadable(self._nursery.name, flaw))

    def _answered(self, frame: Frame) -> None:
        key = key_of(frame.id)
        call = self._calls.get(key) if key is not None else None
        if call is not None:
            self._forget(call)
            self._opening.answered(call, frame)
            call.finish(frame)
            self._hold(call)
        elif ("id", key) in self._dropped:
            del self._dropped["id", key]
        elif not self._opening.swallow(frame):
            self._nursery.oddities.note("a response to no request was dropped", frame.id)

    def _told(self, frame: Frame) -> None:
        method = frame.method
        if method == PROGRESS:
            self._progressed(frame)
            return
        if method == SUSPENDED:
            self._suspended(frame)
            return
        named = frame.params.get("requestId") if method == CANCELLED else None
        key = key_of(frame.meta.get(SUBSCRIPTION) if named is None else named)
        call = self._calls.get(key) if key is not None else None
        if call is not None and (named is None or call.method == LISTEN):
            call.put(frame)
            if named is not None:  # so a server ends a subscription on pipes
                self._forget(call)
                self._dropped["id", call.key] = None
                call.finish()
            self._hold(call)
        elif method in _MAIL:
            self._post(frame)
        else:
            self._unattributed(frame)

    def _suspended(self, frame: Frame) -> None:
        key = key_of(frame.params.get("requestId"))
        call = self._calls.get(key) if key is not None else None
        if call is not None:
            call.put(frame)
            self._hold(call)

    def _progressed(self, frame: Frame) -> None:
        key = key_of(frame.params.get("progressToken"))
        call = self._tokens.get(key) if key is not None else None
        if call is not None:
            call.put(frame)
            self._hold(call)
        elif ("token", key) not in self._dropped:
            self._post(frame)

    def _unattributed(self, frame: Frame) -> None:
        """What names no request belongs to the only one there is, else to none."""
        calls = list(self._clients.values())
        if len(calls) > 1 and frame.method == LOG_MESSAGE:
            calls = [call for call in calls if call.asks_logs]
        if len(calls) == 1:
            calls[0].put(frame)
            self._hold(calls[0])
        else:
            self._post(frame)

    def _post(self, frame: Frame) -> None:
        self._mail.put(frame)
        if not self._mail_held and self._mail.listeners and self._mail.is_full():
            self._mail_held = True
            self._pause()

    def _lost(self, child: Child) -> None:
        self._nursery.bury(child, self._backoff)
        gone = child.gone
        if child is not self._child or gone is None:
            return
        name = self._nursery.name
        calls = list(self._calls.values())
        self._forget_all()
        for call in calls:
            call.fail(lost(name, gone, call.mark))
        self._opening.lost(UnavailableError(f"upstream {name!r} {gone.how}"))

    def _forget(self, call: Call) -> None:
        del self._calls[call.key]
        self._clients.pop(call.key, None)
        if call.token_key is not None and self._tokens.get(call.token_key) is call:
            del self._tokens[call.token_key]

    def _forget_all(self) -> None:
        for kept in (self._calls, self._tokens, self._clients, self._asked, self._dropped):
            kept.clear()

    # What those who take it do.

    def closed(self, call: Call) -> None:
        """Nobody wants the answer any more: say so to the child, and let it be late."""
        if self._calls.get(call.key) is not call:
            return
        self._forget(call)
        while len(self._dropped) > _REMEMBERED:
            del self._dropped[next(iter(self._dropped))]
        self._dropped["id", call.key] = None
        if call.token_key is not None:
            self._dropped["token", call.token_key] = None
        # "initialize" must not be cancelled (2025-11-25, basic/utilities/cancellation).
        if self._child is not None and not call.cancelled and call.method != "initialize":
            self._child.write(cancellation(call.id))

    def over(self, call: Call) -> None:
        """Those that end are forgotten by whoever ends them."""

    def _hold(self, call: Call) -> None:
        if not call.held and (len(call) > _MOST or call.size > _MOST_BYTES):
            call.held = True
            self._pause()

    def taken(self, call: Call) -> None:
        """Read on, if enough of a call was taken."""
        if call.held and len(call) <= _MOST // 2 and call.size <= _MOST_BYTES // 2:
            call.held = False
            self._resume()

    def mail_taken(self) -> None:
        """Read on, if enough was taken of what belongs to no call."""
        mail = self._mail
        enough = len(mail.frames) <= _MOST // 2 and mail.size <= _MOST_MAIL_BYTES // 2
        if self._mail_held and (enough or not mail.listeners):
            self._mail_held = False
            self._resume()

    def mail_dropped(self, frame: Frame) -> None:
        """Nobody listened: a question is answered, so that the server does not wait."""
        self._nursery.oddities.note("dropped a message that nobody listened for", frame.method)
        if frame.shape == "request":
            self._asked.discard(id_key(frame.id or 0))
            if self._child is not None:
                self._child.write(refusal(frame, -32603, "the client does not listen"))

    def _pause(self) -> None:
        self._holds += 1
        if self._child is not None:
            self._child.pause()

    def _resume(self) -> None:
        self._holds -= 1
        if self._holds == 0 and self._child is not None:
            self._child.resume()
