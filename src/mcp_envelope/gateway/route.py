"""One upstream behind the doors: its rules, and how many calls it is given at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from mcp_envelope.core.bodies import Keeping
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.link import Upstream
from mcp_envelope.core.redaction import Redactor
from mcp_envelope.gateway.settings import Rules, UpstreamSettings

#: How long a call waits for its turn where it has no time limit of its own.
_PATIENCE: Final = 60.0
_MOST_KEEPINGS: Final = 10_000


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
    """An upstream and what the operator decided about it. ``settings`` may be replaced.

    No body is kept that is longer than ``largest`` bytes.
    """

    def __init__(
        self, upstream: Upstream, settings: UpstreamSettings, *, largest: int = 1024 * 1024
    ) -> None:
        self.upstream = upstream
        self.settings = settings
        self._largest = largest
        self._keepings: dict[int, tuple[Rules, Keeping]] = {}
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

    def keeping(self, tool: str | None = None) -> Keeping:
        """What may be said and kept of calls of a tool, or of what is no tool call."""
        rules = self.rules(tool)
        found = self._keepings.get(id(rules))
        if found is None or found[0] is not rules:
            if len(self._keepings) > _MOST_KEEPINGS:  # of rules that hold no more
                self._keepings.clear()
            found = self._keepings[id(rules)] = (rules, _keeping_of(rules, self._largest))
        return found[1]

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


def _keeping_of(rules: Rules, largest: int) -> Keeping:
    redactor = Redactor(rules.redact_credentials, rules.redact_keys, rules.redact_pointers)
    return Keeping(redactor, rules.digests, rules.bodies, largest)


async def _enter(room: asyncio.Semaphore, patience: float, what: str, count: int) -> None:
    try:
        async with asyncio.timeout(patience):
            await room.acquire()
    except TimeoutError:
        raise BusyError(what, count) from None
