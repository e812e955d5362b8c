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
from .members import DEADLINE, Member, SaidError

T = TypeVar("T")
_MOST_KEPT: Final = 1_000
_MOST_BYTES: Final = 16 * 1024 * 1024
_PREFIX: Final = "io.modelcontextprotocol/"
#: Who asks is told on; what level of logs he wants is not, for nobody hands these on.
_IDENTITY: Final = ("protocolVersion", "clientCapabilities", "clientInfo")


async def gather(
    members: Iterable[Member], ask: Callable[[Member], Awaitable[T]]
) -> tuple[dict[str, T], dict[str, EnvelopeError]]:
    """What each member answers by the deadline, and why others do not."""
    asked = {member.name: asyncio.ensure_future(ask(member)) for member in members}
    for task in asked.values():
        task.add_done_callback(_looked_at)
    try:
        if asked:
            await asyncio.wait(asked.values(), timeout=DEADLINE)
    finally:  # also where the client has gone meanwhile
        for task in asked.values():
            task.cancel()
    found: dict[str, T] = {}
    failed: dict[str, EnvelopeError] = {}
    for name, task in asked.items():
        if not task.done() or task.cancelled():
            why = f"{name} gave no answer within {DEADLINE:g} s"
            failed[name] = EnvelopeError(why, code="UPSTREAM_UNAVAILABLE")
            continue
        error = task.exception()
        if isinstance(error, EnvelopeError):
            failed[name] = error
        elif error is not None:
            raise error
        else:
            found[name] = task.result()
    return found, failed


def tell_of(failed: Mapping[str, EnvelopeError]) -> list[str]:
    """The names of those that are absent; the log has them, too."""
    for name, why in failed.items():
        log.warning("%s is absent: %s", name, why)
    return list(failed)


def _looked_at(task: asyncio.Future[Any]) -> None:
    """Look at an error that comes after the deadline, so that nobody says that nobody has."""
    if not task.cancelled():
        task.exception()


async def listing(
    method: str,
    frame: Frame,
    members: Iterable[Member],
    stand_by: Callable[[Member], Awaitable[object]],
) -> tuple[dict[str, list[Document] | None], dict[str, EnvelopeError]]:
    """All pages of a list from each member; None from those that have no such list."""
    params = own_params(frame)
    needed = merging.NEEDED[method]

    async def ask(member: Member) -> list[Document] | None:
        if member.is_overdue:
            raise EnvelopeError(
                f"{member.name} has not answered initialize yet", code="UPSTREAM_UNAVAILABLE"
            )
        await stand_by(member)
        if member.greeting is not None and frame.revision is None and not member.can(needed):
            return None
        try:
            pages = [page async for page in member.pages(method, params)]
        except SaidError as error:
            if error.lacks_method:
                return None
            raise
        if method == "tools/list":
            for page in pages:
                member.talk.learn_tools(page, whole=len(pages) == 1)
        return pages

    return await gather(members, ask)


def own_params(frame: Frame) -> dict[str, Any]:
    """The parameters of a question that the gateway asks on behalf of a request."""
    names = [_PREFIX + name for name in _IDENTITY]
    meta = {name: frame.meta[name] for name in names if name in frame.meta}
    return {"_meta": meta} if meta else {}


class Inbox:
    """What several upstreams say by themselves, in the order of its coming, for one reader.

    As a :class:`~mcp_envelope.core.link.Reply`. Without a reader the oldest are dropped, and
    ``dropped`` is told, for somebody may wait for an answer.
    """

    status = 200
    headers: Mapping[str, str] = {}
    streams: bool | None = None
    body = b""

    def __init__(self, dropped: Callable[[Frame], object]) -> None:
        self.readers = 0
        self._dropped = dropped
        self._frames: deque[Frame] = deque()
        self._size = 0
        self._arrived = asyncio.Event()
        self._closed = False

    def put(self, frame: Frame) -> None:
        """Add one."""
        self._frames.append(frame)
        self._size += len(frame.raw)
        while len(self._frames) > _MOST_KEPT or self._size > _MOST_BYTES:
            self._dropped(self._take())
        self._arrived.set()

    def _take(self) -> Frame:
        frame = self._frames.popleft()
        self._size -= len(frame.raw)
        return frame

    def open(self) -> Inbox:
        """To be read by somebody."""
        return self

    async def __aiter__(self) -> AsyncIterator[Item]:
        """The items as they come."""
        self.readers += 1
        try:
            while not self._closed:
                while self._frames:
                    yield Item(self._take())
                self._arrived.clear()
                await self._arrived.wait()
        finally:
            self.readers -= 1

    async def close(self) -> None:
        """Nothing: it stays for the next reader."""

    def shut(self) -> None:
        """Nothing will come any more."""
        self._closed = True
        self._arrived.set()
