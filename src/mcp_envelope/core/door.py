"""What a door and the gateway behind it have to do with one another.

A door turns bytes into frames and answers into bytes. Everything that is decided about a
message is decided behind it, the same for every door.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol

from .errors import EnvelopeError
from .frame import Frame, FrameError
from .link import Item, Reply
from .sse import Event

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
LEGACY: Final = "2025-06-18"
STATELESS: Final = "2026-07-28"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The last word on a message.

    ``raw`` is the JSON-RPC message to send, None where there is none (a notification was
    accepted, a call was cancelled); ``body`` is sent as it is instead, where an upstream
    answered with something else. ``status`` and ``headers`` count over HTTP only. ``event`` is
    the SSE event that the answer came in, whose id it keeps.
    """

    raw: bytes | None = None
    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    event: Event | None = None


class Outlet(Protocol):
    """Where everything goes that belongs to one message of a client's."""

    async def begin(self, reply: Reply) -> None:
        """The upstream has begun to answer."""

    async def item(self, item: Item) -> None:
        """Something on the way to the answer: progress, a log line, a question back."""

    async def suspend(self) -> bool:
        """The upstream closed the stream before its answer: close the client's as well.

        False if this door's client could not take it up again on another one.
        """

    async def answer(self, answer: Answer) -> None:
        """The answer; nothing follows it."""


class Conversation(Protocol):
    """One client's talk through the gateway, whichever upstreams are behind it."""

    @property
    def session(self) -> str | None:
        """The session id that the gateway made for it, to be told to the client."""

    @property
    def relays(self) -> bool:
        """Whether statuses, headers and streams are the upstream's own, and only passed on."""

    @property
    def resumable(self) -> bool:
        """Whether a client can take up a stream again that was closed before its answer."""

    async def handle(self, frame: Frame, head: Mapping[str, str], outlet: Outlet) -> None:
        """Take one message all the way; the answer is given to the outlet before this returns."""

    async def malformed(self, error: FrameError, size: int) -> Answer:
        """Record bytes that are no message, and say what is wrong with them."""

    async def listen(self, head: Mapping[str, str]) -> Reply:
        """What belongs to no message of the client's."""

    def gone(self, frame: Frame) -> None:
        """The client does not read the answer to this message any more.

        From 2026-07-28 on that cancels it; before, it goes on, and ends in the record.
        """

    async def close(self) -> None:
        """The client has gone."""


class Desk(Protocol):
    """Where a door finds the conversation that a message belongs to."""

    async def converse(
        self, frame: Frame | None, head: Mapping[str, str], *, door: str, peer: str
    ) -> Conversation:
        """The conversation that a message, or a GET (``frame`` is None), belongs to.

        It goes by ``mcp-session-id`` and ``mcp-protocol-version`` of the head and, for a door
        that is one conversation by itself, is asked for once, with an empty head. Raises
        :class:`RefusedError` where there is none.
        """

    async def end(self, head: Mapping[str, str], *, door: str, peer: str) -> Answer:
        """End the session that the head names, as a DELETE asks for."""

    async def malformed(self, error: FrameError, size: int, *, door: str, peer: str) -> Answer:
        """Record bytes that are no message and belong to no conversation; the answer to them."""

    async def refuse(
        self,
        error: EnvelopeError,
        frame: Frame | None,
        head: Mapping[str, str],
        *,
        door: str,
        peer: str,
        status: int | None = None,
    ) -> Answer:
        """Record that a message goes nowhere; the answer that says so."""


class RefusedError(Exception):
    """There is no conversation for this message; ``answer`` says so in the client's words."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"refused with HTTP {answer.status}")
        self.answer = answer
