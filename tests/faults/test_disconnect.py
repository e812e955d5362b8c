"""Clients that go away in the middle of something leave nothing behind."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

import pytest
from tests.faults.clients import Http, Speech
from tests.faults.scene import STDIO, Scene, run, scene, until

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
UPSTREAMS = ("stdio", "http")


async def start(here: Scene, upstream: str) -> None:
    """A gateway over HTTP in front of one of the servers."""
    if upstream == "stdio":
        await here.start("--", *STDIO)
    else:
        await here.start("--upstream", await here.serve_http("sessions"))


async def back_to(here: Scene, count: int) -> None:
    """Wait until the gateway has no more files open than that."""
    await until(lambda: here.descriptors <= count)


async def sent(here: Scene, speech: Speech, http: Http, tool: str, **given: object) -> None:
    """Send a call, and wait until the upstream has it."""
    before = len(here.notes("got"))
    call = speech.call(1, tool, **{"nonce": "n", **given})
    await http.send("POST", speech.head(call), json.dumps(call).encode())
    await here.noted("got", before + 1)


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_modern(upstream: str, tmp_path: Path) -> None:
    """From 2026-07-28 on a closed stream cancels its call, at the upstream and in the ledger."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            await start(here, upstream)
            http, speech = Http(here.port), Speech(MODERN)
            await speech.post(http, speech.call(1, "echo", nonce="0"))
            for count in range(1, 4):
                await sent(here, speech, http, "hang")
                http.reset()
                seen = "cancelled" if upstream == "stdio" else "closed"
                assert (await here.noted(seen, count))[-1] == "n"
                assert await here.settled(count + 1) == {"ok": 1, "CANCELLED": count}
            assert (await speech.post(http, speech.call(1, "echo", nonce="1"))).status == 200
            assert await here.stop() == 0
            assert here.account() == {"ok": 2, "CANCELLED": 3}

    run(work())


@pytest.mark.parametrize("ending", ["reset", "half"])
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_legacy(upstream: str, ending: str, tmp_path: Path) -> None:
    """Before, the call goes on without its client, and ends well in the ledger."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            await start(here, upstream)
            first, http, speech = Http(here.port), Http(here.port), Speech(LEGACY)
            await speech.open(first)
            await speech.post(first, speech.call(2, "echo", nonce="0"))
            before = here.descriptors
            await sent(here, speech, http, "slow", ms=300)
            if ending == "reset":
                http.reset()
            else:
                assert http.writer is not None
                http.writer.write_eof()
            assert await here.settled(2) == {"ok": 2}
            assert not here.notes("cancelled")
            http.close()
            await back_to(here, before + (upstream == "http"))
            assert (await speech.post(first, speech.call(1, "echo", nonce="1"))).status == 200
            assert await here.stop() == 0
            assert here.account() == {"ok": 3}

    run(work())


def test_half_a_body(tmp_path: Path) -> None:
    """A client that vanishes in its body, or between messages, costs nothing."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            await start(here, "stdio")
            http, speech = Http(here.port), Speech(MODERN)
            await speech.post(http, speech.call(1, "echo", nonce="0"))
            before = here.descriptors
            for size in range(40):
                other, call = Http(here.port), speech.call(1, "echo", nonce="half")
                head = {**speech.head(call), "Content-Type": "application/json"}
                await other.send("POST", {**head, "Content-Length": "100"})
                assert other.writer is not None
                other.writer.write(json.dumps(call).encode()[:size])
                await other.writer.drain()
                if size % 2:
                    other.reset()
                else:
                    other.close()
            await back_to(here, before)
            assert (await speech.post(http, speech.call(1, "echo", nonce="1"))).status == 200
            assert here.notes("got") == ["0", "1"]
            assert await here.stop() == 0
            assert here.account() == {"ok": 2}

    run(work())


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_listener(upstream: str, tmp_path: Path) -> None:
    """A GET stream whose client vanishes is closed at the upstream, and its task ends."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            await start(here, upstream)
            first, speech = Http(here.port), Speech(LEGACY)
            await speech.open(first)
            await speech.post(first, speech.call(1, "echo", nonce="0"))
            before = here.descriptors
            assert speech.session is not None
            head = {"Accept": "text/event-stream", "Mcp-Session-Id": speech.session}
            listeners = [Http(here.port) for _ in range(10)]
            for each in listeners:
                await each.send("GET", {**head, "MCP-Protocol-Version": LEGACY})
                assert (await each.begun()).status == 200
            for each in listeners:
                each.reset()
            if upstream == "http":
                await here.noted("unheard", 10)
            await back_to(here, before)
            assert await here.stop() == 0

    run(work())


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_never_reads(upstream: str, revision: str, tmp_path: Path) -> None:
    """A client that never reads makes the upstream wait, or loses its call; memory is bounded."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            await start(here, upstream)
            http, speech = Http(here.port), Speech(revision, logs=False)
            await speech.open(http)
            await speech.post(http, speech.call(1, "echo", nonce="0"))
            before = here.memory
            deaf, call = Http(here.port), speech.call(1, "flood", nonce="n" * 500, k=12_000)
            await deaf.send("POST", speech.head(call), json.dumps(call).encode())
            assert deaf.writer is not None
            deaf.writer.transport.pause_reading()  # type: ignore[attr-defined]
            sock = deaf.writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await here.noted("got", 2)
            other, own = Http(here.port), Speech(revision, logs=False)
            await own.open(other)
            most = 0.0
            for i in range(20):
                response = await own.post(other, own.call(1, "echo", nonce=f"o{i}", k=3))
                assert response.messages[-1]["result"]["content"][0]["text"] == f"o{i}"
                most = max(most, here.memory)
                await asyncio.sleep(0.05)
            assert most - before < 60, f"{before:.0f} MB became {most:.0f} MB"
            deaf.reset()
            print(await here.settled(22), f"{before:.0f} MB, then {most:.0f} MB")
            assert await here.stop() == 0
            here.account()

    run(work())


@pytest.mark.slow
def test_kept_streams(tmp_path: Path) -> None:
    """What is kept for a legacy client that vanished is bounded, however much is said to it."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            await start(here, "stdio")
            first, http, speech = Http(here.port), Http(here.port), Speech(LEGACY, logs=False)
            await speech.open(first)
            before = here.memory
            await sent(here, speech, http, "flood", nonce="n" * 1_000, k=40_000)
            http.reset()
            assert (await here.settled(1, 15)).total() == 1
            assert here.memory - before < 30

    run(work())
