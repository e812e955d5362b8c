"""One client's conversation with several upstreams, as if they were one server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from mcp_envelope.core.document import dump
from mcp_envelope.core.door import LEGACY, STATELESS, Answer, Outlet
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, FrameError, Id, frame_of, id_key
from mcp_envelope.core.link import Reply
from mcp_envelope.pipeline.answers import failure, status_of

from . import merging
from .arrivals import check_headers, check_identity
from .gathering import gather, listing, tell_of
from .ground import Ground
from .hearing import Hearing
from .label import OFF, advertised, wanted_mode
from .malformed import call_without_id, record_malformed
from .members import Member, SaidError
from .questions import AskingOutlet
from .routing import Routing
from .subscriptions import subscribe
from .ways import PATIENCE, Nowhere, Way

_INITIALIZED: Final = "notifications/initialized"
_CANCELLED: Final = "notifications/cancelled"


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
        self.on_failed: Callable[[], None] | None = None
        self._members = dict(members)
        self._routing = routing
        self._ground = ground
        self._door = door
        self._peer = peer
        self._stateless = stateless
        self._opening: Frame | None = None
        self._ready = False
        self._probed: list[Member] = []
        self._agreed = STATELESS if stateless else LEGACY
        self._hearing = Hearing(self._members)
        self._pending: dict[int, Way] = {}
        self._subscribed: dict[int, tuple[Frame, asyncio.Task[None]]] = {}
        self._own: dict[str, Callable[[Frame], Awaitable[Answer]]] = {
            "initialize": self._greet,
            "server/discover": self._discover,
            "ping": self._ping,
            "logging/setLevel": self._set_level,
            **dict.fromkeys(merging.LISTS, self._list),
        }

    @property
    def is_idle(self) -> bool:
        """Whether no call is under way, and nobody listens."""
        return not self._pending and not self._subscribed and not self._hearing.inbox.readers

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
                self._check(frame, head)
                await outlet.answer(await own(frame))
            elif frame.method == "subscriptions/listen":
                self._check(frame, head)
                await self._subscribe(frame, head, outlet)
            else:
                await self._route(frame, head, outlet)
        except EnvelopeError as error:
            await outlet.answer(self._failure(error, frame, head))
        except asyncio.CancelledError:
            await outlet.answer(self._failure(_stopped(), frame, head))
        finally:
            self.used = self._ground.tick()

    async def malformed(self, error: FrameError, size: int) -> Answer:
        """Record bytes that are no message, and say what is wrong with them."""
        return await record_malformed(
            error, self._ground, door=self._door, peer=self._peer, revision=self._agreed
        )

    async def listen(self, head: Mapping[str, str]) -> Reply:
        """What belongs to no message of the client's, from all upstreams."""
        return self._hearing.inbox.open()

    def gone(self, frame: Frame) -> None:
        """The client does not read the answer to this message any more."""
        way = self._pending.get(id(frame))
        if way is not None:
            if way.member is not None:
                way.member.talk.gone(frame)
            elif (frame.revision or self._agreed) >= STATELESS:
                way.end()
        subscribed = self._subscribed.get(id(frame))
        if subscribed is not None:
            subscribed[1].cancel()

    async def close(self) -> None:
        """End the conversation with all of them."""
        for _, task in self._subscribed.values():
            task.cancel()
        await self._hearing.close()
        await asyncio.gather(*(member.close() for member in self._members.values()))

    def _check(self, frame: Frame, head: Mapping[str, str]) -> None:
        """What of a stateless request must be there, where no talk looks at it."""
        if self._door != "http" or self._revision(frame, head) < STATELESS:
            return
        check_identity(frame)
        check_headers(frame, head)

    def _revision(self, frame: Frame, head: Mapping[str, str]) -> str:
        return frame.revision or head.get("mcp-protocol-version") or self._agreed

    # -- calls -------------------------------------------------------------------------------

    async def _route(self, frame: Frame, head: Mapping[str, str], outlet: Outlet) -> None:
        """Hand a request to the one upstream that it is for."""
        is_new = self._stateless or all(
            not _same(way.frame, frame) for way in self._pending.values()
        )
        way = self._pending[id(frame)] = Way(frame)
        try:
            if not is_new:
                why = "a request with this id is under way"
                hint = "give each request an id of its own"
                raise EnvelopeError(why, pointer="/id", hint=hint)
            member, sent = await self._found(way)
            way.member = member
            asking = AskingOutlet(outlet, self._hearing.changed(member))
            await member.talk.handle(frame, head, asking, sent=sent)
        except EnvelopeError as error:  # the talk answers its own
            some = next(iter(self._members.values()))  # by the way of all calls: it is recorded
            await some.talk.handle(frame, head, outlet, flaw=error)
        finally:
            del self._pending[id(frame)]

    async def _found(self, way: Way) -> tuple[Member, Frame]:
        """Whom a request is for, once there has been a handshake with it."""
        stand_by = self._stand_by(way.frame)
        try:
            async with way.waiting:
                found = await self._routing.find(way.frame, self._members, stand_by)
                await stand_by(found[0])
                return found
        except asyncio.CancelledError:
            raise _stopped() from None
        except TimeoutError:
            if way.is_cancelled:
                why = "the client wanted no answer any more"
                raise EnvelopeError(why, code="CANCELLED") from None
            raise EnvelopeError(
                f"the upstream has not answered initialize in {PATIENCE:g} s",
                code="UPSTREAM_UNAVAILABLE",
            ) from None

    def _stand_by(self, frame: Frame) -> Callable[[Member], Awaitable[object]]:
        """How a member is made ready to be asked something on behalf of a request."""

        async def stand_by(member: Member) -> object:
            if frame.revision is not None or self._opening is None:
                return None
            return await member.greet(self._opening, self._is_ready)

        return stand_by

    def _is_ready(self) -> bool:
        return self._ready

    async def _subscribe(self, frame: Frame, head: Mapping[str, str], outlet: Outlet) -> None:
        members = list(self._members.values())
        task = asyncio.create_task(subscribe(members, frame, head, outlet))
        self._subscribed[id(frame)] = (frame, task)
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()
            del self._subscribed[id(frame)]
        if not task.cancelled():
            task.result()

    # -- answers of the gateway's own ----------------------------------------------------------

    async def _greet(self, frame: Frame) -> Answer:
        # Servers of both eras stay in that of the first request, which was a probe in vain.
        probed, self._probed = self._probed, []
        await asyncio.gather(*(member.link.renew() for member in probed))
        self._opening = frame
        members = self._members.values()
        found, failed = await gather(members, lambda each: each.greet(frame, self._is_ready))
        if not found:
            raise _nobody(failed)
        answers = {name: result.value for name, result in found.items()}
        result = merging.initialized(answers, tell_of(failed))
        self._agreed = result["protocolVersion"]
        mode = wanted_mode(frame.params.get("capabilities"))
        for member in members:
            member.talk.agreed = self._agreed
            member.talk.label_mode = mode
        self._hearing.begin(frame, self._is_ready)
        return self._introduced(frame, result)

    async def _discover(self, frame: Frame) -> Answer:
        """Say what there is; but if some server knows only the older revisions, its answer.

        Clients of both eras then shake hands, and have all of them.
        """
        members = self._members.values()
        params = frame.document.at("/params")
        found, failed = await gather(members, lambda each: each.ask(frame.method, params))
        said = {name: each for name, each in failed.items() if isinstance(each, SaidError)}
        older = {name: each for name, each in said.items() if not each.tells_version}
        if older and not self._stateless:
            self._probed = [each for each in members if each.name not in older]
        if older:
            raise next(iter(older.values()))
        if not found:
            raise _nobody(failed)
        answers = {name: result.value for name, result in found.items()}
        if not self._stateless:
            self._agreed = STATELESS
            self._hearing.begin(None, self._is_ready)
        return self._introduced(frame, merging.discovered(answers, tell_of(failed)))

    def _introduced(self, frame: Frame, result: object) -> Answer:
        shown = frame_of({"jsonrpc": "2.0", "id": frame.id, "result": result})
        if all(member.route.rules().label == OFF for member in self._members.values()):
            return Answer(raw=shown.raw)
        return Answer(raw=advertised(shown, stateless=frame.revision is not None).raw)

    async def _ping(self, frame: Frame) -> Answer:
        return _success(frame.id, {"resultType": "complete"} if frame.revision else {})

    async def _set_level(self, frame: Frame) -> Answer:
        params = frame.document.at("/params")
        members = self._members.values()
        able = any(member.can("logging") for member in members)
        if frame.revision is not None or not able:
            raise EnvelopeError("no upstream has logs of a level", code="METHOD_NOT_FOUND")
        _, failed = await gather(members, lambda member: member.set_level(params))
        said = [error for error in failed.values() if isinstance(error, SaidError)]
        if said or len(failed) == len(self._members):
            raise _nobody(failed)
        return _success(frame.id, {})

    async def _list(self, frame: Frame) -> Answer:
        if "cursor" in frame.params:
            return _no_cursor(frame)
        stateless = frame.revision is not None
        asked, failed = await listing(
            frame.method, frame, self._members.values(), self._stand_by(frame)
        )
        found = {name: pages for name, pages in asked.items() if pages is not None}
        if not stateless:
            self._hearing.missed(asked, failed)
        if not found and failed:
            raise _nobody(failed)
        if not found:
            raise EnvelopeError(f"no upstream has {frame.method}", code="METHOD_NOT_FOUND")
        entries = self._routing.merged(frame.method, found)
        pages = [page.value for its in found.values() for page in its]
        absent = tell_of(failed)
        result = merging.listed(frame.method, entries, pages, absent, stateless=stateless)
        return _success(frame.id, result)

    # -- notifications and answers of the client's ----------------------------------------------

    async def _take(self, frame: Frame) -> None:
        if frame.shape == "response" or frame.method == "notifications/progress":
            found = self._hearing.questions.to_server(frame)
            if found is not None:
                await self._members[found[0]].tell(found[1])
            return
        if frame.method == _CANCELLED:
            await self._cancel(frame)
            return
        if frame.method == _INITIALIZED:
            self._ready = True
        met = [each for each in self._members.values() if self._has_met(each)]
        await asyncio.gather(*(member.tell(frame) for member in met))

    def _has_met(self, member: Member) -> bool:
        """Whether a member is to hear what goes to all; late ones are told when they come."""
        return member.link.is_made if self._opening is None else member.greeting is not None

    async def _cancel(self, frame: Frame) -> None:
        wanted = frame.params.get("requestId")
        if not isinstance(wanted, (str, int, float)) or isinstance(wanted, bool):
            return
        if self._stateless:  # of many clients, whose ids may be the same: they hang up instead
            return
        for subscription, task in list(self._subscribed.values()):
            if subscription.id is not None and id_key(subscription.id) == id_key(wanted):
                task.cancel()
        for way in list(self._pending.values()):
            if way.frame.id is None or id_key(way.frame.id) != id_key(wanted):
                continue
            if way.member is None:
                way.end()
            else:
                await way.member.talk.handle(frame, {}, Nowhere())

    def _failure(self, error: EnvelopeError, frame: Frame, head: Mapping[str, str]) -> Answer:
        revision = self._revision(frame, head)
        if isinstance(error, SaidError) and error.fault is not None:
            said = frame_of({"jsonrpc": "2.0", "id": frame.id, "error": error.fault})
            return Answer(raw=said.raw, status=status_of(said, revision))
        request_id = self._ground.new_id()
        return failure(error, id=frame.id, revision=revision, request_id=request_id)


def _success(id: Id | None, result: object) -> Answer:
    return Answer(raw=dump({"jsonrpc": "2.0", "id": id, "result": result}))


def _no_cursor(frame: Frame) -> Answer:
    """The answer to who asks for a further page: there is one page only, so nobody was given it."""
    error = {
        "code": -32602,
        "message": "Invalid params",
        "data": {
            "detail": "this cursor is not known: all that there is stands in one page",
            "pointer": "/params/cursor",
            "hint": "leave it out",
        },
    }
    said = frame_of({"jsonrpc": "2.0", "id": frame.id, "error": error})
    return Answer(raw=said.raw, status=status_of(said, frame.revision or LEGACY))


def _same(one: Frame, other: Frame) -> bool:
    return None not in (one.id, other.id) and id_key(one.id or 0) == id_key(other.id or 0)


def _nobody(failed: Mapping[str, EnvelopeError]) -> EnvelopeError:
    """Why there is no answer: in the words of the first that has said something."""
    said = [error for error in failed.values() if isinstance(error, SaidError)]
    if said:
        return said[0]
    return EnvelopeError(
        f"none of the upstreams answers: {', '.join(failed)}",
        code="UPSTREAM_UNAVAILABLE",
        hint="mcp-envelope doctor tells why",
    )


def _stopped() -> EnvelopeError:
    """What is said to a request that waits for something while we are told to stop."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
    return EnvelopeError("the gateway was stopped", code="UPSTREAM_UNAVAILABLE")
