"""HTTP as bytes on sockets, at both ends: no library may tidy up what is sent."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from tests.gateway.puppet import Puppet, id_in

VERSION = b"io.modelcontextprotocol/protocolVersion"
STREAM = b"HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"


@dataclass(frozen=True)
class Response:
    """What came back over HTTP."""

    status: int
    head: dict[str, str]
    body: bytes

    @property
    def messages(self) -> list[bytes]:
        """The JSON-RPC messages in it, as they were written."""
        if self.head.get("content-type", "").startswith("text/event-stream"):
            return events_in(self.body)
        return [self.body] if self.body.startswith(b"{") else []


def events_in(stream: bytes) -> list[bytes]:
    """The data of the events of a stream that has ended."""
    found = []
    for block in stream.replace(b"\r\n", b"\n").split(b"\n\n"):
        lines = [line for line in block.split(b"\n") if line.startswith(b"data:")]
        data = b"\n".join(line[5:].removeprefix(b" ") for line in lines)
        if data:
            found.append(data)
    return found


async def post(
    port: int,
    body: bytes,
    head: Mapping[str, str],
    *,
    method: str = "POST",
    size: int | None = None,
    bytewise: bool = False,
) -> Response:
    """One request on a connection of its own. ``size`` is what is said of the body's.

    ``bytewise`` sends the body in chunks of one byte.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        lines = {
            "host": f"127.0.0.1:{port}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "content-length": str(len(body) if size is None else size),
            "connection": "close",
            **head,
        }
        if bytewise:
            lines |= {"content-length": "", "transfer-encoding": "chunked"}
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
        writer.write(f"{method} /mcp HTTP/1.1\r\n{text}\r\n".encode("latin-1"))
        for part in (body[at : at + 1] for at in range(len(body) if bytewise else 0)):
            writer.write(b"1\r\n%b\r\n" % part)
            await asyncio.sleep(0)
        writer.write(b"0\r\n\r\n" if bytewise else body)
        status, found = await _head(reader)
        return Response(status, found, await _body(reader, found))
    finally:
        writer.close()


@dataclass
class Stream:
    """A response that is read event by event."""

    status: int
    head: dict[str, str]
    reader: asyncio.StreamReader
    kept: bytes = b""
    is_over: bool = False

    async def block(self) -> bytes:
        """What is written up to the next empty line, comments too; nothing at the end."""
        async with asyncio.timeout(5):
            while (found := _BLOCK.match(self.kept)) is None:
                size = int(await self.reader.readline(), 16)
                self.kept += await self.reader.readexactly(size)
                await self.reader.readexactly(2)
                if not size:
                    self.is_over = True
                    return b""
        self.kept = self.kept[found.end() :]
        return found[1]

    async def rest(self) -> list[bytes]:
        """All blocks up to the end."""
        found = []
        while block := await self.block():
            found.append(block)
        return found


_BLOCK = re.compile(rb"(.*?)(?:\r\n\r\n|\n\n)", re.DOTALL)


@asynccontextmanager
async def streaming(
    port: int, body: bytes, head: Mapping[str, str], *, method: str = "POST"
) -> AsyncIterator[Stream]:
    """One request, whose response is read bit by bit; leaving cuts the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        lines = {
            "host": f"127.0.0.1:{port}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "content-length": str(len(body)),
            **head,
        }
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        writer.write(f"{method} /mcp HTTP/1.1\r\n{text}\r\n".encode("latin-1") + body)
        async with asyncio.timeout(5):
            status, found = await _head(reader)
        yield Stream(status, found, reader)
    finally:
        writer.transport.abort()


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    first = await reader.readline()
    head = {}
    while (line := (await reader.readline()).strip()) != b"":
        name, _, value = line.decode("latin-1").partition(":")
        head[name.lower()] = value.strip()
    word = first.split(b" ", 2)[1]
    return int(word) if word.isdigit() else 0, head


async def _body(reader: asyncio.StreamReader, head: Mapping[str, str]) -> bytes:
    if head.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(head.get("content-length", "0")))
    parts = []
    while size := int(await reader.readline(), 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    return b"".join(parts)


@dataclass
class Endpoint:
    """A puppet behind HTTP. ``heard`` are the heads and bodies of what was POSTed.

    How it answers is said by ``params.plan.as``: ``json`` (if nothing is said), ``sse``, ``lines``
    (each line of the data in a field of its own), ``crlf``, ``bytes`` (a byte a chunk), ``reset``,
    which is no answer, ``crooked`` (a body that need not be JSON), or an HTTP status, with which
    the message is sent as plain text. With ``slow`` the last message of a stream waits for
    ``notifications/release``. Where ``listens`` is set a GET is answered with a stream, on which
    :meth:`announce` writes.
    """

    port: int = 0
    heard: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    puppet: Puppet = field(default_factory=Puppet)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    closing: bool = False
    listens: asyncio.Event | None = None
    listeners: list[asyncio.StreamWriter] = field(default_factory=list)
    open: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = field(default_factory=dict)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take the requests of one connection."""
        self.open[writer] = asyncio.current_task()
        with suppress(ConnectionError, asyncio.IncompleteReadError, IndexError):
            while not self.closing and not reader.at_eof():
                line = await reader.readuntil(b" ")
                _, head = await _head(reader)
                body = await _body(reader, head) if line == b"POST " else b""
                if not await self._answer(line, head, body, writer):
                    break
        writer.close()
        del self.open[writer]

    def announce(self, message: bytes) -> None:
        """Write a message to whoever has opened a stream with GET."""
        event = b"data: %b\n\n" % message
        for writer in self.listeners:
            writer.write(b"%x\r\n%b\r\n" % (len(event), event))

    async def close(self) -> None:
        """Let all connections end."""
        self.closing = True
        tasks = [task for task in self.open.values() if task is not None]
        for writer in self.open:
            writer.transport.abort()
        while tasks and not all(task.done() for task in tasks):
            self.released.set()
            await asyncio.wait(tasks, timeout=0.02)

    async def _answer(
        self, line: bytes, head: dict[str, str], body: bytes, writer: asyncio.StreamWriter
    ) -> bool:
        if line != b"POST ":
            self._listen(line, writer)
            return True
        self.heard.append((head, body))
        message = json.loads(body)
        said, then = self.puppet.react(body)
        if "id" not in message or "method" not in message:
            if message.get("method") == "notifications/release":
                self.released.set()
            writer.write(b"HTTP/1.1 202 x\r\ncontent-length: 0\r\n\r\n")
            return True
        plan = message.get("params", {}).get("plan") or {}
        if then == "die" or plan.get("as") == "reset":
            writer.transport.abort()
            return False
        if head.get("mcp-protocol-version", "") >= "2026" and VERSION not in body:
            said = [b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32602,"message":""}}' % id_in(body)]
        if plan.get("as", "").isdigit():
            start = b"HTTP/1.1 %b x\r\ncontent-type: text/plain\r\ncontent-length: %d\r\n\r\n"
            writer.write(start % (plan["as"].encode(), len(said[-1])) + said[-1])
            return True
        if then == "hang":
            await self.released.wait()
            self.released.clear()
            said = [b'{"jsonrpc":"2.0","id":%b,"result":{"content":[]}}' % id_in(body)]
        extra = b"mcp-session-id: s-1\r\n" if message["method"] == "initialize" else b""
        how = plan.get("as", "json")
        if how == "slow":
            await self._write_slowly(writer, said)
        elif how == "crooked":
            await _write(writer, said, "json", extra, 200)
        else:
            await _write(writer, said, how, extra, _status(said, head))
        return True

    def _listen(self, line: bytes, writer: asyncio.StreamWriter) -> None:
        if line == b"GET " and self.listens is not None:
            writer.write(STREAM + b"\r\n")
            self.listeners.append(writer)
            self.listens.set()
        else:
            status = 405 if line == b"GET " else 200
            writer.write(b"HTTP/1.1 %d x\r\ncontent-length: 0\r\n\r\n" % status)

    async def _write_slowly(self, writer: asyncio.StreamWriter, said: list[bytes]) -> None:
        writer.write(STREAM + b"\r\n")
        for text in said:
            if text is said[-1]:
                await self.released.wait()
                self.released.clear()
            event = b": before\n\ndata: %b\n\n" % text
            writer.write(b"%x\r\n%b\r\n" % (len(event), event))
        writer.write(b"0\r\n\r\n")


def _status(said: list[bytes], head: Mapping[str, str]) -> int:
    error = json.loads(said[-1]).get("error") or {}
    if head.get("mcp-protocol-version", "") < "2026":
        return 200
    statuses = {-32601: 404, -32602: 400, -32022: 400, -32600: 400}
    code = error.get("code")
    return statuses.get(code, 200) if isinstance(code, int) else 200


async def _write(
    writer: asyncio.StreamWriter, said: list[bytes], how: str, extra: bytes, status: int
) -> None:
    if how == "json":
        head = b"HTTP/1.1 %d x\r\ncontent-type: application/json\r\n%bcontent-length: %d\r\n\r\n"
        writer.write(head % (status, extra, len(said[-1])) + said[-1])
        return
    end = b"\r\n" if how == "crlf" else b"\n"
    stream = b": hello" + end * 2
    for number, text in enumerate(said):
        lines = text.split(b"\n") if how in ("lines", "crlf") else [text]
        stream += b"id: %d" % number + end
        stream += b"".join(b"data: " + line + end for line in lines) + end
    writer.write(STREAM + extra + b"\r\n")
    step = 1 if how == "bytes" else len(stream)
    for start in range(0, len(stream), step):
        part = stream[start : start + step]
        writer.write(b"%x\r\n%b\r\n" % (len(part), part))
        if step == 1:
            await writer.drain()
            await asyncio.sleep(0)
    writer.write(b"0\r\n\r\n")


@asynccontextmanager
async def endpoint() -> AsyncIterator[Endpoint]:
    """A puppet that listens on a port of this machine."""
    made = Endpoint()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, limit=64 * 1024 * 1024)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        await made.close()
