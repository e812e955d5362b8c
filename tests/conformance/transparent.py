"""A proxy that changes nothing but its own name: the control of the conformance rig.

What differs through it is due to *a* hop, not to ours. Where `Host` or `Origin` name the proxy
they are made to name the server; any other name (`evil.example.com`) stays, so the server's own
check against DNS rebinding is still what decides. Bodies and answers are copied as bytes.

Usage::

    python -m tests.conformance.transparent http://127.0.0.1:8000/mcp [PORT [RECORD]]

RECORD is a file into which all that passes is written, as it comes: who sent it (`>` the client,
`<` the server), on which connection, when. Two recorders, before and behind a gateway, show what
it made of a message.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

_CHUNK = 65_536
_HEAD = 262_144


class Transparent:
    """The proxy in front of one server."""

    def __init__(self, target: str, record: BinaryIO | None = None) -> None:
        parts = urlsplit(target)
        if parts.hostname is None:
            raise ValueError(f"not an address of a server: {target!r}")
        self._host, self._port = parts.hostname, parts.port or 80
        self._path = parts.path
        self._port_here = 0
        self._open: set[asyncio.Task[None]] = set()
        self._record = record
        self._connections = 0
        self._began = time.monotonic()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._port_here}{self._path}"

    @contextlib.asynccontextmanager
    async def listening(self, port: int = 0) -> AsyncIterator[Transparent]:
        """Listen, for as long as the context is open."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=_HEAD)
        self._port_here = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in self._open:
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._open.add(task)
            task.add_done_callback(self._open.discard)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            there, back = await asyncio.open_connection(self._host, self._port)
            self._connections += 1
            number = self._connections
            try:
                await _first_done(
                    self._requests(number, reader, back), self._answers(number, there, writer)
                )
            finally:
                back.close()
        writer.close()

    async def _requests(
        self, number: int, reader: asyncio.StreamReader, back: asyncio.StreamWriter
    ) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            body = await _body(head, reader)
            self._note(">", number, head + body)
            back.write(self._renamed(head) + body)
            await back.drain()

    async def _answers(
        self, number: int, there: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while piece := await there.read(_CHUNK):
            self._note("<", number, piece)
            writer.write(piece)
            await writer.drain()
        self._note("<", number, b"(closed)")

    def _note(self, who: str, number: int, data: bytes) -> None:
        if self._record is not None:
            at = time.monotonic() - self._began
            self._record.write(f"{who} connection {number}, {at:.3f} s\n".encode() + data + b"\n")
            self._record.flush()

    def _renamed(self, head: bytes) -> bytes:
        here = f"127.0.0.1:{self._port_here}".encode()
        there = f"{self._host}:{self._port}".encode()
        lines = head.split(b"\r\n")
        for at, line in enumerate(lines):
            name, colon, value = line.partition(b":")
            if colon and name.lower() in {b"host", b"origin"} and value.strip().endswith(here):
                lines[at] = name + colon + value.replace(here, there)
        return b"\r\n".join(lines)


async def _body(head: bytes, reader: asyncio.StreamReader) -> bytes:
    """The body of a request, framed as it came."""
    fields = {
        name.strip().lower(): value.strip().lower()
        for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])
    }
    if b"chunked" not in fields.get(b"transfer-encoding", b""):
        return await reader.readexactly(int(fields.get(b"content-length", b"0")))
    pieces = []
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        pieces.append(line + await reader.readexactly(size + 2))
        if not size:
            return b"".join(pieces)


async def _first_done(*works: Coroutine[object, object, None]) -> None:
    """Run these until one of them ends; the others end with it."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _main(target: str, port: int, record: BinaryIO | None) -> None:
    async with Transparent(target, record).listening(port) as proxy:
        print(f"transparent: {proxy.url}", file=sys.stderr, flush=True)
        await asyncio.Event().wait()


def main(words: list[str]) -> None:
    """Serve until a signal comes."""
    port = int(words[1]) if len(words) > 1 else 0
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(KeyboardInterrupt))
        record = stack.enter_context(Path(words[2]).open("wb")) if len(words) > 2 else None
        asyncio.run(_main(words[0], port, record))


if __name__ == "__main__":
    main(sys.argv[1:])
