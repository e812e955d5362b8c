"""FastMCP's proxy in the configuration in which it is fastest.

    .venvs/fastmcp/bin/python bench/fastmcp_proxy.py PORT URL legacy|2026-07-28

One client that stays connected (a fresh one per request, which is the default, means two more
requests for each), answers as JSON and not as streams, no session on the way in, uvloop and
httptools. It needs the environment of its own that `tools/peers.py` makes.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

import uvicorn
import uvloop
from fastmcp import Client  # type: ignore[import-not-found]
from fastmcp.server import create_proxy  # type: ignore[import-not-found]


async def _serve(port: int, url: str, mode: str) -> None:
    async with Client(url, mode=mode) as client:
        proxy: Any = create_proxy(client)
        config = uvicorn.Config(
            proxy.http_app(path="/mcp", stateless_http=True, json_response=True),
            host="127.0.0.1",
            port=port,
            loop="none",
            http="httptools",
            log_level="warning",
            access_log=False,
        )
        await uvicorn.Server(config).serve()


def main(words: list[str]) -> int:
    """Serve until a signal comes."""
    logging.disable(logging.WARNING)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(int(words[0]), words[1], words[2]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
