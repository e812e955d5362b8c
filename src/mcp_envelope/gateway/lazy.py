"""Links that are made when they are needed, so that a failure to make one belongs to a call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from mcp_envelope.core.frame import Frame
from mcp_envelope.core.link import Link, Reply

from .route import Route


class LazyLink:
    """A link that is made when something is first sent, and again if that failed."""

    def __init__(self, route: Route, *, stateless: bool) -> None:
        self._route = route
        self._stateless = stateless
        self._link: Link | None = None
        self._making = asyncio.Lock()
        self._made = asyncio.Event()
        self._closed = False

    @property
    def is_made(self) -> bool:
        """Whether there is a link by now."""
        return self._link is not None

    async def send(self, frame: Frame, head: Mapping[str, str]) -> Reply:
        """Send one message."""
        return await (self._link or await self._make()).send(frame, head)

    async def listen(self, head: Mapping[str, str]) -> Reply:
        """Everything that belongs to no request; waits until there is a link."""
        await self._made.wait()
        return await (self._link or await self._make()).listen(head)

    async def renew(self) -> None:
        """End the conversation, and begin another one when something is next sent."""
        link, self._link = self._link, None
        self._made.clear()
        if link is not None:
            await link.close()

    async def close(self) -> None:
        """End the conversation; safe to call twice."""
        self._closed = True
        if self._link is not None:
            await self._link.close()

    async def _make(self) -> Link:
        async with self._making:
            if self._link is None:
                self._link = await self._route.upstream.connect(stateless=self._stateless)
                self._made.set()
                if self._closed:
                    await self._link.close()
        return self._link
