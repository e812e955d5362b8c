"""The control changes nothing but its own name, and holds nothing back."""

from __future__ import annotations

import asyncio
import io

from .transparent import Transparent

_BODY = b'{"jsonrpc":"2.0"}'


async def _exchange(head: bytes, body: bytes, *, record: io.BytesIO | None = None) -> bytes:
    """What a server reads of a request that went through the control; it answers in pieces."""
    got: list[bytes] = []
    may_end = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reader.readuntil(b"\r\n\r\n"))
        if body:
            got.append(await reader.readexactly(len(body)))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nfirst")
        await may_end.wait()
        writer.write(b"second")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, Transparent(f"http://127.0.0.1:{port}/mcp", record).listening() as proxy:
        here = int(proxy.url.split(":")[2].partition("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", here)
        writer.write(head.replace(b"HERE", str(here).encode()) + body)
        await reader.readuntil(b"first")  # the server has not ended yet: nothing is held back
        may_end.set()
        assert await reader.read() == b"second"
        writer.close()
    return b"".join(got).replace(str(port).encode(), b"THERE")


def test_its_own_name_becomes_the_servers() -> None:
    """`Host` and `Origin` that name the proxy name the server behind it; nothing else changes."""
    head = b"POST /mcp HTTP/1.1\r\nhOst: 127.0.0.1:HERE\r\nOrigin: http://127.0.0.1:HERE\r\n"
    head += b"X-Odd:  127.0.0.1 \r\nContent-Length: 17\r\n\r\n"
    got = asyncio.run(_exchange(head, _BODY))
    assert got == head.replace(b"HERE", b"THERE") + _BODY


def test_another_name_stays() -> None:
    """A rebound name reaches the server, which is the one to refuse it."""
    head = b"GET /mcp HTTP/1.1\r\nHost: evil.example.com\r\nOrigin: http://evil.example.com\r\n\r\n"
    assert asyncio.run(_exchange(head, b"")) == head


def test_a_chunked_request_passes_as_it_is() -> None:
    """The framing of a body is not changed."""
    head = b"POST /mcp HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"11\r\n" + _BODY + b"\r\n0\r\n\r\n"
    assert asyncio.run(_exchange(head, body)) == head + body


def test_what_passes_can_be_recorded() -> None:
    """The record has both directions."""
    record = io.BytesIO()
    asyncio.run(_exchange(b"GET /mcp HTTP/1.1\r\nHost: x\r\n\r\n", b"", record=record))
    kept = record.getvalue()
    assert b"GET /mcp" in kept
    assert kept.index(b"first") < kept.index(b"second")
