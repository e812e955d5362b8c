"""One upstream among several: its link, which is made when it is needed, and its handshake."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from itertools import count
from typing import Any, Final

from mcp_envelope.core.document import Document
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, frame_of
from mcp_envelope.core.link import Item

from .ground import Ground, log
from .lazy import LazyLink
from .lookup import OWN
from .merging import LISTS
from .route import Route
from .talk import Talk

#: How long all upstreams together are waited for; who is later is absent for now.
DEADLINE: Final = 5.0
#: The first pause before a member that is not there is tried again, and the longest.
PAUSE: Final = 5.0
_LONGEST_PAUSE: Final = 60.0
_MOST_PAGES: Final = 200
_INITIALIZED: Final = {"jsonrpc": "2.0", "method": "notifications/initialized"}
_SET_LEVEL: Final = "logging/setLevel"
_METHOD_NOT_FOUND: Final = -32601
_UNSUPPORTED: Final = -32022


class SaidError(EnvelopeError):
    """An upstream answered a question of the gateway's with an error: ``fault`` is that error."""

    def __init__(self, name: str, method: str, answer: Frame) -> None:
        self.fault: Document | None = answer.document.at("/error")
        fault = answer.value.get("error") or {}
        self.number: object = fault.get("code")
        said = str(fault.get("message"))[:200]
        super().__init__(
            f"{name} answered {method} with an error: {said!r}", code="EXECUTION_FAILED"
        )

    @property
    def lacks_method(self) -> bool:
        """Whether the upstream does not know the method."""
        return self.number == _METHOD_NOT_FOUND

    @property
    def tells_version(self) -> bool:
        """Whether it is about the version alone: who says so is of the era without handshakes."""
        return self.number == _UNSUPPORTED


class Member:
    """One upstream of an assembly, for one conversation."""

    def __init__(
        self, route: Route, ground: Ground, *, stateless: bool, door: str, peer: str
    ) -> None:
        self.name = route.name
        self.route = route
        self.link = LazyLink(route, stateless=stateless)
        self.talk = Talk(route, self.link, ground, door=door, peer=peer, shared=stateless)
        #: The result of its initialize, None as long as there is none.
        self.greeting: Document | None = None
        #: Is shown what comes on the way to the answers to the gateway's own questions.
        self.heard: Callable[[Item], object] = _nobody
        self._level: Document | None = None
        self._ground = ground
        self._asked = 0
        self._greeting: asyncio.Task[Document] | None = None
        self._began = 0.0

    def can(self, capability: str) -> bool:
        """Whether it has announced a capability."""
        found = self.greeting.value.get("capabilities") if self.greeting is not None else None
        return isinstance(found, dict) and found.get(capability) is not None

    @property
    def is_overdue(self) -> bool:
        """Whether it has left a handshake unanswered for longer than anybody is to wait."""
        task = self._greeting
        if task is None or task.done():
            return False
        return self._ground.tick() - self._began > DEADLINE

    async def greet(self, opening: Frame, is_ready: Callable[[], bool]) -> Document:
        """Shake hands as the client did, once; ``is_ready`` if the client has said that it is.

        Whoever asks while it is under way waits for the same; it goes on if they give up.
        """
        if self.greeting is not None:
            return self.greeting
        if self._greeting is None or self._greeting.done():
            self._began = self._ground.tick()
            self._greeting = asyncio.create_task(self._greet(opening, is_ready))
            self._greeting.add_done_callback(_looked_at)
        return await asyncio.shield(self._greeting)

    async def greet_at_last(self, opening: Frame, is_ready: Callable[[], bool]) -> None:
        """Shake hands, however long it takes until that is possible."""
        for attempt in count():
            try:
                await self.greet(opening, is_ready)
            except EnvelopeError:
                await asyncio.sleep(pause_before(attempt))
            else:
                return

    async def _greet(self, opening: Frame, is_ready: Callable[[], bool]) -> Document:
        greeting = await self.ask(opening.method, opening.document.at("/params"))
        self.greeting = greeting
        if is_ready():
            await self.tell(frame_of(_INITIALIZED))
        if self._level is not None and self.can("logging"):
            await self.answer_to(_SET_LEVEL, self._level)
        return greeting

    async def set_level(self, params: Document | None) -> None:
        """Ask for logs of a level: now, or once there has been a handshake."""
        self._level = params
        if self.can("logging"):
            await self.ask(_SET_LEVEL, params)

    async def ask(self, method: str, params: Document | None) -> Document:
        """The result of a request of the gateway's own; EnvelopeError if there is none."""
        answer = await self.answer_to(method, params)
        result = answer.result
        if result is None:
            raise SaidError(self.name, method, answer)
        if not result.is_object:
            why = f"{self.name} answered {method} with a result that is no object"
            raise EnvelopeError(why, code="EXECUTION_FAILED")
        return result

    async def answer_to(self, method: str, params: Document | None) -> Frame:
        """The answer to a request of the gateway's own."""
        self._asked += 1
        own = f"{OWN}{self._ground.instance}/m{self._asked}"
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": own, "method": method}
        if params is not None:
            message["params"] = params
        reply = await self.link.send(frame_of(message), {})
        try:
            async for item in reply:
                if item.frame is not None and item.frame.shape == "response":
                    return item.frame
                self.heard(item)
        finally:
            await reply.close()
        raise EnvelopeError(f"{self.name} did not answer {method}", code="OUTCOME_UNKNOWN")

    async def pages(self, method: str, params: Mapping[str, Any]) -> AsyncIterator[Document]:
        """The results of a list, page by page."""
        cursor: object = None
        seen: set[str] = set()
        for _ in range(_MOST_PAGES):
            asked = dict(params) if cursor is None else {**params, "cursor": cursor}
            page = await self.ask(method, Document.of(asked) if asked else None)
            if not isinstance(page.value.get(LISTS[method]), list):
                why = f"{self.name} answered {method} without a list"
                raise EnvelopeError(why, code="EXECUTION_FAILED")
            yield page
            cursor = page.value.get("nextCursor")
            if not isinstance(cursor, str) or cursor in seen:
                return
            seen.add(cursor)
        log.warning("%s: %s has more pages than %d, the rest is left", self.name, method, len(seen))

    async def tell(self, frame: Frame) -> None:
        """Send something that wants no answer; what goes wrong is only logged."""
        try:
            await self.link.send(frame, {})
        except EnvelopeError as error:
            log.warning("%s: %s was not delivered: %s", self.name, frame.method, error)

    async def close(self) -> None:
        """End the conversation with it."""
        if self._greeting is not None:
            self._greeting.cancel()
            await asyncio.wait([self._greeting])
        await self.talk.close()


def pause_before(attempt: int) -> float:
    """How long to wait after so many attempts to reach a member that is not there."""
    return float(min(PAUSE * 2 ** min(attempt, 10), _LONGEST_PAUSE))


def _nobody(item: Item) -> None:
    """Nobody listens."""


def _looked_at(task: asyncio.Task[Document]) -> None:
    """Look at a handshake's error, so that nobody says that nobody has."""
    if not task.cancelled():
        task.exception()
