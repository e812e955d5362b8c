"""CPU per POST of the HTTP client, beside httpx2 (which the official SDK uses), on loopback.

Usage::

    .venv/bin/python bench/http_client.py [CALLS] [ROUNDS]

A child process answers each request with the same bytes; what is counted is this process's CPU
time only. Rounds are interleaved, and the median of each kind is printed.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import httpx2
import uvloop

from mcp_envelope.core.frame import frame_of
from mcp_envelope.upstreams.http import HttpUpstream
from mcp_envelope.upstreams.http_wire import Response

CALL = frame_of(
    {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "arguments": {}}}
)
HEAD = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": "2025-11-25",
    "mcp-session-id": "0123456789abcdef0123456789abcdef",
    "user-agent": "bench",
}
SERVER = r"""
import asyncio, uvloop
BODY = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}]}}'
ANSWER = (b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
          % len(BODY)) + BODY
class Server(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.seen = transport, b""
    def data_received(self, data):
        self.seen += data
        if self.seen.endswith(b"}"):
            self.seen = b""
            self.transport.write(ANSWER)
async def main():
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
uvloop.run(main())
"""

Post = Callable[[], Awaitable[None]]


async def measure(post: Post, calls: int) -> float:
    """Microseconds of CPU for one call."""
    for _ in range(20):
        await post()
    began = time.process_time()
    for _ in range(calls):
        await post()
    return (time.process_time() - began) / calls * 1e6


async def bench(url: str, calls: int, rounds: int) -> None:
    """Measure each kind in turn, and print the medians."""
    upstream = HttpUpstream("up", url)
    link = upstream.relay()
    pool = upstream._pool  # noqa: SLF001 - the wire alone is a row of the table
    raw = pool.target.compose(b"POST", pool.target.relayed(HEAD), CALL.raw)

    async def wire() -> None:
        response = Response()
        await pool.exchange(raw, response)
        await response.body(1_000_000)

    async def relay() -> None:
        async for _ in await link.send(CALL, HEAD):
            pass

    async with httpx2.AsyncClient() as client:

        async def other() -> None:
            response = await client.post(url, content=CALL.raw, headers=HEAD)
            assert response.content

        kinds: dict[str, tuple[Post, int]] = {
            "the wire alone (request in, body out)": (wire, calls),
            "the relay (headers chosen, answer read as a frame)": (relay, calls),
            "httpx2 (body out)": (other, calls // 10),
        }
        found: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(rounds):
            for name, (post, count) in kinds.items():
                found[name].append(await measure(post, count))
    for name, figures in found.items():
        spread = f"{min(figures):.1f} to {max(figures):.1f}"
        print(f"{name:<52} {statistics.median(figures):8.1f} µs   ({spread})")
    await upstream.close()


def main(words: list[str]) -> None:
    """Start the server, measure on both loops."""
    calls, rounds = (int(word) for word in [*words, *("3000", "5")[len(words) :]])
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/mcp"
        for name, factory in (("uvloop", uvloop.new_event_loop), ("asyncio", None)):
            print(f"{name}: CPU of the client a POST, median of {rounds} rounds")
            with asyncio.Runner(loop_factory=factory) as runner:
                runner.run(bench(url, calls, rounds))
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
