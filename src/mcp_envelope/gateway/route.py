"""One upstream behind the doors: its rules, and how many calls it is given at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.link import Upstream
from mcp_envelope.gateway.settings import Rules, UpstreamSettings

#: How long a call waits for its turn where it has no time limit of its own.
_PATIENCE: Final = 60.0


class BusyError(EnvelopeError):
    """A call did not get its turn in time; ``retry_after`` is in seconds."""

    def __init__(self, what: str, most: int) -> None:
        super().__init__(
            f"{most} calls of {what} are under way, which is as many as are allowed at once",
            code="RATE_LIMITED",
            hint="try again later, or raise `concurrency`",
        )
        self.retry_after = 1.0


class Route:
    """An upstream and what the operator decided about it. ``settings`` may be replaced."""

    def __init__(self, upstream: Upstream, settings: UpstreamSettings) -> None:
        self.upstream = upstream
        self.settings = settings
        self._rooms: dict[tuple[str | None, int], asyncio.Semaphore] = {}

    @property
    def name(self) -> str:
        """The operator's name for the upstream."""
        return self.settings.name

    def rules(self, tool: str | None = None) -> Rules:
        """The rules for a tool, by its upstream's name for it, or for what is no tool call."""
        if tool is None or not self.settings.tools:
            return self.settings.rules
        return self.settings.tools.get(tool, self.settings.rules)

    def room(self, tool: str | None) -> AbstractAsyncContextManager[None] | None:
        """To be entered while a call is under way. RATE_LIMITED where it gets no turn."""
        most = self.settings.rules.concurrency
        own = self.settings.tools.get(tool) if tool is not None else None
        if not most and (own is None or not own.concurrency):
            return None
        return self._rooms_of(tool, most, own)

    @asynccontextmanager
    async def _rooms_of(
        self, tool: str | None, most: int, own: Rules | None
    ) -> AsyncIterator[None]:
        limits: list[tuple[str | None, int, str]] = [(None, most, f"the upstream {self.name}")]
        if own is not None:
            limits.append((tool, own.concurrency, f"the tool {tool}"))
        patience = self.rules(tool).timeout or _PATIENCE
        taken: list[asyncio.Semaphore] = []
        try:
            for name, count, what in limits:
                if count:
                    room = self._rooms.setdefault((name, count), asyncio.Semaphore(count))
                    await _enter(room, patience, what, count)
                    taken.append(room)
            yield
        finally:
            for room in taken:
                room.release()


async def _enter(room: asyncio.Semaphore, patience: float, what: str, count: int) -> None:
    try:
        async with asyncio.timeout(patience):
            await room.acquire()
    except TimeoutError:
        raise BusyError(what, count) from None
