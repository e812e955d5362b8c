"""How answers and streams are written over HTTP, and who may come in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_envelope.core.door import Answer
from mcp_envelope.core.hops import SUSPENDED
from mcp_envelope.core.link import Item, Reply
from mcp_envelope.core.sse import event_of

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

#: A comment: it keeps a connection from being taken for dead.
PING: Final = b": ping\r\n\r\n"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_STREAM_HEADERS: Final = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}


@dataclass(frozen=True, slots=True)
class Gate:
    """Which ``Host`` and ``Origin`` are let in, beside the loopback ones.

    Pages of other sites may not talk to a gateway on this machine, whatever name they have made
    resolve to it.
    """

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()

    def refusal(self, head: Mapping[str, str]) -> str | None:
        """Why a request is not let in, None if it is."""
        host = head.get("host", "").lower()
        if host not in self.hosts and _without_port(host) not in _LOOPBACK | self.hosts:
            return f"Host {host[:100]!r} is not served here; the setting is http.hosts"
        origin = head.get("origin")
        if origin is None or origin.lower() in self.origins:
            return None
        found = urlsplit(origin.lower())
        if found.scheme in ("http", "https") and _without_port(found.netloc) in _LOOPBACK:
            return None
        return f"Origin {origin[:100]!r} is not allowed; the setting is http.origins"


class HttpOutlet:
    """Where everything goes that belongs to one POST: a JSON body, or a stream of events.

    Which of them it becomes is the upstream's choice where it speaks HTTP itself (``relays``);
    else it is a stream as soon as anything comes before the answer.
    """

    __slots__ = ("_extra", "_relays", "_resumable", "_send", "_streaming", "is_done", "is_gone")

    def __init__(self, send: Send, relays: bool, resumable: bool, extra: Mapping[str, str]) -> None:
        self._send = send
        self._relays = relays
        self._resumable = resumable
        self._extra = extra
        self._streaming = False
        self.is_done = False
        #: The client does not read any more: nothing is written, and all goes on.
        self.is_gone = False

    async def begin(self, reply: Reply) -> None:
        """The upstream has begun to answer."""
        if reply.streams is True and not self._streaming:
            await self._begin_stream(reply.status, reply.headers)

    async def item(self, item: Item) -> None:
        """Something on the way to the answer."""
        if item.frame is not None and item.frame.method == SUSPENDED:
            return
        if not self._streaming:
            await self._begin_stream(200, {})
        await self._write(_bytes_of(item))

    async def suspend(self) -> bool:
        """The upstream closed its stream before the answer: close ours as well."""
        if not self._resumable or not self._streaming:
            return False
        await self._write(b"", last=True)
        self.is_done = True
        return True

    async def answer(self, answer: Answer) -> None:
        """The answer; nothing follows it."""
        if self.is_done:
            return
        self.is_done = True
        if self.is_gone:
            return
        if not self._streaming:
            status = 202 if answer.raw is None and not answer.body else answer.status
            headers = {**answer.headers, **self._extra}
            said = Answer(raw=answer.raw, body=answer.body, status=status, headers=headers)
            await send_answer(self._send, said if answer.status < 300 else _with(answer, headers))
            return
        data = b""
        if answer.raw is not None:
            event = answer.event or event_of(b"")
            data = event.raw if event.data == answer.raw else event.with_data(answer.raw).raw
        await self._write(data, last=True)

    async def ping(self) -> None:
        """Keep the connection from being taken for dead."""
        if self.is_done or self._relays:
            return
        if not self._streaming:
            await self._begin_stream(200, {})
        await self._write(PING)

    async def _begin_stream(self, status: int, headers: Mapping[str, str]) -> None:
        self._streaming = True
        if not self.is_gone:
            await begin_stream(self._send, status, {**headers, **self._extra})

    async def _write(self, data: bytes, *, last: bool = False) -> None:
        if not self.is_gone:
            await send_body(self._send, data, last=last)


def _with(answer: Answer, headers: Mapping[str, str]) -> Answer:
    return Answer(raw=answer.raw, body=answer.body, status=answer.status, headers=headers)


async def send_answer(send: Send, answer: Answer) -> None:
    """Write an answer as one body."""
    body = answer.raw if answer.raw is not None else answer.body
    headers = {"content-length": str(len(body)), **answer.headers}
    if answer.raw is not None:
        headers["content-type"] = "application/json"
    await _start(send, answer.status, headers)
    await send({"type": "http.response.body", "body": body})


async def send_text(
    send: Send, status: int, text: str, headers: Mapping[str, str] | None = None
) -> None:
    """Write a line of plain text."""
    given = {"content-type": "text/plain; charset=utf-8", **(headers or {})}
    await send_answer(send, Answer(body=text.encode(), status=status, headers=given))


async def send_stream(send: Send, reply: Reply, ping_every: float) -> None:
    """Write a stream of its own until it ends. ``ping_every`` is in seconds."""
    await begin_stream(send, reply.status, reply.headers)
    pinging = asyncio.create_task(_ping(send, ping_every)) if reply.streams is None else None
    try:
        async for item in reply:
            await send_body(send, _bytes_of(item))
    finally:
        if pinging is not None:
            pinging.cancel()
    await send_body(send, b"", last=True)


async def begin_stream(send: Send, status: int, headers: Mapping[str, str]) -> None:
    """Begin a stream of events."""
    await _start(send, status, {**_STREAM_HEADERS, **headers})


async def send_body(send: Send, data: bytes, *, last: bool = False) -> None:
    """Write a part of a body."""
    await send({"type": "http.response.body", "body": data, "more_body": not last})


async def _ping(send: Send, every: float) -> None:
    while True:
        await asyncio.sleep(every)
        await send_body(send, PING)


async def _start(send: Send, status: int, headers: Mapping[str, str]) -> None:
    pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})


def _bytes_of(item: Item) -> bytes:
    if item.event is not None:
        return item.event.raw
    return event_of(item.frame.raw).raw if item.frame is not None else b""


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[: host.find("]") + 1]
    return host.partition(":")[0]
