"""The session that a client of an older revision has with an upstream, and its GET stream."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from mcp_envelope.core.document import Limits
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, frame_of
from mcp_envelope.core.link import Item
from mcp_envelope.core.mcp_headers import VERSION

from .http_pool import Pool
from .http_reply import HttpReply, refuse_redirect
from .http_wire import Response

_log = logging.getLogger("mcp_envelope.upstreams.http")

SESSION: Final = "mcp-session-id"
POSTED: Final = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
}
_LISTENED: Final = {"accept": "text/event-stream"}
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 30.0
_SHORTEST_PAUSE: Final = 0.01
_FAREWELL: Final = 2.0
_LAG: Final = 256
_INITIALIZED: Final = frame_of({"jsonrpc": "2.0", "method": "notifications/initialized"})


class Session:
    """What was agreed in the handshake, and what is needed to repeat it.

    ``initialize`` and ``initialized`` are the client's own messages. ``id`` is None where the
    upstream keeps no sessions.
    """

    def __init__(self, pool: Pool, limits: Limits, *, patience: float) -> None:
        self.id: str | None = None
        self.version: str | None = None
        self.initialize: Frame | None = None
        self.initialized: Frame = _INITIALIZED
        self._pool = pool
        self._limits = limits
        self._patience = patience
        self._lock = asyncio.Lock()
        self._numbers = itertools.count(1)

    def head(self) -> dict[str, str]:
        """The headers that every message after the handshake carries."""
        head: dict[str, str] = {}
        if self.id is not None:
            head[SESSION] = self.id
        if self.version is not None:
            head[VERSION] = self.version
        return head

    def begin(self, frame: Frame) -> None:
        """The client starts a handshake; what was agreed before counts no more."""
        self.initialize = frame
        self.id = self.version = None

    def opened(self, headers: Mapping[str, str]) -> None:
        """The upstream has begun to answer ``initialize``."""
        self.id = headers.get(SESSION)

    def agreed(self, answer: Frame) -> None:
        """The upstream has answered ``initialize``."""
        result = answer.value.get("result")
        version = result.get("protocolVersion") if isinstance(result, dict) else None
        if isinstance(version, str):
            self.version = version

    async def renew(self, gone: str) -> None:
        """Do the handshake anew, unless that was done since; UPSTREAM_UNAVAILABLE if it fails."""
        async with self._lock:
            if self.id != gone or self.initialize is None:
                return
            _log.info("the session with the upstream at %s is gone; opening another",
                      self._pool.shown)  # fmt: skip
            try:
                async with asyncio.timeout(self._patience):
                    await self._handshake(self.initialize)
            except (EnvelopeError, TimeoutError) as error:
                raise EnvelopeError(
                    f"the session with the upstream at {self._pool.shown} is gone, and there "
                    "is no other",
                    code="UPSTREAM_UNAVAILABLE",
                    hint=error.message if isinstance(error, EnvelopeError) else "it is too slow",
                ) from None

    async def _handshake(self, initialize: Frame) -> None:
        number = next(self._numbers)
        opening = initialize.put(("id",), f"mcp-envelope/session/{number}")
        reply = await self._post(opening, {})
        answer = None
        async for item in reply:
            if item.frame is not None and item.frame.shape == "response":
                answer = item.frame
        if answer is None or answer.result is None:
            what = f"initialize was answered with HTTP {reply.status} and no result"
            raise EnvelopeError(what, code="UPSTREAM_UNAVAILABLE")
        before = self.version
        self.opened(reply.headers)
        self.agreed(answer)
        if before != self.version:
            _log.warning(
                "the new session with the upstream at %s speaks %.40r, the old one spoke %.40r",
                self._pool.shown,
                self.version,
                before,
            )
        await (await self._post(self.initialized, self.head())).close()

    async def _post(self, frame: Frame, head: Mapping[str, str]) -> HttpReply:
        target = self._pool.target
        response = Response()
        lines = target.lines({**POSTED, **head})
        await self._pool.exchange(target.compose(b"POST", lines, frame.raw), response)
        refuse_redirect(response, target.shown)
        reply = HttpReply(response, frame, self._limits, shown=target.shown)
        await reply.load()
        return reply

    async def get(self, last: bytes | None) -> tuple[Response, str | None]:
        """GET the stream, from the event after ``last`` on; and the session that was asked for."""
        target = self._pool.target
        head = {**_LISTENED, **self.head()}
        if last:
            head["last-event-id"] = last.decode("latin-1")
        response = Response()
        asked = self.id
        message = target.compose(b"GET", target.lines(head))
        await self._pool.exchange(message, response, repeatable=True)
        return response, asked

    async def leave(self) -> None:
        """DELETE the session, in a moment or not at all."""
        gone, self.id = self.id, None
        if gone is None:
            return
        target = self._pool.target
        head = {SESSION: gone} | ({VERSION: self.version} if self.version else {})
        response = Response()
        try:
            async with asyncio.timeout(_FAREWELL):
                await self._pool.exchange(target.compose(b"DELETE", target.lines(head)), response)
                await response.body(64 * 1024)
        except (EnvelopeError, TimeoutError):
            response.close()


def pause_of(retry: bytes | None) -> float | None:
    """The seconds that an event's ``retry`` asks for, within bounds."""
    if retry is None or not retry.isdigit():
        return None
    return min(max(int(retry[:9]) / 1000, _SHORTEST_PAUSE), _LONGEST_PAUSE)


class Listening:
    """The GET stream of a session, opened again whenever it ends, as a reply without end."""

    def __init__(self, session: Session, limits: Limits, shown: str) -> None:
        self.status = 200
        self.headers: Mapping[str, str] = MappingProxyType({})
        self.streams: bool | None = None
        self.body = b""
        self._session = session
        self._limits = limits
        self._shown = shown
        self._items: asyncio.Queue[Item | None] = asyncio.Queue(_LAG)
        self._task: asyncio.Task[None] | None = None
        self._last: bytes | None = None
        self._of: str | None = None
        self._streamed: str | None = None
        self._pause: float | None = None

    def start(self) -> None:
        """Open the stream, if it is not."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    def __aiter__(self) -> Listening:
        return self

    async def __anext__(self) -> Item:
        item = await self._items.get()
        if item is None:
            raise StopAsyncIteration
        return item

    async def close(self) -> None:
        """Whoever iterates wants no more of it; the stream itself goes on."""
        if not self._items.full():
            self._items.put_nowait(None)

    async def stop(self) -> None:
        """End the stream for good."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        while self._items.full():
            self._items.get_nowait()
        self._items.put_nowait(None)

    async def _run(self) -> None:
        failures = 0
        while True:
            try:
                response, asked = await self._session.get(self._last_of(self._session.id))
                if not await self._is_stream(response, asked):
                    return
                failures = 0 if response.status == 200 else failures + 1
                await self._read(response)
            except EnvelopeError as error:
                _log.debug("the stream of the upstream at %s: %s", self._shown, error)
                failures += 1
            if failures:
                pause = min(_FIRST_PAUSE * 2 ** min(failures - 1, 8), _LONGEST_PAUSE)
            else:
                pause = _FIRST_PAUSE if self._pause is None else self._pause
            await asyncio.sleep(pause)

    def _last_of(self, session: str | None) -> bytes | None:
        """The last event's id, which means nothing in another session."""
        if session != self._of:
            self._last, self._of = None, session
        return self._last

    async def _is_stream(self, response: Response, asked: str | None) -> bool:
        """Whether there is a stream, now or later. A session that is gone is renewed."""
        if response.status == 200:
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                self._streamed = asked
                return True
            response.close()
            return False
        response.close()
        if response.status == 404 and asked is not None and self._streamed == asked:
            # Only where there was a stream does this mean that the session is gone: a server
            # without a stream may say 404 as well.
            await self._session.renew(asked)
            return True
        if response.status >= 500 or response.status in (408, 429):
            return True
        if response.status != 405:
            _log.info("the upstream at %s has no GET stream (%d)", self._shown, response.status)
        return False

    async def _read(self, response: Response) -> None:
        if response.closed:
            return
        reply = HttpReply(response, None, self._limits, shown=self._shown)
        await reply.load()
        try:
            async for item in reply:
                if item.event is not None:
                    self._last = item.event.id or self._last
                    self._pause = pause_of(item.event.retry) or self._pause
                await self._items.put(item)
        finally:
            response.close()
