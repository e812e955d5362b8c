"""Which conversation a message belongs to, where one upstream stands behind the doors."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from mcp_envelope.core.document import dump
from mcp_envelope.core.door import STATELESS, Answer, RefusedError
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, FrameError
from mcp_envelope.core.link import Link, Relay
from mcp_envelope.pipeline.answers import failure
from mcp_envelope.pipeline.catalog import Catalog

from .common import Common, log
from .route import Route
from .talk import Talk, record_malformed

#: Versions whose clients shake hands first.
STATEFUL: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_SESSION: Final = "mcp-session-id"
_VERSION: Final = "mcp-protocol-version"
#: Sessions of an HTTP upstream are only remembered, at most so many.
_MOST_REMEMBERED: Final = 10_000


class Sessions:
    """The conversations with one upstream, through all doors (a door's ``Desk``).

    Where the upstream speaks HTTP itself, sessions are its own: they are only remembered, and
    one that is not known here is passed on for the upstream to judge. In front of anything else
    the gateway makes sessions, each with a link of its own.
    """

    def __init__(self, route: Route, common: Common) -> None:
        self._route = route
        self._common = common
        self._relay = route.upstream.relay()
        self._talks: OrderedDict[str, Talk] = OrderedDict()
        self._shared: dict[tuple[str, str, bool], Talk] = {}
        self._opening = asyncio.Lock()

    # -- what a door calls -------------------------------------------------------------------

    async def converse(
        self, frame: Frame | None, head: Mapping[str, str], *, door: str, peer: str
    ) -> Talk:
        """The conversation that a message, or a GET (``frame`` is None), belongs to."""
        if door != "http":
            link = await self._connect(frame, head, stateless=False)
            return self._talk(link, door, peer)
        if _is_stateless(frame, head):
            return await self._shared_talk(frame, head, door, peer, stateless=True)
        if self._relay is not None:
            return await self._relayed(self._relay, frame, head, door, peer)
        return await self._own(frame, head, door, peer)

    async def end(self, head: Mapping[str, str], *, door: str, peer: str) -> Answer:
        """End the session that the head names, as a DELETE asks for."""
        session = head.get(_SESSION)
        talk = self._talks.pop(session, None) if session is not None else None
        if self._relay is not None:
            answer = await _end_upstream(self._relay, head)
        else:
            answer = Answer(status=200) if talk is not None else _no_session(None)
        if talk is not None:
            await talk.close()
        return answer

    async def malformed(self, error: FrameError, size: int, *, door: str, peer: str) -> Answer:
        """Record bytes that are no message and belong to no conversation; the answer to them."""
        return await record_malformed(error, self._common, door=door, peer=peer)

    async def tidy(self) -> None:
        """End sessions that nobody has used for long."""
        oldest = self._common.tick() - self._route.settings.idle
        for session, talk in list(self._talks.items()):
            if talk.used < oldest and talk.is_idle:
                log.info("%s: a session was ended, unused for long", self._route.name)
                del self._talks[session]
                await talk.close()

    async def close(self) -> None:
        """End all conversations and the upstream."""
        talks = [*self._talks.values(), *self._shared.values()]
        self._talks.clear()
        self._shared.clear()
        await asyncio.gather(*(talk.close() for talk in talks))
        await self._route.upstream.close()

    # -- where the upstream keeps the sessions -------------------------------------------------

    async def _relayed(
        self, relay: Relay, frame: Frame | None, head: Mapping[str, str], door: str, peer: str
    ) -> Talk:
        session = head.get(_SESSION)
        if session is None:
            if frame is not None and frame.method == "initialize":
                talk = self._talk(relay, door, peer, relays=True)
                talk.on_session = self._remember
                return talk
            return await self._shared_talk(frame, head, door, peer, stateless=False)
        found = self._talks.get(session)
        if found is None:
            found = self._talk(relay, door, peer, relays=True)
            self._remember(session, found)
        self._talks.move_to_end(session)
        return found

    def _remember(self, session: str, talk: Talk) -> None:
        self._talks[session] = talk
        while len(self._talks) > _MOST_REMEMBERED:
            self._talks.popitem(last=False)

    # -- where the gateway keeps them ------------------------------------------------------------

    async def _own(
        self, frame: Frame | None, head: Mapping[str, str], door: str, peer: str
    ) -> Talk:
        version = head.get(_VERSION)
        if version is not None and version not in STATEFUL:
            raise RefusedError(_unsupported(frame, version))
        session = head.get(_SESSION)
        if session is not None:
            talk = self._talks.get(session)
            if talk is None:
                raise RefusedError(_no_session(frame))
            return talk
        if frame is None or frame.method != "initialize":
            raise RefusedError(_no_session_named(frame))
        link = await self._connect(frame, head, stateless=False)
        session = self._common.new_id()
        talk = self._talks[session] = self._talk(link, door, peer, session=session)
        return talk

    # -- both ------------------------------------------------------------------------------------

    async def _shared_talk(
        self,
        frame: Frame | None,
        head: Mapping[str, str],
        door: str,
        peer: str,
        *,
        stateless: bool,
    ) -> Talk:
        """The conversation of all clients that have none of their own."""
        key = (door, peer, stateless)
        found = self._shared.get(key)
        if found is None:
            async with self._opening:
                found = self._shared.get(key)
                if found is None:
                    link: Link | None = self._relay
                    if link is None:
                        link = await self._connect(frame, head, stateless=True)
                    relays = self._relay is not None
                    found = self._talk(link, door, peer, relays=relays, shared=True)
                    self._shared[key] = found
        return found

    async def _connect(
        self, frame: Frame | None, head: Mapping[str, str], *, stateless: bool
    ) -> Link:
        try:
            return await self._route.upstream.connect(stateless=stateless)
        except EnvelopeError as error:
            id = frame.id if frame is not None else None
            revision = (frame.revision if frame is not None else None) or head.get(_VERSION, "")
            request_id = self._common.new_id()
            answer = failure(error, id=id, revision=revision, request_id=request_id)
            raise RefusedError(answer) from error

    def _talk(
        self,
        link: Link,
        door: str,
        peer: str,
        *,
        relays: bool = False,
        shared: bool = False,
        session: str | None = None,
    ) -> Talk:
        catalog = Catalog(self._common.checks, self._common.tick)
        return Talk(
            self._route,
            link,
            self._common,
            door=door,
            peer=peer,
            relays=relays,
            shared=shared,
            session=session,
            catalog=catalog,
        )


async def _end_upstream(relay: Relay, head: Mapping[str, str]) -> Answer:
    try:
        reply = await relay.end(head)
    except EnvelopeError as error:
        return failure(error, id=None, revision=head.get(_VERSION, ""), request_id="")
    return Answer(body=reply.body, status=reply.status, headers=reply.headers)


def _is_stateless(frame: Frame | None, head: Mapping[str, str]) -> bool:
    version = head.get(_VERSION)
    if version is not None:
        return version >= STATELESS
    return frame is not None and frame.revision is not None


def _refusal(frame: Frame | None, status: int, message: str, **data: object) -> Answer:
    id = frame.id if frame is not None and frame.shape == "request" else None
    error: dict[str, object] = {"code": -32600, "message": message}
    if data:
        error["data"] = data
    return Answer(raw=dump({"jsonrpc": "2.0", "id": id, "error": error}), status=status)


def _no_session(frame: Frame | None) -> Answer:
    return _refusal(frame, 404, "Session not found", hint="begin a new one with initialize")


def _no_session_named(frame: Frame | None) -> Answer:
    return _refusal(frame, 400, "Mcp-Session-Id is missing", hint="begin with initialize")


def _unsupported(frame: Frame | None, version: str) -> Answer:
    supported = [*STATEFUL, STATELESS]
    return _refusal(
        frame, 400, "Unsupported protocol version", supported=supported, requested=version[:40]
    )
