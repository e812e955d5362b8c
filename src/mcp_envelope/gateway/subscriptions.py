"""``subscriptions/listen`` over several upstreams: one stream made of theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final

from mcp_envelope.core.document import dump
from mcp_envelope.core.door import Answer, Outlet
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, frame_of
from mcp_envelope.core.link import Item, Reply

from .ground import log
from .members import DEADLINE, Member, SaidError, pause_before

_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_ID: Final = "io.modelcontextprotocol/subscriptionId"
#: What is said of a member that comes back, if the client wants to hear of it.
_CHANGES: Final = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}


async def subscribe(
    members: Sequence[Member], frame: Frame, head: Mapping[str, str], outlet: Outlet
) -> None:
    """Subscribe to all members and hand on what they say, until none has anything to say.

    The acknowledgement comes first, and once: it names what any of them has agreed to. One that
    is lost is followed again when it is back. SaidError where all refuse.
    """
    joined = _Joined(frame, outlet)
    tasks = [asyncio.create_task(_follow(member, frame, head, joined)) for member in members]
    try:
        await joined.all_have_spoken(len(members))
        if len(joined.refusals) == len(members):
            raise joined.refusals[0]
        await joined.acknowledge()
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    result = {"resultType": "complete", "_meta": {_ID: frame.id}}
    await outlet.answer(Answer(raw=dump({"jsonrpc": "2.0", "id": frame.id, "result": result})))


class _Joined:
    """What has come from the members, held back until the acknowledgement has gone out."""

    def __init__(self, frame: Frame, outlet: Outlet) -> None:
        self.refusals: list[SaidError] = []
        self._frame = frame
        self._outlet = outlet
        self._agreed: dict[str, Any] = {}
        self._held: list[Item] | None = []
        self._spoken: set[str] = set()
        self._news = asyncio.Event()

    @property
    def is_told(self) -> bool:
        """Whether the client has its acknowledgement."""
        return self._held is None

    async def all_have_spoken(self, count: int) -> None:
        """Wait until each member has agreed or ended, but not for ever."""
        try:
            async with asyncio.timeout(DEADLINE):
                while len(self._spoken) < count:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            log.warning("some upstreams have not acknowledged a subscription in time")

    def spoken(self, name: str, agreed: object = None) -> None:
        """A member has agreed to something, or has ended."""
        self._spoken.add(name)
        if self._held is not None and isinstance(agreed, dict):
            for key, value in agreed.items():
                known = self._agreed.get(key)
                if isinstance(known, list) and isinstance(value, list):
                    self._agreed[key] = [*known, *(each for each in value if each not in known)]
                else:
                    self._agreed[key] = known or value
        self._news.set()

    async def acknowledge(self) -> None:
        """Tell the client what was agreed to, then all that was held back."""
        params = {"notifications": self._agreed, "_meta": {_ID: self._frame.id}}
        message = {"jsonrpc": "2.0", "method": _ACKNOWLEDGED, "params": params}
        await self._outlet.item(Item(frame_of(message)))
        while self._held:
            await self._outlet.item(self._held.pop(0))
        self._held = None

    async def put(self, item: Item) -> None:
        """Hand on what a member said."""
        if self._held is not None:
            self._held.append(item)
        else:
            await self._outlet.item(item)

    async def came_late(self, agreed: object) -> None:
        """What a member brings is new that was not there when the client was told."""
        filters = agreed if isinstance(agreed, dict) else {}
        for key, notification in _CHANGES.items():
            if filters.get(key):
                params = {"_meta": {_ID: self._frame.id}}
                message = {"jsonrpc": "2.0", "method": notification, "params": params}
                await self.put(Item(frame_of(message)))


async def _follow(member: Member, frame: Frame, head: Mapping[str, str], joined: _Joined) -> None:
    """Read one member's stream to its end; again, where it was lost."""
    for attempt in count():
        try:
            await _read(member, frame, head, joined)
            return
        except SaidError as refusal:
            joined.refusals.append(refusal)
            joined.spoken(member.name)
            return
        except EnvelopeError as error:
            log.warning("%s: its subscription was lost: %s", member.name, error)
        joined.spoken(member.name)
        await asyncio.sleep(pause_before(attempt))


async def _read(member: Member, frame: Frame, head: Mapping[str, str], joined: _Joined) -> None:
    """Read a stream to its end; SaidError if the member refuses, EnvelopeError if it is lost."""
    has_agreed = False
    reply: Reply = await member.link.send(frame, head)
    try:
        async for item in reply:
            said = item.frame
            if said is None:
                continue
            if said.shape == "response":
                if "error" in said.value and not has_agreed:
                    raise SaidError(member.name, frame.method, said)
                break
            if said.method != _ACKNOWLEDGED or has_agreed:
                await joined.put(Item(said))
                continue
            has_agreed, is_late = True, joined.is_told
            agreed = said.params.get("notifications")
            joined.spoken(member.name, agreed)
            if is_late:
                await joined.came_late(agreed)
    finally:
        await reply.close()
    joined.spoken(member.name)
