"""The bare ASGI forwarder: what a hop costs that looks at nothing.

    python bench/forwarder.py PORT URL

uvicorn on uvloop and httptools, and the pooled raw connections of our own HTTP upstream. It
reads a body, sends it on with the client's headers, and writes back what it is answered.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
import uvloop

from mcp_envelope.upstreams.http_pool import Pool
from mcp_envelope.upstreams.http_target import target_of
from mcp_envelope.upstreams.http_wire import Response

_KEPT_BACK = frozenset((b"host", b"content-length", b"connection", b"accept-encoding"))
_KEPT_FROM_ANSWERS = frozenset(("connection", "keep-alive", "transfer-encoding"))
_MOST = 64 * 1024 * 1024


def forwarder(pool: Pool) -> Callable[..., Awaitable[None]]:
    """The application."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        body = message.get("body", b"")
        while message.get("more_body"):
            message = await receive()
            body += message.get("body", b"")
        lines = b"".join(
            [b"%b: %b\r\n" % pair for pair in scope["headers"] if pair[0] not in _KEPT_BACK]
        )
        response = Response()
        method = scope["method"].encode()
        await pool.exchange(pool.target.compose(method, lines, body), response)
        said, _ = await response.body(_MOST)
        headers = [
            (name.encode("latin-1"), text.encode("latin-1"))
            for name, text in response.headers.items()
            if name not in _KEPT_FROM_ANSWERS
        ]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": said})

    return app


async def _serve(port: int, url: str) -> None:
    config = uvicorn.Config(
        forwarder(Pool(target_of(url, {}))),
        host="127.0.0.1",
        port=port,
        http="httptools",
        loop="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
    )
    await uvicorn.Server(config).serve()


def main(words: list[str]) -> int:
    """Serve until a signal comes."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(int(words[0]), words[1]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
