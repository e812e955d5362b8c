"""What comes and goes leaves nothing: tasks, files, children, memory."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.faults.clients import Http, Speech
from tests.faults.scene import STDIO, Scene, run, scene

from mcp_envelope.gateway.app import Gateway
from mcp_envelope.gateway.listener import Listener
from mcp_envelope.gateway.settings import HttpSettings, Settings, UpstreamSettings
from mcp_envelope.transports.http import HttpDoor

LEGACY = "2025-11-25"
MODERN = "2026-07-28"


@contextlib.asynccontextmanager
async def inside(here: Scene, upstream: UpstreamSettings) -> AsyncIterator[Gateway]:
    """A gateway in this process, whose tasks can be counted."""
    settings = Settings(upstreams=(upstream,), http=HttpSettings(), ledger=here.url)
    async with Gateway.open(settings) as gateway:
        door = HttpDoor(gateway.desk, gateway.gate, gateway.ground.limits)
        async with Listener.open(door, "127.0.0.1", 0) as listener:
            here.port = int(listener.url.rpartition(":")[2])
            yield gateway
            await door.stop(2.0)


def census(here: Scene) -> dict[str, int]:
    """How much there is of what may be left over."""
    gc.collect()
    return {
        "tasks": len(asyncio.all_tasks()),
        "files": len(list(Path("/proc/self/fd").iterdir())),
        "children": len(here.alive()),
    }


async def back_to(here: Scene, before: dict[str, int]) -> None:
    """Wait until there is no more of anything than before.

    But for connections to an upstream, of which as many are kept as were in use at once.
    """
    before = {**before, "files": before["files"] + 8}
    late = time.monotonic() + 10
    while any((left := census(here))[what] > before[what] for what in before):
        assert time.monotonic() < late, f"{before} became {left}: {asyncio.all_tasks()}"
        await asyncio.sleep(0.02)


async def visit(here: Scene, *, delete: bool, calls: int = 1) -> None:
    """One session from its beginning to its end, or to where its client goes away."""
    http, speech = Http(here.port), Speech(LEGACY)
    await speech.open(http)
    for id in range(calls):
        response = await speech.post(http, speech.call(id, "echo", nonce="n", k=1))
        assert len(response.messages) == 3
    assert speech.session is not None
    if delete:
        head = {"Mcp-Session-Id": speech.session, "MCP-Protocol-Version": LEGACY}
        assert (await http.ask("DELETE", head)).status == 200
    http.close()


async def visits(here: Scene, count: int, *, delete: bool) -> None:
    """So many sessions, some at a time."""
    left = iter(range(count))

    async def one_after_another() -> None:
        for _ in left:
            await visit(here, delete=delete)

    await asyncio.gather(*(one_after_another() for _ in range(8)))


async def sessions(folder: Path, behind: str, count: int) -> None:
    """Sessions that come and go; everything is as before them."""
    async with scene(folder) as here:
        os.environ.update(NOTES=here.environment()["NOTES"])
        if behind == "stdio":
            env = {k: v for k, v in here.environment().items() if k in ("NOTES", "PYTHONPATH")}
            upstream = UpstreamSettings(name="u", command=STDIO, env=env, processes=64)
        else:
            upstream = UpstreamSettings(name="u", url=await here.serve_http("sessions"))
        try:
            async with inside(here, upstream) as gateway:
                await visits(here, 16, delete=True)
                await asyncio.sleep(0.3)
                before = census(here)
                await visits(here, count, delete=True)
                await back_to(here, before)
                await visits(here, 16, delete=False)
                vars(gateway.desk).update(_idle=0.0)
                await asyncio.sleep(0.05)
                await gateway.desk.tidy()
                await back_to(here, before)
            assert here.account()["ok"] == count + 32
            await here.none_alive()
        finally:
            del os.environ["NOTES"]


@pytest.mark.parametrize("behind,count", [("http", 200), ("stdio", 24)])
def test_sessions(behind: str, count: int, tmp_path: Path) -> None:
    """Sessions that were deleted, or not used any more, leave no task, file or child."""
    run(sessions(tmp_path, behind, count))


@pytest.mark.slow
@pytest.mark.parametrize("behind", ["http", "stdio"])
def test_many_sessions(behind: str, tmp_path: Path) -> None:
    """The same holds for 2,000 of them."""
    run(sessions(tmp_path, behind, 2_000), 900)


async def memory_of(here: Scene, speech: Speech, calls: int) -> float:
    """The resident memory in MB after so many calls."""
    ids = iter(range(calls))

    async def lane() -> None:
        http = Http(here.port)
        for id in ids:
            call = speech.call(id, "echo", nonce="n" * 100, k=1)
            assert (await speech.post(http, call)).status == 200
        http.close()

    await asyncio.gather(*(lane() for _ in range(8)))
    return here.memory


@pytest.mark.slow
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize("behind", ["stdio", "http"])
def test_memory(behind: str, revision: str, tmp_path: Path) -> None:
    """The memory of a gateway is the same after 20,000 calls more."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            if behind == "stdio":
                await here.start("--", *STDIO)
            else:
                await here.start("--upstream", await here.serve_http())
            speech = Speech(revision, logs=False)
            await speech.open(Http(here.port))
            before = await memory_of(here, speech, 15_000)  # caches are full
            after = [await memory_of(here, speech, 5_000) for _ in range(4)]
            print(behind, revision, f"{before:.1f} MB, then", *(f"{x:.1f}" for x in after))
            assert after[-1] < before * 1.05
            assert await here.stop() == 0
            assert here.account() == {"ok": 35_000}

    run(work(), 600)
