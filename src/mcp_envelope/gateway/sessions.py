"""Which conversation a message belongs to, and how long each is kept."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

from mcp_envelope.core.door import LEGACY, STATELESS, Answer, Conversation, RefusedError
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, FrameError
from mcp_envelope.core.link import Relay
from mcp_envelope.pipeline.answers import failure
from mcp_envelope.pipeline.record import refused_facts

from .ground import Ground, log
from .malformed import record_malformed
from .route import Route
from .talk import Talk

#: Versions whose clients shake hands first.
STATEFUL: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SESSION: Final = "mcp-session-id"
_VERSION: Final = "mcp-protocol-version"
#: Sessions of an HTTP upstream are only remembered, at most so many.
_MOST_REMEMBERED: Final = 10_000


class Kept(Conversation, Protocol):
    """A conversation that is looked after.

    ``used`` is when it was, by the gateway's clock; ``on_failed`` is to be called where its
    handshake is refused.
    """

    used: float
    on_failed: Callable[[], None] | None

    @property
    def is_idle(self) -> bool:
        """Whether no call is under way."""


class Opener(Protocol):
    """How a conversation of the gateway's own begins."""

    def __call__(self, *, stateless: bool, door: str, peer: str, session: str | None) -> Kept:
        """A new conversation."""


class Sessions:
    """Conversations that the gateway keeps itself (a door's ``Desk``).

    Each client of a stateful revision has one of its own; those of stateless ones share one.
    ``idle`` is how many seconds one is kept that nobody uses.
    """

    def __init__(self, ground: Ground, opener: Opener, *, idle: float) -> None:
        self._ground = ground
        self._open = opener
        self._idle = idle
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._shared: dict[tuple[str, str], Kept] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def converse(
        self, frame: Frame | None, head: Mapping[str, str], *, door: str, peer: str
    ) -> Conversation:
        """The conversation that a message, or a GET (``frame`` is None), belongs to."""
        if door != "http":
            return self._open(stateless=False, door=door, peer=peer, session=None)
        if is_stateless(frame, head):
            return self._share(door, peer)
        version = head.get(_VERSION)
        if version is not None and version not in STATEFUL:
            raise RefusedError(
                await self.refuse(_unsupported(version), frame, head, door=door, peer=peer)
            )
        session = head.get(_SESSION)
        if session is not None and (found := self._kept.get(session)) is not None:
            return found
        if session is not None:
            answer = await self.refuse(_no_session(), frame, head, status=404, door=door, peer=peer)
            raise RefusedError(answer)
        if frame is None or frame.method != "initialize":
            answer = await self.refuse(
                _no_session_named(), frame, head, status=400, door=door, peer=peer
            )
            raise RefusedError(answer)
        session = self._ground.new_id()
        begun = self._open(stateless=False, door=door, peer=peer, session=session)
        self._kept[session] = begun
        begun.on_failed = partial(self._forget, session)
        return begun

    def _forget(self, session: str) -> None:
        """A handshake has failed: there is no session."""
        found = self._kept.pop(session, None)
        if found is not None:
            ending = asyncio.create_task(found.close())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    async def end(self, head: Mapping[str, str], *, door: str, peer: str) -> Answer:
        """End the session that the head names, as a DELETE asks for."""
        session = head.get(_SESSION)
        found = self._kept.pop(session, None) if session is not None else None
        if found is None:
            error, status = (_no_session_named(), 400) if session is None else (_no_session(), 404)
            return await self.refuse(error, None, head, door=door, peer=peer, status=status)
        await found.close()
        return Answer(status=200)

    async def malformed(self, error: FrameError, size: int, *, door: str, peer: str) -> Answer:
        """Record bytes that are no message and belong to no conversation; the answer to them."""
        return await record_malformed(error, self._ground, door=door, peer=peer)

    async def tidy(self) -> None:
        """End sessions that nobody has used for long."""
        oldest = self._ground.tick() - self._idle
        for session, kept in list(self._kept.items()):
            if kept.used >= oldest or not kept.is_idle or self._kept.get(session) is not kept:
                continue
            log.info("a session was ended, unused for long")
            del self._kept[session]
            await kept.close()

    async def close(self) -> None:
        """End all conversations."""
        found = [*self._kept.values(), *self._shared.values()]
        self._kept.clear()
        self._shared.clear()
        await asyncio.gather(*(each.close() for each in found))

    def _share(self, door: str, peer: str) -> Kept:
        found = self._shared.get((door, peer))
        if found is None:
            found = self._open(stateless=True, door=door, peer=peer, session=None)
            self._shared[door, peer] = found
        return found

    async def refuse(
        self,
        error: EnvelopeError,
        frame: Frame | None,
        head: Mapping[str, str],
        *,
        door: str,
        peer: str,
        status: int | None = None,
    ) -> Answer:
        """Record that a message goes nowhere; the answer that says so."""
        request_id = self._ground.new_id()
        facts = refused_facts(
            frame,
            error,
            door=door,
            peer=peer,
            request_id=request_id,
            time=self._ground.now(),
            instance=self._ground.instance,
        )
        try:
            await self._ground.ledger.append(facts)
        except EnvelopeError as unwritten:
            log.error("a refusal could not be recorded: %s", unwritten)
        id = frame.id if frame is not None and frame.shape == "request" else None
        revision = head.get(_VERSION) or (frame.revision if frame is not None else None)
        answer = failure(error, id=id, revision=revision or LEGACY, request_id=request_id)
        return replace(answer, status=status) if status is not None else answer


class RelayedSessions(Sessions):
    """Conversations with an upstream that speaks HTTP itself, and keeps its sessions itself.

    They are only remembered here: a session that is not known is passed on all the same, for
    the upstream to judge.
    """

    def __init__(self, route: Route, ground: Ground, opener: Opener, relay: Relay) -> None:
        super().__init__(ground, opener, idle=route.settings.idle)
        self._route = route
        self._relay = relay
        self._stateless: dict[tuple[str, bool], Talk] = {}

    async def converse(
        self, frame: Frame | None, head: Mapping[str, str], *, door: str, peer: str
    ) -> Conversation:
        """The conversation that a message, or a GET (``frame`` is None), belongs to."""
        if door != "http":
            return await super().converse(frame, head, door=door, peer=peer)
        session = head.get(_SESSION)
        if is_stateless(frame, head):
            return self._of_all(door, peer, stateless=True)
        if session is not None:
            found = self._kept.get(session)
            if found is None:
                found = self._talk(door, peer)
                self._remember(session, found)
            self._kept.move_to_end(session)
            return found
        if frame is not None and frame.method == "initialize":
            talk = self._talk(door, peer)
            talk.on_session = self._remember
            return talk
        return self._of_all(door, peer, stateless=False)

    async def end(self, head: Mapping[str, str], *, door: str, peer: str) -> Answer:
        """Hand on that a session is to end."""
        found = self._kept.pop(head.get(_SESSION, ""), None)
        try:
            reply = await self._relay.end(head)
            answer = Answer(body=reply.body, status=reply.status, headers=reply.headers)
        except EnvelopeError as error:
            answer = failure(error, id=None, revision=head.get(_VERSION, ""), request_id="")
        if found is not None:
            await found.close()
        return answer

    async def close(self) -> None:
        """End all conversations."""
        await asyncio.gather(*(each.close() for each in self._stateless.values()))
        await super().close()

    def _of_all(self, door: str, peer: str, *, stateless: bool) -> Talk:
        """The conversation of all clients that have none of their own."""
        found = self._stateless.get((peer, stateless))
        if found is None:
            found = self._stateless[peer, stateless] = self._talk(door, peer, shared=True)
        return found

    def _talk(self, door: str, peer: str, *, shared: bool = False) -> Talk:
        return Talk(
            self._route,
            self._relay,
            self._ground,
            door=door,
            peer=peer,
            relays=True,
            shared=shared,
        )

    def _remember(self, session: str, talk: Kept) -> None:
        self._kept[session] = talk
        while len(self._kept) > _MOST_REMEMBERED:
            self._kept.popitem(last=False)


def is_stateless(frame: Frame | None, head: Mapping[str, str]) -> bool:
    """Whether a message over HTTP is of a revision without sessions, by its head or its body."""
    version = head.get(_VERSION, "")
    if _DATE.fullmatch(version) is not None and version >= STATELESS:
        return True
    return frame is not None and frame.revision is not None


def _no_session() -> EnvelopeError:
    return EnvelopeError("Session not found", hint="begin a new one with initialize")


def _no_session_named() -> EnvelopeError:
    return EnvelopeError("Mcp-Session-Id is missing", hint="begin with initialize")


def _unsupported(version: str) -> EnvelopeError:
    error = EnvelopeError("Unsupported protocol version", code="UNSUPPORTED_VERSION")
    error.data = {"supported": [*STATEFUL, STATELESS], "requested": version[:40]}
    return error
