"""What a gateway has to do with an upstream: conversations, and what comes back on them.

The words are those of Streamable HTTP, the richest of the transports; a child process on
pipes speaks them as well as it can. Nothing here is I/O: upstreams implement it, doors use it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from .frame import Frame
from .sse import Event


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that came on a reply.

    ``frame`` is the message, None for an SSE event that carries none (it primes a stream, or
    keeps it open). ``event`` is the SSE event as it came, None where it came another way.
    """

    frame: Frame | None
    event: Event | None = None


class Reply(Protocol):
    """What comes back for one message that was sent, or for listening.

    For a request, iterating gives everything that belongs to it, in order, its answer last;
    iteration then ends. It may end without an answer where an HTTP stream was closed early.
    ``streams`` is True for an SSE stream, False for a single body, None where the upstream
    does not say. ``status`` and ``headers`` are those of HTTP, 200 (202 for what wants no
    answer) and nothing elsewhere. ``body`` holds what is no JSON-RPC message, such as the text
    beside a 404; then iterating gives nothing.
    """

    status: int
    headers: Mapping[str, str]
    streams: bool | None
    body: bytes

    def __aiter__(self) -> AsyncIterator[Item]:
        """The items. EnvelopeError OUTCOME_UNKNOWN if the upstream is lost before the answer."""

    async def close(self) -> None:
        """Want no more of it. A request that is not answered yet is cancelled by this."""


class Link(Protocol):
    """One conversation with an upstream.

    ``head`` are HTTP headers in lower case that the client sent or the gateway made; a link
    that is not HTTP ignores them.
    """

    async def send(self, frame: Frame, head: Mapping[str, str]) -> Reply:
        """Send one message.

        EnvelopeError UPSTREAM_UNAVAILABLE if it is certain that nothing reached the upstream,
        OUTCOME_UNKNOWN if it may have.
        """

    async def listen(self, head: Mapping[str, str]) -> Reply:
        """Everything that belongs to no request of ours."""

    async def close(self) -> None:
        """End the conversation; safe to call twice."""


class Relay(Link, Protocol):
    """A link on which sessions are the upstream's own."""

    async def end(self, head: Mapping[str, str]) -> Reply:
        """End the session that the head names (a DELETE)."""


class Upstream(Protocol):
    """A server that the gateway stands in front of. ``name`` is the operator's name for it."""

    name: str

    async def connect(self, *, stateless: bool) -> Link:
        """A conversation that looks after itself; UPSTREAM_UNAVAILABLE if there can be none.

        It takes part as a client of its own would: over HTTP it makes the headers, keeps the
        session, and takes up streams that were closed before their answer. ``stateless`` is for
        clients of 2026-07-28 on whose door serves many at once: these may share a process, and
        then ids and progress tokens are told apart on the way. Other conversations have one
        process of their own, and everything is passed on as it is.
        """

    def relay(self) -> Relay | None:
        """A link that hands on what the client of an HTTP door says, and what it is answered.

        Sessions, headers, statuses and streams are the upstream's own then, and which
        conversation a message belongs to is for the upstream to find out. None where the
        upstream does not speak HTTP.
        """

    async def close(self) -> None:
        """End all conversations, and whatever was started for them."""
