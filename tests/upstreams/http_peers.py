"""Peers for the tests of HTTP upstreams: a server that follows a script, and the official SDK's.

The scripted one speaks raw bytes, so that it can do wrong whatever can be done wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
import uvloop
from mcp.server.mcpserver import Context, MCPServer

from mcp_envelope.core.frame import Frame, frame_of

PATIENCE = 20.0
REVISION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


def run(work: Coroutine[Any, Any, None], loop: str = "asyncio") -> None:
    """Run a test's coroutine, not for ever."""

    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE):
            await work

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(bounded())


async def eventually(holds: Callable[[], bool]) -> None:
    """Wait for something that nobody announces."""
    for _ in range(2_000):
        if holds():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it does not come to hold")


@dataclass
class Asked:
    """A request as the scripted server read it; ``number`` counts them over all connections."""

    number: int
    connection: int
    method: str
    path: str
    head: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        """The body's value; an empty one where there is no body."""
        found: dict[str, Any] = json.loads(self.body or b"{}")
        return found


@dataclass
class Talk:
    """What a script may do with a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    server: Scripted

    async def write(self, *parts: bytes) -> None:
        """Send these bytes, each part by itself."""
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            await asyncio.sleep(0)

    def reset(self) -> None:
        """End the connection with RST."""
        place = self.writer.get_extra_info("socket")
        place.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def gone(self) -> None:
        """Wait until the other side has closed."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65536):
                pass


Script = Callable[[Talk, Asked], Awaitable[bool | None]]


@dataclass
class Scripted:
    """A server that follows a script for each request; the connection ends when it says False."""

    script: Script
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    news: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something about this server to hold."""
        async with self.news:
            await self.news.wait_for(holds)

    async def _tell(self) -> None:
        async with self.news:
            self.news.notify_all()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.connections += 1
        self.open += 1
        number = self.connections
        talk = Talk(reader, writer, self)
        try:
            while (asked := await self._read(reader, number)) is not None:
                self.asked.append(asked)
                await self._tell()
                if await self.script(talk, asked) is False:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
            self.open -= 1
            await self._tell()

    async def _read(self, reader: asyncio.StreamReader, connection: int) -> Asked | None:
        try:
            raw = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        first, *lines = raw.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ")
        head = {}
        for line in lines:
            if line:
                name, _, text = line.partition(": ")
                assert name not in head, "each header once"
                head[name] = text
        body = await reader.readexactly(int(head.get("content-length", "0")))
        return Asked(len(self.asked), connection, method, path, head, body)


@contextlib.asynccontextmanager
async def scripted(script: Script, **options: Any) -> AsyncIterator[Scripted]:
    """A scripted server on a free port of the loopback."""
    peer = Scripted(script)
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0, limit=1 << 20, **options)
    port = server.sockets[0].getsockname()[1]
    scheme = "https" if options else "http"
    peer.url = f"{scheme}://127.0.0.1:{port}/mcp"
    try:
        yield peer
        await peer.until(lambda: peer.open == 0)  # or the test has left something open
    finally:
        server.close()


def answer(
    body: bytes | str, status: str = "200 OK", *more: str, kind: str = "application/json"
) -> bytes:
    """A response with a length."""
    raw = body.encode() if isinstance(body, str) else body
    head = [f"HTTP/1.1 {status}", f"content-length: {len(raw)}", *more]
    if kind:
        head.append(f"content-type: {kind}")
    return "\r\n".join(head).encode() + b"\r\n\r\n" + raw


def stream(*more: str) -> bytes:
    """The head of a stream of events."""
    head = [
        "HTTP/1.1 200 OK",
        "content-type: text/event-stream",
        "transfer-encoding: chunked",
        *more,
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n"


def chunk(data: bytes | str) -> bytes:
    """A chunk; an empty one is the last."""
    raw = data.encode() if isinstance(data, str) else data
    return b"%x\r\n%b\r\n" % (len(raw), raw)


def result(id: object, **members: object) -> str:
    """A response as text."""
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": members})


def request(method: str, id: int | str = 1, revision: str | None = None, **params: object) -> Frame:
    """A request; one with a revision is of 2026-07-28 or later."""
    if revision is not None:
        params["_meta"] = {REVISION: revision, CAPABILITIES: {}}
    return frame_of({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def note(method: str, **params: object) -> Frame:
    """A notification."""
    return frame_of({"jsonrpc": "2.0", "method": method, "params": params})


INITIALIZE = request(
    "initialize",
    0,
    protocolVersion="2025-11-25",
    capabilities={},
    clientInfo={"name": "tests", "version": "1"},
)
INITIALIZED = note("notifications/initialized")


def sdk_server() -> MCPServer:
    """A server of the official SDK with a few tools."""
    server = MCPServer("peer")

    @server.tool()
    def echo(text: str) -> str:
        """Give the text back."""
        return text

    @server.tool()
    async def steps(count: int, ctx: Context) -> str:
        """Report progress."""
        for number in range(count):
            await ctx.report_progress(number, count, "going on")
        return "done"

    return server


@contextlib.contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an ASGI app by uvicorn in a thread; gives the address."""
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1, ws="none")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as place:
        port = place.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join(10)
            assert not thread.is_alive()
