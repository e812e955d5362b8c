"""A Streamable HTTP server: sessions if ``sessions`` is an argument, each answer on its stream.

It prints its port; the variable PORT names one to take. ``die`` resets all its connections
instead of ending itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import sys
import uuid

from tests.faults.script import Message, last, nonce_of, note, plain, spoken

_CONNECTIONS: set[Connection] = set()
_CHANCE = random.Random(7)
_EVENTS = "text/event-stream"


class Connection(asyncio.Protocol):
    """One connection; requests on it come one after another."""

    def __init__(self) -> None:
        self.data = b""
        self.transport: asyncio.Transport | None = None
        self.task: asyncio.Task[None] | None = None
        self.room = asyncio.Event()
        self.room.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember it."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        _CONNECTIONS.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody waits any more."""
        self.transport = None
        _CONNECTIONS.discard(self)
        if self.task is not None:
            self.task.cancel()
        self.room.set()

    def pause_writing(self) -> None:
        """The other side reads slowly."""
        self.room.clear()

    def resume_writing(self) -> None:
        """It has caught up."""
        self.room.set()

    def data_received(self, data: bytes) -> None:
        """Answer a request that is complete."""
        self.data += data
        end = self.data.find(b"\r\n\r\n")
        if end < 0 or self.task is not None:
            return
        first, *lines = self.data[:end].decode("latin-1").split("\r\n")
        head = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
        size = int(head.get("content-length", "0"))
        if len(self.data) < end + 4 + size:
            return
        body, self.data = self.data[end + 4 : end + 4 + size], self.data[end + 4 + size :]
        self.task = asyncio.get_running_loop().create_task(self.serve(first.split()[0], head, body))
        self.task.add_done_callback(self.done)

    def done(self, task: asyncio.Task[None]) -> None:
        """Go on with the next request."""
        self.task = None
        if not task.cancelled() and task.exception() is not None:
            raise task.exception() or AssertionError
        if self.data and self.transport is not None:
            self.data_received(b"")

    def write(self, data: bytes) -> None:
        """Write, if anybody is there."""
        if self.transport is not None:
            self.transport.write(data)

    def chunk(self, data: bytes) -> None:
        """A part of a stream."""
        self.write(b"%x\r\n%b\r\n" % (len(data), data))

    def begin(self, more: str = "") -> None:
        """A stream begins."""
        self.write(
            f"HTTP/1.1 200 OK\r\nContent-Type: {_EVENTS}\r\n{more}"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
        )

    def whole(self, status: str, body: bytes = b"", more: str = "") -> None:
        """An answer as one body."""
        kind = "Content-Type: application/json\r\n" if body else ""
        head = f"HTTP/1.1 {status}\r\n{kind}{more}Content-Length: {len(body)}\r\n\r\n"
        self.write(head.encode() + body)

    async def serve(self, method: str, head: dict[str, str], body: bytes) -> None:
        """One request."""
        if method == "GET":
            await self.listen()
        elif method == "DELETE":
            note("delete", head.get("mcp-session-id"))
            self.whole("200 OK")
        else:
            await self.post(json.loads(body), head)

    async def listen(self) -> None:
        """A stream of what belongs to no request: nothing, until it is closed."""
        self.begin()
        self.chunk(b": hello\r\n\r\n")
        note("listening")
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            note("unheard")
            raise

    async def post(self, message: Message, head: dict[str, str]) -> None:
        """One message."""
        if message.get("method") == "notifications/cancelled":
            note("cancelled", message["params"]["requestId"])
        if message.get("method") == "tools/call":
            await self.call(message)
            return
        said = plain(message)
        more = ""
        if message.get("method") == "initialize" and "sessions" in sys.argv:
            more = f"Mcp-Session-Id: {uuid.uuid4()}\r\n"
        self.whole("200 OK" if said else "202 Accepted", said or b"", more)

    async def call(self, message: Message) -> None:
        """A call of a tool, on a stream of its own."""
        nonce, name = nonce_of(message), message["params"]["name"]
        note("got", nonce)
        try:
            if name == "die":
                for each in list(_CONNECTIONS):
                    if each.transport is not None:
                        each.transport.abort()
            self.begin()
            self.chunk(b"id: 1\r\ndata:\r\n\r\n" if "primed" in sys.argv else b": hello\r\n\r\n")
            if name in ("hang", "slow"):
                wait = message["params"]["arguments"].get("ms", 0) / 1000
                await asyncio.sleep(wait if name == "slow" else 3_600)
                self.event(last(message))
            else:
                for said in spoken(message):
                    self.event(said)
                    await self.room.wait()
                    await asyncio.sleep(_CHANCE.choice((0, 0, 0, 0.001)) if name == "echo" else 0)
            self.write(b"0\r\n\r\n")
        except asyncio.CancelledError:
            note("closed", nonce)
            raise

    def event(self, message: bytes) -> None:
        """One event."""
        self.chunk(b"event: message\r\ndata: %b\r\n\r\n" % message)


async def main() -> None:
    """Serve until killed."""
    loop = asyncio.get_running_loop()
    port = int(os.environ.get("PORT", "0"))
    server = await loop.create_server(Connection, "127.0.0.1", port, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
