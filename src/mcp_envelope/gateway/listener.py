"""An ASGI application on a port: uvicorn, without its signals, logs and banners."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_BACKLOG: Final = 2048


class ListenError(OSError):
    """The port cannot be had."""


class _Gathering:
    """A transport that writes once what is written in one go, such as a head and its body.

    uvicorn writes them one after the other, and uvloop makes a system call of each.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._soon = asyncio.get_running_loop().call_soon
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not data:  # asyncio of 3.12 and 3.13 would try to write it for ever
            return
        if not self._parts:
            self._soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.writelines(parts)


class _Protocol(HttpToolsProtocol):
    """uvicorn's, on such a transport."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, _Gathering(transport)))


class _Server(uvicorn.Server):
    """A server whose signals are somebody else's, and that says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Listener:
    """A port that is served. Made by :meth:`open`."""

    def __init__(self, server: _Server, host: str, port: int) -> None:
        self._server = server
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{port}"

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, app: Any, host: str, port: int) -> AsyncIterator[Listener]:
        """Serve an ASGI application until the block ends. ListenError if the port is taken."""
        bound = _bind(host, port)
        config = uvicorn.Config(
            app,
            http=_Protocol,
            loop="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=1,
        )
        server = _Server(config)
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        try:
            await server.ready.wait()
            yield cls(server, host, bound.getsockname()[1])
        finally:
            server.should_exit = True
            await serving

    def stop_accepting(self) -> None:
        """Take no more connections; those that are there go on."""
        for server in self._server.servers:
            server.close()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(_BACKLOG)
    except OSError as error:
        bound.close()
        raise ListenError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    bound.setblocking(False)
    return bound
