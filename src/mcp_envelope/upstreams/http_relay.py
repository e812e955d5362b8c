"""Handing on what the client of an HTTP door says, and what it is answered.

Sessions, versions and streams stay a matter between the client and the upstream. Only what
concerns the connection, and who the client is, stays behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Final, Protocol

from mcp_envelope.core.document import Limits
from mcp_envelope.core.door import STATELESS
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, frame_of

from .http_pool import Pool
from .http_reply import HttpReply, refuse_redirect, repeatable
from .http_wire import Response

_STREAM: Final = "text/event-stream"
_PATIENCE: Final = 2.0


class Aside(Protocol):
    """Who lets something happen while nobody waits for it."""

    def __call__(self, work: Coroutine[None, None, None]) -> None:
        """Start it, and keep hold of it until it is done."""


class RelayLink:
    """A link for the clients of an HTTP door: their headers go on, the upstream's come back.

    One serves all of them. Beside :class:`~mcp_envelope.core.link.Link` it has :meth:`end`.
    """

    def __init__(self, pool: Pool, limits: Limits, aside: Aside) -> None:
        self._pool = pool
        self._target = pool.target
        self._limits = limits
        self._aside = aside

    async def send(self, frame: Frame, head: Mapping[str, str]) -> HttpReply:
        """POST a message as it is; see :class:`~mcp_envelope.core.link.Link`.

        If this is cancelled while it waits, a request of an older revision is cancelled at the
        upstream by a message, a newer one by closing its connection.
        """
        lines = self._target.relayed(head)
        revision = frame.revision or head.get("mcp-protocol-version")
        modern = revision is not None and revision >= STATELESS
        response = Response()
        message = self._target.compose(b"POST", lines, frame.raw)
        try:
            await self._pool.exchange(message, response, repeatable=repeatable(frame))
            refuse_redirect(response, self._target.shown)
            reply = _RelayReply(response, frame, self._limits, self, lines, modern=modern)
            await reply.load()
        except asyncio.CancelledError:
            if not modern:
                self.cancel(frame, lines)
            raise
        return reply

    async def listen(self, head: Mapping[str, str]) -> HttpReply:
        """GET the stream of what belongs to no request."""
        known = head if _STREAM in head.get("accept", "") else {**head, "accept": _STREAM}
        return await self._bare(b"GET", known)

    async def end(self, head: Mapping[str, str]) -> HttpReply:
        """DELETE the session that the head names."""
        return await self._bare(b"DELETE", head)

    async def close(self) -> None:
        """Nothing: the connections belong to the upstream, which closes them."""

    @property
    def shown(self) -> str:
        """The endpoint, for people."""
        return self._target.shown

    def cancel(self, frame: Frame, lines: bytes) -> None:
        """Tell an upstream of an older revision that a request's answer is not wanted."""
        # "The initialize request MUST NOT be cancelled by clients" (basic/utilities/cancellation).
        if frame.shape == "request" and frame.method != "initialize":
            self._aside(cancel_by_message(self._pool, frame, lines))

    async def _bare(self, method: bytes, head: Mapping[str, str]) -> HttpReply:
        response = Response()
        framed = {name: text for name, text in head.items() if name != "content-type"}
        message = self._target.compose(method, self._target.relayed(framed))
        await self._pool.exchange(message, response, repeatable=True)
        refuse_redirect(response, self._target.shown)
        reply = HttpReply(response, None, self._limits, shown=self._target.shown)
        await reply.load()
        return reply


class _RelayReply(HttpReply):
    """A reply whose request is cancelled as its revision has it."""

    def __init__(
        self,
        response: Response,
        frame: Frame,
        limits: Limits,
        link: RelayLink,
        lines: bytes,
        *,
        modern: bool,
    ) -> None:
        super().__init__(response, frame, limits, shown=link.shown, modern=modern)
        self._link = link
        self._lines = lines

    async def close(self) -> None:
        """Want no more of it; what was not answered is cancelled."""
        if not self.ended and not self.answered and not self._modern and self._frame is not None:
            self._link.cancel(self._frame, self._lines)
        await super().close()


async def cancel_by_message(pool: Pool, frame: Frame, lines: bytes) -> None:
    """POST ``notifications/cancelled`` for a request, in a moment or not at all."""
    params = {"requestId": frame.id, "reason": "the answer is not wanted any more"}
    note = frame_of({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    response = Response()
    try:
        async with asyncio.timeout(_PATIENCE):
            await pool.exchange(pool.target.compose(b"POST", lines, note.raw), response)
            await response.body(64 * 1024)
    except (EnvelopeError, TimeoutError):
        response.close()
