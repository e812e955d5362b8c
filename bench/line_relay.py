"""The bare line relay: what a hop on standard input and output costs that looks at nothing.

    python bench/line_relay.py COMMAND…

It starts the command, and hands on each line either way, by asyncio's streams on uvloop.
"""

from __future__ import annotations

import asyncio
import os
import sys

import uvloop

_LIMIT = 64 * 1024 * 1024


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while line := await source.readline():
        sink.write(line)
        await sink.drain()
    sink.close()


async def _relay(command: list[str]) -> int:
    loop = asyncio.get_running_loop()
    source = asyncio.StreamReader(limit=_LIMIT)
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(source), os.fdopen(0, "rb", buffering=0)
    )
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(1, "wb", buffering=0)
    )
    sink = asyncio.StreamWriter(transport, protocol, None, loop)
    child = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=_LIMIT
    )
    assert child.stdin is not None
    assert child.stdout is not None
    there = asyncio.create_task(_copy(source, child.stdin))
    back = asyncio.create_task(_copy(child.stdout, sink))
    await asyncio.gather(there, back)
    return await child.wait()


def main(words: list[str]) -> int:
    """Relay until the client ends its input."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_relay(words))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
