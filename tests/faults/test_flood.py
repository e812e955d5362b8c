"""A server that says far too much to one call holds up nobody else."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest
from tests.faults.clients import Http, Speech
from tests.faults.scene import STDIO, run, scene

MODERN = "2026-07-28"


@pytest.mark.parametrize("reads", ["slowly", "never", "all"])
@pytest.mark.parametrize("behind", ["stdio", "http"])
def test_flood(behind: str, reads: str, tmp_path: Path) -> None:
    """100,000 messages for one client, and the others' calls go on meanwhile."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            if behind == "stdio":
                await here.start("--", *STDIO)
            else:
                await here.start("--upstream", await here.serve_http())
            speech, slow, other = Speech(MODERN, logs=False), Http(here.port), Http(here.port)
            await speech.post(other, speech.call(1, "echo", nonce="0"))
            call = speech.call(1, "flood", nonce="flood", k=100_000)
            await slow.send("POST", speech.head(call), json.dumps(call).encode())
            if reads == "never":
                assert slow.writer is not None
                slow.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await here.noted("got", 2)
            reading = asyncio.create_task(read(slow, 0.002 if reads == "slowly" else 0.0))
            longest = 0.0
            for i in range(30):
                began = time.monotonic()
                response = await speech.post(other, speech.call(1, "echo", nonce=str(i), k=2))
                longest = max(longest, time.monotonic() - began)
                assert [m["params"]["message"] for m in response.messages[:-1]] == [
                    f"{i}/0",
                    f"{i}/1",
                ]
                await asyncio.sleep(0.01)
            used = here.memory
            told = -1
            if reads == "all":
                told = await reading
                assert told == 100_001
            else:
                slow.reset()
                await asyncio.wait({reading})
            outcomes = await here.settled(32)
            print(f"{behind} {reads}: {longest * 1000:.0f} ms, {used:.0f} MB", outcomes)
            assert longest < 2
            assert used < 150
            assert await here.stop() == 0
            assert here.account().total() == 32

    run(work())


async def read(http: Http, pause: float) -> int:
    """How many messages there were; every fiftieth is followed by a pause."""
    count = 0
    try:
        async for _ in http.messages(await http.begun()):
            count += 1
            if pause and count % 50 == 0:
                await asyncio.sleep(pause)
    except (asyncio.IncompleteReadError, ConnectionError, AssertionError):
        return -count
    return count
