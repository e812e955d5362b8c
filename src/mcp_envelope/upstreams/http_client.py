"""Speaking to an upstream over HTTP on behalf of a client that does not speak HTTP itself.

Here the headers are made, sessions kept, and streams taken up again that were closed before
their answer came.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

from mcp_envelope.core.document import Limits
from mcp_envelope.core.door import STATELESS
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, IdKey, id_key
from mcp_envelope.core.hops import suspended
from mcp_envelope.core.link import Item
from mcp_envelope.core.mcp_headers import PARAM, standard_headers

from .http_pool import Pool
from .http_relay import Aside, cancel_by_message
from .http_reply import HttpReply, refuse_redirect, repeatable, unknown
from .http_session import POSTED, Listening, Session, pause_of
from .http_wire import Response

_log = logging.getLogger("mcp_envelope.upstreams.http")
_ATTEMPTS: Final = 5
_PAUSE: Final = 1.0


class ClientLink:
    """A conversation that looks after itself; see :class:`~mcp_envelope.core.link.Link`.

    Of the ``head`` that is given to its methods only ``mcp-param-*`` are looked at: these can be
    made only by who knows the tool's schema. Of a request that is cancelled while ``send`` waits
    the upstream is told.
    """

    def __init__(
        self,
        pool: Pool,
        limits: Limits,
        aside: Aside,
        *,
        stateless: bool,
        patience: float = 10.0,
        gone: Callable[[ClientLink], None] = lambda _: None,
    ) -> None:
        self.session = Session(pool, limits, patience=patience)
        self._pool = pool
        self._target = pool.target
        self._limits = limits
        self._aside = aside
        self._gone = gone
        self._modern = stateless
        self._revision = STATELESS
        self._listening = Listening(self.session, limits, pool.shown)
        self._open: dict[IdKey, list[Callable[[], None]]] = {}  # how to withdraw each
        self._listens = False
        self.closed = False

    async def send(self, frame: Frame, head: Mapping[str, str]) -> HttpReply:
        """POST a message with the headers that it needs."""
        if self._is_modern(frame):
            if frame.method == "notifications/cancelled":
                return self._withdraw(frame)
            return await self._post(frame, self._modern_head(frame, head))
        if frame.method == "initialize" and frame.shape == "request":
            self.session.begin(frame)
        reply = await self._post(frame, None)
        if frame.method == "notifications/initialized":
            self.session.initialized = frame
            self._listens = reply.status < 300
            if self._listens:
                self._listening.start()
        return reply

    async def listen(self, head: Mapping[str, str]) -> Listening:
        """What comes on the GET stream; there is one of it, for one reader."""
        return self._listening

    async def close(self) -> None:
        """End the conversation: nothing is read any more, and the session is deleted."""
        if self.closed:
            return
        self.closed = True
        await self._listening.stop()
        for withdraw in [way for ways in self._open.values() for way in ways]:
            withdraw()
        await self.session.leave()
        self._gone(self)

    def _is_modern(self, frame: Frame) -> bool:
        """Whether a message is of 2026-07-28 or later; only requests always say so themselves."""
        revision = frame.revision
        if revision is not None:
            self._modern = True
            self._revision = revision
        elif frame.method == "initialize":
            self._modern = False
        return self._modern

    def _modern_head(self, frame: Frame, given: Mapping[str, str]) -> dict[str, str]:
        head = standard_headers(frame, frame.revision or self._revision)
        return head | {name: text for name, text in given.items() if name.startswith(PARAM)}

    def _withdraw(self, frame: Frame) -> HttpReply:
        """Cancel a request as 2026-07-28 has it: by closing the stream of its answer."""
        wanted = frame.params.get("requestId")
        ways: list[Callable[[], None]] = []
        if isinstance(wanted, (str, int, float)) and not isinstance(wanted, bool):
            ways = self._open.get(id_key(wanted), [])
        if len(ways) == 1:  # of two with one id it cannot be known which one is meant
            ways[0]()
        return self._nothing(frame)

    def _nothing(self, frame: Frame) -> HttpReply:
        """The reply of who wants to hear nothing."""
        accepted = Response()
        accepted.status = 202
        accepted.end()
        reply = HttpReply(accepted, None, self._limits, shown=self._target.shown)
        reply.ended = True
        return reply

    async def _post(self, frame: Frame, modern: dict[str, str] | None) -> HttpReply:
        """POST with these headers of the modern era, or else with those of the session."""
        session = None if modern is not None else self.session.id
        reply = await self._attempt(frame, session, modern)
        if reply is None and session is not None:
            # The session is gone, and the message reached nobody: it goes into a new session.
            await self.session.renew(session)
            if self._listens:
                self._listening.start()
            reply = await self._attempt(frame, None, modern)
        return reply or self._nothing(frame)

    async def _attempt(
        self, frame: Frame, session: str | None, modern: dict[str, str] | None
    ) -> HttpReply | None:
        """POST once; None if it came back because there is no such session."""
        response = Response()
        key = id_key(frame.id) if frame.shape == "request" and frame.id is not None else None
        self.remember(key, response.close)
        own = modern if modern is not None else self.session.head()
        lines = self._target.lines({**POSTED, **own})
        reply = None
        try:
            message = self._target.compose(b"POST", lines, frame.raw)
            await self._pool.exchange(message, response, repeatable=repeatable(frame))
            refuse_redirect(response, self._target.shown)
            if response.status == 404 and session is not None:
                response.close()
                return None
            reply = await self._reply(response, frame, lines, modern=modern is not None)
        except asyncio.CancelledError:
            if modern is None:
                self.cancel(frame, lines)
            raise
        finally:
            if reply is None or not reply.streams:
                self.forget(key, response.close)
        return reply

    async def _reply(
        self, response: Response, frame: Frame, lines: bytes, *, modern: bool
    ) -> HttpReply:
        if response.closed:  # withdrawn before there was an answer
            return self._nothing(frame)
        if frame.method == "initialize" and response.status < 300:
            self.session.opened(response.headers)
        reply = ClientReply(response, frame, self._limits, self, lines, modern=modern)
        await reply.load()
        if response.status >= 300 and not reply.answered and (reply.body or not response.closed):
            error = _refusal(response, self._target.shown)
            if frame.shape == "request":
                raise error
            _log.warning("a %s was not taken: %s", frame.method or frame.shape, error.message)
        return reply

    # -- for replies --

    @property
    def shown(self) -> str:
        """The endpoint, for people."""
        return self._target.shown

    def remember(self, key: IdKey | None, withdraw: Callable[[], None]) -> None:
        """A request is under way, and this is how it is withdrawn."""
        if key is not None:
            self._open.setdefault(key, []).append(withdraw)

    def forget(self, key: IdKey | None, withdraw: Callable[[], None]) -> None:
        """It is not under way any more, or not in this way."""
        ways = self._open.get(key) if key is not None else None
        if key is None or ways is None:
            return
        if withdraw in ways:
            ways.remove(withdraw)
        if not ways:
            del self._open[key]

    def cancel(self, frame: Frame, lines: bytes) -> None:
        """Tell an upstream of an older revision that a request's answer is not wanted."""
        if frame.shape == "request" and frame.method != "initialize" and not self.closed:
            self._aside(cancel_by_message(self._pool, frame, lines))


class ClientReply(HttpReply):
    """A reply that takes up its stream again if it was closed before the answer."""

    def __init__(
        self,
        response: Response,
        frame: Frame,
        limits: Limits,
        link: ClientLink,
        lines: bytes,
        *,
        modern: bool,
    ) -> None:
        super().__init__(response, frame, limits, shown=link.shown, modern=modern)
        self._link = link
        self._lines = lines
        self._first = response
        self._last: bytes | None = None
        self._pause = _PAUSE
        self._stopped = asyncio.Event()

    def receive(self, frame: Frame) -> Frame:
        """See the version that was agreed, and mend the id of errors that could not name it."""
        asked = self._frame
        if asked is None or frame.shape != "response" or asked.shape != "request":
            return frame
        if asked.method == "initialize":
            self._link.session.agreed(frame)
        if self.status >= 300 and frame.id != asked.id:
            return frame.put(("id",), asked.id)
        return frame

    def _add(self, item: Item) -> None:
        if item.event is not None:
            self._last = item.event.id or self._last
            self._pause = pause_of(item.event.retry) or self._pause
        super()._add(item)

    def _stop(self) -> None:
        super()._stop()
        self._stopped.set()
        self._link.forget(self._wanted, self._first.close)
        self._link.forget(self._wanted, self._stop)

    async def close(self) -> None:
        """Want no more of it; what was not answered is cancelled."""
        if not self.ended and not self.answered and not self._modern and self._frame is not None:
            self._link.cancel(self._frame, self._lines)
        await super().close()

    async def ended_early(self, error: EnvelopeError | None) -> None:
        """Take the stream up again (2025-11-25), or OUTCOME_UNKNOWN if that cannot be done."""
        if self._wanted is None or self._first.closed:
            self._stop()
            return
        try:
            if self._modern or not self._last:
                raise error or unknown(
                    f"the upstream at {self._shown} closed the stream before it answered"
                )
            self.ended = False
            if self._frame is not None and self._frame.id is not None:
                self._items.append(Item(suspended(self._frame.id)))
            await self._resume(self._last)
        except EnvelopeError:
            self._stop()
            raise

    async def _resume(self, last: bytes) -> None:
        self._link.forget(self._wanted, self._first.close)
        self._link.forget(self._wanted, self._stop)
        self._link.remember(self._wanted, self._stop)
        why = "it was closed"
        pause = self._pause
        for _ in range(_ATTEMPTS):
            if await self._stopped_within(pause):
                return
            try:
                response, _ = await self._link.session.get(last)
            except EnvelopeError as error:
                why, pause = error.message, pause * 2
                continue
            if response.status == 200 and not self.ended:
                self._response = response
                await self.load()
                if self.streams:
                    return
            response.close()
            why = f"HTTP {response.status}"
            if response.status < 500:
                break
            pause *= 2
        raise unknown(
            f"the stream of the upstream at {self._shown} cannot be taken up again: {why}"
        )

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._stopped.wait()
        except TimeoutError:
            return False
        return True


def _refusal(response: Response, shown: str) -> EnvelopeError:
    """What a status without a message means: only some say that the tool was not reached."""
    status = response.status
    hints = {
        401: "it wants credentials: set them in the upstream's headers",
        403: "it wants other credentials: see the upstream's headers",
        404: "check the path of the upstream's url",
        429: "it is asked too often; try again later",
    }
    message = f"the upstream at {shown} answered with HTTP {status}"
    if status not in hints:
        return unknown(message)
    error = EnvelopeError(message, code="UPSTREAM_UNAVAILABLE", hint=hints[status])
    error.was_answered = True
    return error
