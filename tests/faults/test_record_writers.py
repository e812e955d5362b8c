"""Two writers: the second is sent away, or gets its own ledger; bypassing that is noticed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from hashlib import sha256
from pathlib import Path

import pytest
from tests.faults.clients import Http, Speech
from tests.faults.crowd import Books, Crowd
from tests.faults.ledgers import SCHEMES, calls_in, lines_at, verify
from tests.faults.scene import STDIO, Scene, run, scene
from tests.faults.script import MODERN


@pytest.mark.parametrize("scheme", SCHEMES)
def test_same_ledger(scheme: str, tmp_path: Path) -> None:
    """A second gateway with the same ledger ends with 3 and names the first, which goes on."""

    async def work() -> None:
        async with scene(tmp_path, scheme) as here, scene(tmp_path, scheme) as second:
            await here.start("--upstream", await here.serve_http())
            crowd = Crowd()
            clients = [asyncio.create_task(crowd.over_http(here.port)) for _ in range(4)]
            for _ in range(3):
                await second.launch("--", *STDIO)
                assert await second.ended() == 3
                assert f"process {here.gateway.pid}".encode() in second.log
            assert not second.notes("pid")
            crowd.enough = True
            await asyncio.gather(*clients)
            here.gateway.kill()
            assert await here.ended() == -9
            # The lock is gone with the process that held it.
            await second.start("--", *STDIO)
            assert await second.stop() == 0
            assert set(crowd.outcomes()) == {"ok"}
            Books(lines_at(here.ledger)).compare(crowd, here.notes("got"))
            await here.verified("--strict")

    run(work())


def test_at_the_same_time(tmp_path: Path) -> None:
    """Of many that start at once on a new ledger one gets it."""

    async def work() -> None:
        async with contextlib.AsyncExitStack() as stack:
            scenes = [await stack.enter_async_context(scene(tmp_path, "sqlite")) for _ in range(5)]
            for each in scenes:
                await each.launch("--", *STDIO)
            ends = [asyncio.create_task(each.gateway.wait()) for each in scenes]
            while sum(end.done() for end in ends) < 4:
                await asyncio.wait(
                    [end for end in ends if not end.done()], return_when="FIRST_COMPLETED"
                )
            assert sorted(end.result() for end in ends if end.done()) == [3, 3, 3, 3]
            winner = next(each for each, end in zip(scenes, ends, strict=True) if not end.done())
            await winner.listening()
            assert await winner.stop() == 0
            assert [entry["event"] for entry in calls_in(winner.entries())] == [
                "started",
                "stopped",
            ]
            await winner.verified("--strict")

    run(work())


def test_without_a_name(tmp_path: Path) -> None:
    """Gateways that were told of no ledger get one each, which they go on with later."""

    async def work() -> None:
        for times in (1, 2):
            async with scene(tmp_path) as here, scene(tmp_path) as second:
                crowds = [Crowd(prefix=f"{times}.{number}.") for number in (1, 2)]
                for one, crowd in zip((here, second), crowds, strict=True):
                    await one.start("--", *STDIO, named=False)
                    await crowd.over_http(one.port, 10)
                for one in (here, second):
                    assert await one.stop() == 0
                found = sorted((tmp_path / "state" / "mcp-envelope").glob("*.db"))
                assert [path.stem.endswith("-2") for path in found] in (
                    [True, False],
                    [False, True],
                )
                for path in found:
                    assert len(Books(lines_at(path)).settled) == 10 * times
                    verify(f"sqlite:{path}", here.state, "--strict")

    run(work())


def bypass(here: Scene, gap: int) -> None:
    """Write a line that looks like one of ours, past the lock; ``gap`` numbers further on."""
    last = lines_at(here.ledger)[-1]
    entry = json.loads(last)
    forged = {**entry, "seq": entry["seq"] + 1 + gap, "prev": sha256(last).hexdigest()}
    text = json.dumps(forged, separators=(",", ":")).encode()
    if here.scheme == "jsonl":
        with here.ledger.open("ab") as file:
            file.write(text + b"\n")
    else:
        with contextlib.closing(sqlite3.connect(here.ledger)) as other, other:
            other.execute("INSERT INTO lines VALUES (?, ?)", (forged["seq"], text))


def take_back(here: Scene) -> None:
    """Take the last line out again."""
    if here.scheme == "jsonl":
        data = here.ledger.read_bytes()
        here.ledger.write_bytes(data[: data.rindex(b"\n", 0, -1) + 1])
    else:
        with contextlib.closing(sqlite3.connect(here.ledger)) as other, other:
            guards = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
            triggers = other.execute(guards).fetchall()
            for name, _ in triggers:
                other.execute(f"DROP TRIGGER {name}")
            other.execute("DELETE FROM lines WHERE seq = (SELECT max(seq) FROM lines)")
            for _, text in triggers:
                other.execute(text)


@pytest.mark.parametrize("scheme,gap", [("jsonl", 0), ("sqlite", 0), ("sqlite", 1_000)])
def test_past_the_lock(scheme: str, gap: int, tmp_path: Path) -> None:
    """A line that somebody else wrote stops all calls, until it is taken out again."""

    async def work() -> None:
        async with scene(tmp_path, scheme) as here:
            await here.start("--upstream", await here.serve_http())
            crowd = Crowd()
            clients = [asyncio.create_task(crowd.over_http(here.port, 10)) for _ in range(4)]
            await asyncio.gather(*clients)
            assert crowd.outcomes() == {"ok": 40}
            bypass(here, gap)
            for _ in range(2):
                await asyncio.gather(*(crowd.over_http(here.port, 5) for _ in range(4)))
            assert crowd.outcomes() == {"ok": 40, "RECORD_UNAVAILABLE": 40}
            assert len(here.notes("got")) == 40
            assert await here.stop() == 0
            take_back(here)
            await here.start("--upstream", await here.serve_http())
            http, speech = Http(here.port), Speech(MODERN, logs=False)
            assert (await crowd.ask(http, speech)).outcome == "ok"
            assert await here.stop() == 0
            Books(lines_at(here.ledger)).compare(crowd, here.notes("got"))
            await here.verified("--strict")

    run(work())
