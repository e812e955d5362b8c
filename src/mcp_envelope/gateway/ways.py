"""Calls that are on their way to one of several upstreams."""

from __future__ import annotations

import asyncio
from typing import Final

from mcp_envelope.core.door import Answer
from mcp_envelope.core.frame import Frame
from mcp_envelope.core.link import Item, Reply

from .members import Member

#: How long a call waits for the handshake with its server.
PATIENCE: Final = 30.0


class Way:
    """A call that is under way to a member. ``waiting`` bounds the wait for its handshake."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.member: Member | None = None
        self.waiting = asyncio.timeout(PATIENCE)
        self.is_cancelled = False

    def end(self) -> None:
        """End the wait for a handshake."""
        self.is_cancelled = True
        self.waiting.reschedule(asyncio.get_running_loop().time())


class Nowhere:
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
