"""One upstream among several: its link, which is made when it is needed, and its handshake."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from itertools import count
from typing import Any, Final

from mcp_envelope.core.document import Document
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, frame_of

from .ground import Ground, log
from .lazy import LazyLink
from .lookup import OWN
from .route import Route
from .talk import Talk

#: How long all upstreams together are waited for; who is later is absent for now.
DEADLINE: Final = 5.0
_MOST_PAGES: Final = 200
_INITIALIZED: Final = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class Member:
    """One upstream of an assembly, for one conversation."""

    def __init__(
        self, route: Route, ground: Ground, *, stateless: bool, door: str, peer: str
    ) -> None:
        self.name = route.name
        self.route = route
        self.link = LazyLink(route, stateless=stateless)
        self.talk = Talk(route, self.link, ground, door=door, peer=peer, shared=stateless)
        #: The result of its initialize or server/discover, None as long as there is none.
        self.greeting: Document | None = None
        self._ground = ground
        self._asked = 0
        self._greeting: asyncio.Task[Document] | None = None

    def can(self, capability: str) -> bool:
        """Whether it has announced a capability."""
        found = self.greeting.value.get("capabilities") if self.greeting is not None else None
        return isinstance(found, dict) and found.get(capability) is not None

    async def greet(self, opening: Frame, *, ready: bool) -> Document:
        """Shake hands as the client did, once; ``ready`` if the client has said that it is.

        Whoever asks while it is under way waits for the same; it goes on if they give up.
        """
        if self.greeting is not None:
            return self.greeting
        if self._greeting is None or self._greeting.done():
            self._greeting = asyncio.create_task(self._greet(opening, ready))
            self._greeting.add_done_callback(_heard)
        return await asyncio.shield(self._greeting)

    async def greet_at_last(self, opening: Frame, is_ready: Callable[[], bool]) -> None:
        """Shake hands, however long it takes until that is possible."""
        for attempt in count():
            try:
                await self.greet(opening, ready=is_ready())
            except EnvelopeError:
                await asyncio.sleep(min(5.0 * 2**attempt, 60.0))
            else:
                return

    async def _greet(self, opening: Frame, ready: bool) -> Document:
        greeting = await self.ask(opening.method, opening.document.at("/params"))
        if ready and opening.method == "initialize":
            await self.tell(frame_of(_INITIALIZED))
        self.greeting = greeting
        return greeting

    async def ask(self, method: str, params: Document | None) -> Document:
        """The result of a request of the gateway's own; EnvelopeError if there is none."""
        answer = await self.answer_to(method, params)
        result = answer.result
        if result is None:
            raise EnvelopeError(
                f"{self.name} answered {method} with an error", code="EXECUTION_FAILED"
            )
        return result

    async def answer_to(self, method: str, params: Document | None) -> Frame:
        """The answer to a request of the gateway's own."""
        self._asked += 1
        own = f"{OWN}{self._ground.instance}/m{self._asked}"
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": own, "method": method}
        if params is not None:
            message["params"] = params
        reply = await self.link.send(frame_of(message), {})
        async for item in reply:
            if item.frame is not None and item.frame.shape == "response":
                return item.frame
        raise EnvelopeError(f"{self.name} did not answer {method}", code="OUTCOME_UNKNOWN")

    async def pages(self, method: str, params: Mapping[str, Any]) -> AsyncIterator[Document]:
        """The results of a list, page by page."""
        cursor: object = None
        seen: set[str] = set()
        for _ in range(_MOST_PAGES):
            asked = dict(params) if cursor is None else {**params, "cursor": cursor}
            page = await self.ask(method, Document.of(asked) if asked else None)
            yield page
            cursor = page.value.get("nextCursor") if page.is_object else None
            if not isinstance(cursor, str) or cursor in seen:
                return
            seen.add(cursor)

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
        await self.talk.close()


def _heard(task: asyncio.Task[Document]) -> None:
    """Look at a handshake's error, so that nobody says that nobody has."""
    if not task.cancelled():
        task.exception()
