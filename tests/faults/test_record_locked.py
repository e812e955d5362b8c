"""A database that another process has locked: calls wait a little, then are refused."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest
from tests.faults.clients import Http, Speech
from tests.faults.crowd import Books, Crowd
from tests.faults.ledgers import lines_at
from tests.faults.scene import STDIO, Scene, run, scene

LEGACY = "2025-11-25"


class Ping:
    """A client that does nothing but ping the gateway, and counts what is answered."""

    def __init__(self, here: Scene) -> None:
        self._here = here
        self.count = 0
        self.longest = 0.0

    async def go(self) -> None:
        """Until cancelled."""
        http, speech = Http(self._here.port), Speech(LEGACY, logs=False)
        await speech.open(http)
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            response = await speech.post(http, {"jsonrpc": "2.0", "id": 1, "method": "ping"})
            assert response.messages[-1]["result"] == {}
            self.longest = max(self.longest, clock() - began)
            self.count += 1
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE"])
def test_for_a_moment(how: str, tmp_path: Path) -> None:
    """Calls wait for it, pings do not, and nobody is refused."""

    async def work() -> None:
        async with scene(tmp_path, "sqlite") as here:
            await here.start("--upstream", await here.serve_http())
            crowd, ping = Crowd(most_ms=3), Ping(here)
            clients = [asyncio.create_task(crowd.over_http(here.port)) for _ in range(6)]
            pinging = asyncio.create_task(ping.go())
            await crowd.until_told(lambda ends: ends["ok"] >= 20 and ping.count > 0)
            with contextlib.closing(sqlite3.connect(here.ledger, isolation_level=None)) as other:
                other.execute("PRAGMA busy_timeout = 2000")
                other.execute(f"BEGIN {how}")
                await asyncio.sleep(0.1)  # what was being written is written
                done, pings = crowd.outcomes()["ok"], ping.count
                await asyncio.sleep(0.3)
                assert crowd.outcomes()["ok"] - done <= 6
                assert ping.count - pings >= 5
                other.execute("ROLLBACK")
            await crowd.until_ok(done + 50)
            crowd.enough = True
            await asyncio.gather(*clients)
            pinging.cancel()
            assert await here.stop() == 0
            assert set(crowd.outcomes()) == {"ok"}
            assert max(told.after for told in crowd.told.values()) >= 0.25
            Books(lines_at(here.ledger)).compare(crowd, here.notes("got"))
            await here.verified("--strict")

    run(work())


def test_for_long(tmp_path: Path) -> None:
    """Calls are refused, none of them is done, pings are answered; and then all is well."""

    async def work() -> None:
        async with scene(tmp_path, "sqlite") as here:
            await here.start("--upstream", await here.serve_http())
            crowd, ping = Crowd(most_ms=3), Ping(here)
            clients = [asyncio.create_task(crowd.over_http(here.port)) for _ in range(6)]
            pinging = asyncio.create_task(ping.go())
            await crowd.until_told(lambda ends: ends["ok"] >= 20 and ping.count > 0)
            with contextlib.closing(sqlite3.connect(here.ledger, isolation_level=None)) as other:
                other.execute("PRAGMA busy_timeout = 2000")
                other.execute("BEGIN IMMEDIATE")
                await asyncio.sleep(0.1)
                reached, pings = len(here.notes("got")), ping.count
                await crowd.until_told(lambda ends: ends["RECORD_UNAVAILABLE"] >= 6, 30)
                assert len(here.notes("got")) == reached
                assert ping.count - pings >= 20
                done = crowd.outcomes()["ok"]
                other.execute("ROLLBACK")
            await crowd.until_ok(done + 50)
            crowd.enough = True
            await asyncio.gather(*clients)
            pinging.cancel()
            print(crowd.outcomes(), ping.count, ping.longest)
            assert await here.stop() == 0
            Books(lines_at(here.ledger)).compare(crowd, here.notes("got"))
            await here.verified()

    run(work(), 60)


def test_while_it_starts(tmp_path: Path) -> None:
    """A gateway that cannot write its first line says so, and ends with 3; later it starts."""

    async def work() -> None:
        async with scene(tmp_path, "sqlite") as here:
            await here.start("--", *STDIO)
            assert await here.stop() == 0
            with contextlib.closing(sqlite3.connect(here.ledger, isolation_level=None)) as other:
                other.execute("BEGIN EXCLUSIVE")
                await here.launch("--", *STDIO)
                assert await here.ended(20) == 3
                assert b"lock" in here.log
            await here.start("--", *STDIO)
            assert await here.stop() == 0
            await here.verified("--strict")

    run(work(), 60)


def test_by_readers(tmp_path: Path) -> None:
    """Whoever reads it, for however long, keeps nobody from writing."""

    async def work() -> None:
        async with scene(tmp_path, "sqlite") as here:
            await here.start("--upstream", await here.serve_http())
            crowd = Crowd(most_ms=3)
            reading = sqlite3.connect(f"{here.ledger.as_uri()}?mode=ro", uri=True)
            with contextlib.closing(reading) as reader:
                reader.execute("BEGIN")
                begun = reader.execute("SELECT count(*) FROM lines").fetchone()
                await asyncio.gather(*(crowd.over_http(here.port, 60) for _ in range(6)))
                assert await here.stop() == 0
                assert reader.execute("SELECT count(*) FROM lines").fetchone() == begun
            assert crowd.outcomes() == {"ok": 360}
            Books(lines_at(here.ledger)).compare(crowd, here.notes("got"))
            await here.verified("--strict")

    run(work())
