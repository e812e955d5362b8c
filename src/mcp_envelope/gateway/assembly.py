"""One client's conversation with several upstreams, as if they were one server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from mcp_envelope.core.document import Document, dump
from mcp_envelope.core.door import LEGACY, STATELESS, Answer, Outlet
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, FrameError, Id, frame_of, id_key
from mcp_envelope.core.link import Item, Reply
from mcp_envelope.pipeline.answers import failure

from . import merging
from .gathering import Inbox, gather, listing
from .ground import Ground, log
from .label import advertised, wanted_mode
from .malformed import call_without_id, record_malformed
from .members import Member
from .questions import AskingOutlet, Questions
from .routing import Routing
from .subscriptions import subscribe

_INITIALIZED: Final = "notifications/initialized"
_CANCELLED: Final = "notifications/cancelled"
_OPENINGS: Final = ("initialize", "server/discover")
_CHANGES: Final = {
    "tools/list": "notifications/tools/list_changed",
    "prompts/list": "notifications/prompts/list_changed",
    "resources/list": "notifications/resources/list_changed",
}


class Assembly:
    """A conversation with several upstreams, as a door's ``Conversation``.

    Calls go to the one they name, lists are put together, and one that is slow or dead is
    absent from them without holding up the rest; the log and ``_meta`` say so.
    """

    relays = False
    resumable = False

    def __init__(
        self,
        members: Mapping[str, Member],
        routing: Routing,
        ground: Ground,
        *,
        door: str,
        peer: str,
        stateless: bool,
        session: str | None,
    ) -> None:
        self.session = session
        self.used = ground.tick()
        self._members = dict(members)
        self._routing = routing
        self._ground = ground
        self._door = door
        self._peer = peer
        self._stateless = stateless
        self._opening: Frame | None = None
        self._ready = False
        self._agreed = STATELESS if stateless else LEGACY
        self._questions = Questions()
        self._inbox = Inbox()
        self._pending: dict[int, tuple[Frame, Member]] = {}
        self._subscribed: dict[int, tuple[Frame, asyncio.Task[None]]] = {}
        self._listening: list[asyncio.Task[None]] = []
        self._own: dict[str, Callable[[Frame, Outlet], Awaitable[Answer]]] = {
            "initialize": self._greet,
            "server/discover": self._greet,
            "ping": self._ping,
            "logging/setLevel": self._set_level,
            **dict.fromkeys(merging.LISTS, self._list),
        }

    @property
    def is_idle(self) -> bool:
        """Whether no call is under way."""
        return not self._pending

    # -- what the door calls ---------------------------------------------------------------

    async def handle(self, frame: Frame, head: Mapping[str, str], outlet: Outlet) -> None:
        """Take one message all the way; the answer is given to the outlet before this returns."""
        self.used = self._ground.tick()
        if frame.shape != "request":
            if (why := call_without_id(frame)) is not None:
                await outlet.answer(await self.malformed(why, len(frame.raw)))
                return
            await self._take(frame)
            await outlet.answer(Answer(status=202))
            return
        own = self._own.get(frame.method)
        try:
            if own is not None:
                await outlet.answer(await own(frame, outlet))
            elif frame.method == "subscriptions/listen":
                await self._subscribe(frame, head, outlet)
            else:
                await self._route(frame, head, outlet)
        except EnvelopeError as error:
            await outlet.answer(self._failure(error, frame))

    async def malformed(self, error: FrameError, size: int) -> Answer:
        """Record bytes that are no message, and say what is wrong with them."""
        return await record_malformed(
            error, self._ground, door=self._door, peer=self._peer, revision=self._agreed
        )

    async def listen(self, head: Mapping[str, str]) -> Reply:
        """What belongs to no message of the client's, from all upstreams."""
        return self._inbox.open()

    def gone(self, frame: Frame) -> None:
        """The client does not read the answer to this message any more."""
        found = self._pending.get(id(frame))
        if found is not None:
            found[1].talk.gone(frame)
        subscribed = self._subscribed.get(id(frame))
        if subscribed is not None:
            subscribed[1].cancel()

    async def close(self) -> None:
        """End the conversation with all of them."""
        for task in self._listening:
            task.cancel()
        await asyncio.gather(*(member.close() for member in self._members.values()))
        self._inbox.shut()

    # -- calls -------------------------------------------------------------------------------

    async def _route(self, frame: Frame, head: Mapping[str, str], outlet: Outlet) -> None:
        """Hand a request to the one upstream that it is for."""
        try:
            found = await self._routing.find(frame, self._members, self._stand_by(frame))
        except EnvelopeError as error:
            await self._refuse(frame, head, outlet, error)
            return
        member, sent = found
        change = self._changed_by(member)
        self._pending[id(frame)] = (frame, member)
        try:
            await self._stand_by(frame)(member)
            await member.talk.handle(frame, head, AskingOutlet(outlet, change), sent=sent)
        except EnvelopeError as error:  # of the handshake: the talk answers its own
            await self._refuse(frame, head, outlet, error)
        finally:
            del self._pending[id(frame)]

    async def _refuse(
        self, frame: Frame, head: Mapping[str, str], outlet: Outlet, error: EnvelopeError
    ) -> None:
        """Answer with an error, by the same way as all calls, so that it is recorded."""
        some = next(iter(self._members.values()))
        await some.talk.handle(frame, head, outlet, flaw=error)

    def _changed_by(self, member: Member) -> Callable[[Frame], Frame]:
        return lambda frame: self._questions.to_client(member.name, frame)

    def _stand_by(self, frame: Frame) -> Callable[[Member], Awaitable[object]]:
        """How a member is made ready to be asked something on behalf of a request."""

        async def stand_by(member: Member) -> object:
            if frame.revision is not None or self._opening is None:
                return None
            return await member.greet(self._opening, ready=self._ready)

        return stand_by

    async def _subscribe(self, frame: Frame, head: Mapping[str, str], outlet: Outlet) -> None:
        members = list(self._members.values())
        task = asyncio.create_task(subscribe(members, frame, head, outlet))
        self._subscribed[id(frame)] = (frame, task)
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()
            del self._subscribed[id(frame)]

    # -- answers of the gateway's own ----------------------------------------------------------

    async def _greet(self, frame: Frame, outlet: Outlet) -> Answer:
        self._opening = frame
        found, absent = await gather(
            self._members.values(), lambda member: member.greet(frame, ready=self._ready)
        )
        if not found:
            raise _nobody(absent)
        answers = {name: result.value for name, result in found.items()}
        merge = merging.initialized if frame.method == "initialize" else merging.discovered
        result = merge(answers, absent)
        self._agreed = result.get("protocolVersion", STATELESS)
        for member in self._members.values():
            member.talk.agreed = self._agreed
        self._listen()
        mode = wanted_mode(frame.params.get("capabilities"))
        for member in self._members.values():
            member.talk.label_mode = mode
        shown = frame_of({"jsonrpc": "2.0", "id": frame.id, "result": result})
        return Answer(raw=advertised(shown, stateless=frame.revision is not None).raw)

    async def _ping(self, frame: Frame, outlet: Outlet) -> Answer:
        return _success(frame.id, {})

    async def _set_level(self, frame: Frame, outlet: Outlet) -> Answer:
        params = frame.document.at("/params")
        able = [member for member in self._members.values() if member.can("logging")]
        found, _ = await gather(able, lambda member: member.ask(frame.method, params))
        if able and not found:
            raise EnvelopeError("no upstream took the level", code="UPSTREAM_UNAVAILABLE")
        return _success(frame.id, {})

    async def _list(self, frame: Frame, outlet: Outlet) -> Answer:
        stateless = frame.revision is not None
        found, absent = await listing(
            frame, self._members.values(), self._stand_by(frame), stateless=stateless
        )
        if not found and absent:
            raise _nobody(absent)
        entries: list[Document] = []
        pages: list[Mapping[str, Any]] = []
        for name, results in found.items():
            member = self._members[name]
            for result in results:
                pages.append(result.value)
                entries += self._routing.entries(frame.method, member, result)
        result = merging.listed(frame.method, entries, pages, absent, stateless=stateless)
        return _success(frame.id, result)

    # -- notifications and answers of the client's ----------------------------------------------

    async def _take(self, frame: Frame) -> None:
        if frame.shape == "response" or frame.method == "notifications/progress":
            found = self._questions.to_server(frame)
            if found is not None:
                await self._members[found[0]].tell(found[1])
            return
        if frame.method == _CANCELLED:
            await self._cancel(frame)
            return
        if frame.method == _INITIALIZED:
            self._ready = True
        met = [each for each in self._members.values() if each.link.is_made]
        await asyncio.gather(*(member.tell(frame) for member in met))

    async def _cancel(self, frame: Frame) -> None:
        wanted = frame.params.get("requestId")
        if not isinstance(wanted, (str, int, float)) or isinstance(wanted, bool):
            return
        for subscription, task in list(self._subscribed.values()):
            if subscription.id is not None and id_key(subscription.id) == id_key(wanted):
                task.cancel()
        for asked, member in list(self._pending.values()):
            if asked.id is not None and id_key(asked.id) == id_key(wanted):
                await member.talk.handle(frame, {}, _Nowhere())

    # -- what upstreams say by themselves --------------------------------------------------------

    def _listen(self) -> None:
        if not self._listening and not self._stateless:
            self._listening = [
                asyncio.create_task(self._hear(member)) for member in self._members.values()
            ]

    async def _hear(self, member: Member) -> None:
        """Hand on what an upstream says; if it came late, say that there is more now."""
        change = self._changed_by(member)
        await self._announce_late(member)
        try:
            async for item in await member.talk.listen({}):
                if item.frame is not None:
                    self._inbox.put(Item(change(item.frame)))
        except EnvelopeError as error:
            log.warning("%s is not heard any more: %s", member.name, error)

    async def _announce_late(self, member: Member) -> None:
        opening = self._opening
        if member.greeting is not None or opening is None:
            return
        await member.greet_at_last(opening, lambda: self._ready)
        for method, notification in _CHANGES.items():
            if member.can(merging.NEEDED[method]):
                self._inbox.put(Item(frame_of({"jsonrpc": "2.0", "method": notification})))

    def _failure(self, error: EnvelopeError, frame: Frame) -> Answer:
        revision = frame.revision or self._agreed
        request_id = self._ground.new_id()
        return failure(error, id=frame.id, revision=revision, request_id=request_id)


class _Nowhere:
    """An outlet for what nobody waits for."""

    async def begin(self, reply: Reply) -> None:
        """Nothing."""

    async def item(self, item: Item) -> None:
        """Nothing."""

    async def suspend(self) -> bool:
        """There is no stream."""
        return False

    async def answer(self, answer: Answer) -> None:
        """Nothing."""


def _success(id: Id | None, result: object) -> Answer:
    return Answer(raw=dump({"jsonrpc": "2.0", "id": id, "result": result}))


def _nobody(absent: list[str]) -> EnvelopeError:
    return EnvelopeError(
        f"none of the upstreams answers: {', '.join(absent)}",
        code="UPSTREAM_UNAVAILABLE",
        hint="mcp-envelope doctor tells why",
    )
