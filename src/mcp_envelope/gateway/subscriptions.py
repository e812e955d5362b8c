"""``subscriptions/listen`` over several upstreams: one stream made of theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mcp_envelope.core.document import dump
from mcp_envelope.core.door import Answer, Outlet
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, frame_of
from mcp_envelope.core.link import Item, Reply

from .ground import log
from .members import DEADLINE, Member

_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_ID: Final = "io.modelcontextprotocol/subscriptionId"


async def subscribe(
    members: Sequence[Member], frame: Frame, head: Mapping[str, str], outlet: Outlet
) -> None:
    """Subscribe to all members and hand on what they say, until none has anything to say.

    The acknowledgement comes first, and once: it names what any of them has agreed to.
    """
    joined = _Joined(frame, outlet)
    tasks = [asyncio.create_task(_follow(member, frame, head, joined)) for member in members]
    try:
        await joined.all_have_spoken(len(members))
        await joined.acknowledge()
        await asyncio.wait(tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    result = {"resultType": "complete", "_meta": {_ID: frame.id}}
    await outlet.answer(Answer(raw=dump({"jsonrpc": "2.0", "id": frame.id, "result": result})))


class _Joined:
    """What has come from the members, held back until the acknowledgement has gone out."""

    def __init__(self, frame: Frame, outlet: Outlet) -> None:
        self._frame = frame
        self._outlet = outlet
        self._agreed: dict[str, Any] = {}
        self._held: list[Item] | None = []
        self._spoken = 0
        self._news = asyncio.Event()

    async def all_have_spoken(self, count: int) -> None:
        """Wait until each member has agreed or ended, but not for ever."""
        try:
            async with asyncio.timeout(DEADLINE):
                while self._spoken < count:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            log.warning("some upstreams have not acknowledged a subscription in time")

    def spoken(self, agreed: object = None) -> None:
        """A member has agreed to something, or has ended."""
        self._spoken += 1
        if isinstance(agreed, dict):
            for name, value in agreed.items():
                known = self._agreed.get(name)
                if isinstance(known, list) and isinstance(value, list):
                    self._agreed[name] = [*known, *(each for each in value if each not in known)]
                else:
                    self._agreed[name] = known or value
        self._news.set()

    async def acknowledge(self) -> None:
        """Tell the client what was agreed to, then all that was held back."""
        params = {"notifications": self._agreed, "_meta": {_ID: self._frame.id}}
        message = {"jsonrpc": "2.0", "method": _ACKNOWLEDGED, "params": params}
        await self._outlet.item(Item(frame_of(message)))
        held, self._held = self._held or [], None
        for item in held:
            await self._outlet.item(item)

    async def put(self, item: Item) -> None:
        """Hand on what a member said."""
        if self._held is not None:
            self._held.append(item)
        else:
            await self._outlet.item(item)


async def _follow(member: Member, frame: Frame, head: Mapping[str, str], joined: _Joined) -> None:
    """Read one member's stream to its end."""
    has_spoken = False
    reply: Reply | None = None
    try:
        reply = await member.link.send(frame, head)
        async for item in reply:
            said = item.frame
            if said is None or said.shape == "response":
                continue
            if said.method == _ACKNOWLEDGED and not has_spoken:
                has_spoken = True
                joined.spoken(said.params.get("notifications"))
            else:
                await joined.put(Item(said))
    except EnvelopeError as error:
        log.warning("%s: its subscription ended: %s", member.name, error)
    finally:
        if not has_spoken:
            joined.spoken()
        if reply is not None:
            await reply.close()
