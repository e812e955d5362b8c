"""Signals and many clients: each answer has its line, however lines are grouped."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from tests.faults.crowd import Books, Crowd
from tests.faults.ledgers import SCHEMES, calls_in, lines_at, told_by_verb
from tests.faults.scene import POWER, STDIO, run, scene
from tests.stores.chain import follow


@pytest.mark.parametrize("scheme", SCHEMES)
def test_stopped_and_continued(scheme: str, tmp_path: Path) -> None:
    """SIGSTOP and SIGCONT cost time and nothing else."""

    async def work() -> None:
        async with scene(tmp_path, scheme) as here:
            await here.start("--upstream", await here.serve_http())
            crowd = Crowd(most_ms=3)
            clients = [asyncio.create_task(crowd.over_http(here.port)) for _ in range(6)]
            for times in range(1, 5):
                here.gateway.send_signal(signal.SIGSTOP)
                await asyncio.sleep(0.2)
                here.gateway.send_signal(signal.SIGCONT)
                await crowd.until_ok(times * 40)
            crowd.enough = True
            await asyncio.gather(*clients)
            assert await here.stop() == 0
            assert set(crowd.outcomes()) == {"ok"}
            Books(lines_at(here.ledger)).compare(crowd, here.notes("got"))
            await here.verified("--strict")

    run(work())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_read_while_it_is_written(scheme: str, tmp_path: Path) -> None:
    """Verifying, exporting and searching see a ledger that holds, at any moment."""

    async def work() -> None:
        async with scene(tmp_path, scheme) as here:
            await here.start("--upstream", await here.serve_http())
            crowd = Crowd(most_ms=3)
            clients = [asyncio.create_task(crowd.over_http(here.port)) for _ in range(6)]
            seen: list[bytes] = []
            for verb in ("verify", "export", "query", "verify", "export"):
                said = await asyncio.to_thread(told_by_verb, verb, here.url, here.state)
                if verb == "export":
                    lines = [line.encode() for line in said.splitlines()]
                    follow(lines)
                    assert lines[: len(seen)] == seen
                    seen = lines
            crowd.enough = True
            await asyncio.gather(*clients)
            assert await here.stop() == 0
            assert set(crowd.outcomes()) == {"ok"}
            lines = lines_at(here.ledger)
            assert lines[: len(seen)] == seen
            Books(lines).compare(crowd, here.notes("got"))
            await here.verified("--strict")

    run(work())


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("durability", ["process", "power"])
def test_many_clients(scheme: str, durability: str, tmp_path: Path) -> None:
    """Thirty-two at once: each call has its two lines, and each answer the receipt of one."""

    async def work() -> None:
        async with scene(tmp_path, scheme) as here:
            environment = POWER if durability == "power" else {}
            await here.start("--upstream", await here.serve_http(), environment=environment)
            crowd = Crowd(most_ms=0)
            await asyncio.gather(*(crowd.over_http(here.port, 20) for _ in range(32)))
            assert await here.stop() == 0
            assert crowd.outcomes() == {"ok": 640}
            books = Books(lines_at(here.ledger))
            books.compare(crowd, here.notes("got"))
            assert len(calls_in(books.entries)) == 2 * 640 + 2
            await here.verified("--strict")

    run(work())


@pytest.mark.parametrize("durability", ["process", "power"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_told_to_stop_in_a_group(scheme: str, durability: str, tmp_path: Path) -> None:
    """SIGTERM with lines of many calls on their way: all calls end in the ledger, and in order."""

    async def work() -> None:
        async with scene(tmp_path, scheme) as here:
            environment = POWER if durability == "power" else {}
            words = ["--", *STDIO]
            for _ in range(3):
                await here.start(*words, environment=environment)
                crowd = Crowd(most_ms=0, prefix=f"{here.port}.")
                clients = [asyncio.create_task(crowd.over_http(here.port)) for _ in range(24)]
                await crowd.until_ok(30)
                assert await here.stop() == 0
                await asyncio.gather(*clients)
                books = Books(lines_at(here.ledger))
                assert books.dangling == 0
                assert calls_in(books.entries)[-1]["event"] == "stopped"
                got = [nonce for nonce in here.notes("got") if nonce in crowd.arguments]
                books.compare(crowd, got)
                await here.verified("--strict")

    run(work(), 40)
