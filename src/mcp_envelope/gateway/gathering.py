"""Asking several upstreams at once, without waiting for the slowest."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from mcp_envelope.core.document import Document
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame
from mcp_envelope.core.link import Item

from . import merging
from .ground import log
from .members import DEADLINE, Member

T = TypeVar("T")
_MOST_KEPT: Final = 1_000
_IDENTITY: Final = "io.modelcontextprotocol/"


async def gather(
    members: Iterable[Member], ask: Callable[[Member], Awaitable[T]]
) -> tuple[dict[str, T], list[str]]:
    """What each member answers by the deadline, and the names of those that do not."""
    asked = {asyncio.ensure_future(ask(member)): member.name for member in members}
    if not asked:
        return {}, []
    await asyncio.wait(asked, timeout=DEADLINE)
    found: dict[str, T] = {}
    absent: list[str] = []
    for task, name in asked.items():
        error = task.exception() if task.done() and not task.cancelled() else None
        if not task.done():
            task.cancel()
            why: object = f"no answer within {DEADLINE:g} s"
        elif isinstance(error, EnvelopeError):
            why = error
        elif error is not None:
            raise error
        else:
            found[name] = task.result()
            continue
        absent.append(name)
        log.warning("%s is absent: %s", name, why)
    return found, absent


async def listing(
    frame: Frame,
    members: Iterable[Member],
    stand_by: Callable[[Member], Awaitable[object]],
    *,
    stateless: bool,
) -> tuple[dict[str, list[Document]], list[str]]:
    """All pages of a list from each member that has such a list."""
    params = own_params(frame)
    needed = merging.NEEDED[frame.method]

    async def ask(member: Member) -> list[Document]:
        await stand_by(member)
        if not stateless and not member.can(needed):
            return []
        pages = [page async for page in member.pages(frame.method, params)]
        if frame.method == "tools/list":
            for page in pages:
                member.talk.learn_tools(page, whole=len(pages) == 1)
        return pages

    return await gather(members, ask)


def own_params(frame: Frame) -> dict[str, Any]:
    """The parameters of a question that the gateway asks on behalf of a request."""
    meta = {name: part for name, part in frame.meta.items() if name.startswith(_IDENTITY)}
    return {"_meta": meta} if meta else {}


class Inbox:
    """What several upstreams say by themselves, in the order of its coming, for one reader.

    As a :class:`~mcp_envelope.core.link.Reply`. Without a reader the oldest are dropped.
    """

    status = 200
    headers: Mapping[str, str] = {}
    streams: bool | None = None
    body = b""

    def __init__(self) -> None:
        self._items: deque[Item] = deque(maxlen=_MOST_KEPT)
        self._arrived = asyncio.Event()
        self._closed = False

    def put(self, item: Item) -> None:
        """Add one."""
        self._items.append(item)
        self._arrived.set()

    def open(self) -> Inbox:
        """To be read by somebody."""
        return self

    async def __aiter__(self) -> AsyncIterator[Item]:
        """The items as they come."""
        while not self._closed:
            while self._items:
                yield self._items.popleft()
            self._arrived.clear()
            await self._arrived.wait()

    async def close(self) -> None:
        """Nothing: it stays for the next reader."""

    def shut(self) -> None:
        """Nothing will come any more."""
        self._closed = True
        self._arrived.set()
