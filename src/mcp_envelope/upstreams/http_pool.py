"""Connections to one upstream: opened when they are needed, and used again while they live."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Final

from mcp_envelope.core.errors import EnvelopeError

from .http_target import Target
from .http_wire import Connection, Response

_MOST_IDLE: Final = 100
_SWEEP: Final = 5.0


class Pool:
    """The connections to one upstream.

    As many are open at once as there are requests under way. ``context`` is how servers are
    verified; None stands for the system's certificate authorities (``SSL_CERT_FILE`` adds one).
    """

    def __init__(
        self,
        target: Target,
        *,
        connect_timeout: float = 10.0,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.target = target
        self.shown = target.shown
        self._timeout = connect_timeout
        self._context = context
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False
        self._empty: asyncio.Future[None] | None = None

    async def exchange(
        self, message: bytes, response: Response, *, repeatable: bool = False
    ) -> None:
        """Send a request and wait for the head of its response.

        UPSTREAM_UNAVAILABLE if nothing was sent, OUTCOME_UNKNOWN if the connection was lost
        after that. A ``repeatable`` request is then sent a second time, on a new connection,
        if not a byte of an answer had come. Returns early if the response is closed meanwhile.
        """
        connection = self._take() or await self._connect()
        try:
            await self._once(connection, message, response)
        except EnvelopeError:
            if not repeatable or response.begun:
                raise
            response.error = None
            await self._once(await self._connect(), message, response)

    async def _once(self, connection: Connection, message: bytes, response: Response) -> None:
        if response.closed:
            self.free(connection)
            return
        connection.send(message, response)
        await response.head()

    async def close(self) -> None:
        """Close all connections; those that serve a request lose it."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._idle.clear()
        for connection in list(self._open):
            connection.abort()
        if self._open:
            self._empty = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._empty], timeout=1.0)

    # -- for connections --

    def made(self, connection: Connection) -> None:
        """Know of an open connection."""
        self._open.add(connection)

    def lost(self, connection: Connection) -> None:
        """Forget one that is closed."""
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        if not self._open and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    def free(self, connection: Connection) -> None:
        """Keep one for the next request."""
        if self._closed or len(self._idle) >= _MOST_IDLE:
            connection.abort()
            return
        self._idle.append(connection)
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(_SWEEP, self._sweep)

    def _take(self) -> Connection | None:
        """The connection that was used last, if it can still be used."""
        while self._idle:
            connection = self._idle.pop()
            now = asyncio.get_running_loop().time()
            if connection.until > now and connection.usable():
                return connection
            connection.abort()
        return None

    def _sweep(self) -> None:
        self._sweeper = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in [idle for idle in self._idle if idle.until <= now]:
            self._idle.remove(connection)
            connection.abort()
        if self._idle:
            self._sweeper = loop.call_later(_SWEEP, self._sweep)

    async def _connect(self) -> Connection:
        self._must_be_open()
        target = self.target
        if target.tls and self._context is None:
            self._context = ssl.create_default_context()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeout):
                _, connection = await loop.create_connection(
                    lambda: Connection(self),
                    target.host,
                    target.port,
                    ssl=self._context if target.tls else None,
                    server_hostname=target.host if target.tls else None,
                )
        except OSError as error:
            what, hint = _reason(error, self._timeout)
            raise self._unavailable(what, hint) from None
        connection.until = loop.time() + _SWEEP
        try:
            self._must_be_open()
        except EnvelopeError:
            connection.abort()
            raise
        return connection

    def _must_be_open(self) -> None:
        if self._closed:
            raise self._unavailable("is not used any more: the gateway is closing")

    def _unavailable(self, what: str, hint: str = "") -> EnvelopeError:
        message = f"the upstream at {self.shown} {what}"
        return EnvelopeError(message, code="UPSTREAM_UNAVAILABLE", hint=hint)


def _reason(error: OSError, seconds: float) -> tuple[str, str]:
    """Why there is no connection, and what to do about it."""
    if isinstance(error, TimeoutError):
        return f"cannot be reached within {seconds:g} s", "check the network, or connect_timeout"
    if isinstance(error, ConnectionRefusedError):
        return "refuses connections", "start the server, or check host and port of the url"
    if isinstance(error, socket.gaierror):
        return "has a host name that cannot be resolved", "check the host of the url"
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"has a certificate that is not accepted ({error.verify_message})",
            "name the certificate authority's file in SSL_CERT_FILE",
        )
    if isinstance(error, ssl.SSLError):
        return (
            f"does not agree on TLS ({error.reason or 'the handshake failed'})",
            "check that the url's port speaks https",
        )
    return f"cannot be reached ({error.strerror or type(error).__name__})", "check the url"
