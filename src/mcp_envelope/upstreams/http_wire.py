"""One connection of HTTP/1.1, and the response that is read from it.

A response is fed by the connection's callbacks and read by one task; there is no task per
connection, stream or chunk. A connection serves one request at a time, and is given back as
soon as the last byte of the response is there.
"""

from __future__ import annotations

import asyncio
import select
from collections import deque
from typing import Final, Protocol, cast

import httptools

from mcp_envelope.core.errors import EnvelopeError

_HEAD_LIMIT: Final = 64 * 1024
_HIGH: Final = 1024 * 1024
_LOW: Final = 256 * 1024
_IDLE: Final = 30.0
#: How long the end of a stream may take after its answer, before the connection is given up.
_TAIL: Final = 1.0


class Keeper(Protocol):
    """Who looks after connections that serve no request."""

    shown: str

    def made(self, connection: Connection) -> None:
        """It is open."""

    def free(self, connection: Connection) -> None:
        """It may serve another request."""

    def lost(self, connection: Connection) -> None:
        """It is closed."""


class Response:
    """What comes back for one request; read by one task.

    ``status`` is 0 until the headers are there, ``begun`` tells whether any byte came.
    """

    __slots__ = (
        "_chunks",
        "_connection",
        "_unread",
        "_waiter",
        "begun",
        "closed",
        "complete",
        "error",
        "headers",
        "status",
    )

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.begun = False
        self.complete = False
        self.closed = False
        self.error: EnvelopeError | None = None
        self._connection: Connection | None = None
        self._chunks: deque[bytes] = deque()
        self._unread = 0
        self._waiter: asyncio.Future[None] | None = None

    async def head(self) -> None:
        """Wait for status and headers; return without them if it is closed meanwhile."""
        while not self.status and not self.closed:
            if self.error is not None:
                raise self.error
            await self._wait()

    async def read(self) -> bytes:
        """Some bytes of the body, none at its end; OUTCOME_UNKNOWN if it broke off."""
        while not self._chunks:
            if self.complete or self.closed:
                return b""
            if self.error is not None:
                raise self.error
            await self._wait()
        chunk = self._chunks.popleft()
        self._unread -= len(chunk)
        if self._unread < _LOW and self._connection is not None:
            self._connection.resume()
        return chunk

    async def body(self, limit: int) -> tuple[bytes, bool]:
        """The whole body, and whether it is whole: what passes the limit is cut off."""
        if self.complete and len(self._chunks) == 1:
            chunks = [self._chunks.popleft()]
        else:
            chunks = []
            size = 0
            while size <= limit and (chunk := await self.read()):
                chunks.append(chunk)
                size += len(chunk)
        body = b"".join(chunks)
        if len(body) > limit:
            self.close()
            return body[:limit], False
        return body, True

    def finish(self) -> None:
        """Want no more of it, and leave the rest a moment to arrive: its end is expected."""
        self.closed = True
        self._chunks.clear()
        if self._connection is not None:
            self._connection.resume()
            self._connection.expire(_TAIL)

    def close(self) -> None:
        """Want no more of it: what is not complete takes its connection along."""
        self.closed = True
        self._chunks.clear()
        if self._connection is not None:
            self._connection.abort()
        self.wake()

    # -- for the connection --

    def begin(self, connection: Connection) -> None:
        """It will be fed by this connection."""
        self._connection = connection

    def chunk(self, data: bytes) -> bool:
        """Take some of the body; True if the reader lags behind."""
        if self.closed:
            return False
        self._chunks.append(data)
        self._unread += len(data)
        self.wake()
        return self._unread > _HIGH

    def end(self, error: EnvelopeError | None = None) -> None:
        """Nothing more will come."""
        self.complete = error is None
        self.error = error
        self._connection = None
        self.wake()

    def wake(self) -> None:
        """Let the reader look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            self._waiter = None


class Connection(asyncio.Protocol):
    """A connection to an upstream. ``until`` is the time up to which it may be used again."""

    def __init__(self, keeper: Keeper) -> None:
        self.until = 0.0
        self._keeper = keeper
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._poll: select.poll | None = None
        self._response: Response | None = None
        self._headers: dict[str, str] = {}
        self._overhead = 0  # bytes that are no body: heads, trailers, chunk lines
        self._framed = self._ended = self._surplus = self._paused = self._keep = False
        self._oversized = self._eof = False
        self._tail: asyncio.TimerHandle | None = None

    # -- for the keeper and the response --

    def send(self, message: bytes, response: Response) -> None:
        """Write a request, and feed the response from what comes."""
        assert self._transport is not None  # noqa: S101 - the keeper waits until it is made
        self._response = response
        self._headers = {}
        self._overhead = 0
        self._framed = self._ended = False
        response.begin(self)
        self._transport.write(message)

    def usable(self) -> bool:
        """Whether the other side still listens, as far as can be known before writing.

        What the event loop has not seen yet counts as well: the end of the connection, or bytes
        that nobody asked for.
        """
        if self._transport is None or self._transport.is_closing():
            return False
        return self._poll is None or not self._poll.poll(0)

    def abort(self) -> None:
        """Close it at once."""
        if self._transport is not None:
            self._transport.abort()

    def resume(self) -> None:
        """Read on, if reading was paused."""
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def expire(self, seconds: float) -> None:
        """Close it, unless the response is complete by then."""
        if self._tail is None:
            loop = asyncio.get_running_loop()
            self._tail = loop.call_later(seconds, self.abort)

    # -- asyncio.Protocol --

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are no subclass of it
        place = transport.get_extra_info("socket")
        if place is not None:
            self._poll = select.poll()
            self._poll.register(place.fileno(), select.POLLIN)
        self._keeper.made(self)

    def data_received(self, data: bytes) -> None:
        """Hand on what came to the response, and see whether it is complete."""
        response = self._response
        if response is None:
            self.abort()  # nobody asked for anything
            return
        response.begun = True
        self._overhead += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._surplus = True
            if not self._ended:
                self._fail(f"answered with what is no HTTP ({str(error)[:100]})")
                return
        if self._oversized or (not self._ended and self._overhead > _HEAD_LIMIT):
            self._fail(f"sent more than {_HEAD_LIMIT:,} bytes of headers")
        elif self._ended:
            self._finish(response)

    def eof_received(self) -> None:
        """Nothing more will come, so nothing more is written either."""
        self._eof = True

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed, from here or from there."""
        self._transport = self._poll = None
        response = self._response
        if response is not None:
            if self._eof and exc is None and response.status and not self._framed:
                self._response = None
                response.end()  # a body that the end of the connection ends
            elif response.status:
                self._fail("broke off in the middle of its answer")
            else:
                self._fail("closed the connection before it answered")
        if self._tail is not None:
            self._tail.cancel()
        self._keeper.lost(self)

    # -- callbacks of the parser: what they raised would be lost in it, so they raise nothing --

    def on_message_begin(self) -> None:
        """A response begins; a second one was not asked for."""
        self._surplus = self._ended

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; one that comes several times has its values joined."""
        response = self._response
        if self._ended or response is None or response.status:
            return  # of a second answer, or a trailer
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1").strip(" \t")
        known = self._headers.get(key)
        self._headers[key] = text if known is None else f"{known}, {text}"

    def on_headers_complete(self) -> None:
        """Status and headers are there, or those of an interim response (1xx)."""
        response = self._response
        status: int = self._parser.get_status_code()
        if self._ended or response is None or status < 200:
            self._headers = {}
            return
        headers = self._headers
        if self._overhead > _HEAD_LIMIT:  # there may be some of the body in it
            size = sum(len(name) + len(text) for name, text in headers.items())
            self._oversized = size > _HEAD_LIMIT
        response.headers = headers
        response.status = status
        self._framed = "content-length" in headers or "chunked" in headers.get(
            "transfer-encoding", ""
        )
        response.wake()

    def on_body(self, body: bytes) -> None:
        """Hand on a part of the body; read no further while the reader lags."""
        # A chunk's own line is paid for by its content, however small; long extensions are not.
        self._overhead -= len(body) * 9
        if self._overhead < 0:
            self._overhead = 0
        response = self._response
        if response is None or self._ended:
            return
        if response.chunk(body) and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        """The response is complete."""
        response = self._response
        if response is not None and response.status:  # else it was 1xx
            self._ended = True
            self._keep = self._parser.should_keep_alive()

    # -- the end --

    def _finish(self, response: Response) -> None:
        self._response = None
        response.end()
        if self._tail is not None:
            self._tail.cancel()
            self._tail = None
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        lifetime = _lifetime(response.headers.get("keep-alive"))
        unsent = transport.get_write_buffer_size()
        if not self._keep or self._surplus or unsent or lifetime <= 0:
            transport.abort()
            return
        self.resume()
        self.until = asyncio.get_running_loop().time() + lifetime
        self._keeper.free(self)

    def _fail(self, what: str) -> None:
        response, self._response = self._response, None
        if response is not None:
            response.end(
                EnvelopeError(
                    f"the upstream at {self._keeper.shown} {what}",
                    code="OUTCOME_UNKNOWN",
                    hint="what it was asked to do may have been done, or not",
                )
            )
        self.abort()


def _lifetime(keep_alive: str | None) -> float:
    """How long an idle connection may be used: less than the server says that it waits."""
    for part in (keep_alive or "").split(","):
        name, _, value = part.strip().partition("=")
        if name.lower() == "timeout" and value.isascii() and value.isdigit():
            return min(_IDLE, float(value[:6]) - 1.0)
    return _IDLE
