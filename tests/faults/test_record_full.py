"""A full disk: no tool runs without a record, and all goes on when there is room."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest
from tests.faults.clients import Http, Speech
from tests.faults.crowd import Books, Crowd
from tests.faults.ledgers import SCHEMES, lines_at
from tests.faults.scene import STDIO, run, scene
from tests.faults.script import MODERN


def fill(ballast: Path) -> None:
    """Take all the room that there is, to the last byte."""
    with ballast.open("ab", buffering=0) as file:
        for size in (65_536, 4_096, 256, 1):
            with contextlib.suppress(OSError):
                while file.write(b"x" * size):
                    pass


@pytest.mark.requires("disk:small")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_under_load(scheme: str, tmp_path: Path, disk: Path) -> None:
    """Calls are refused while the disk is full, and none of them is done; then all is well."""

    async def work() -> None:
        async with scene(tmp_path, scheme, disk) as here:
            ballast = disk / "ballast"
            ballast.write_bytes(b"x" * 1_200_000)
            await here.start("--upstream", await here.serve_http())
            crowd = Crowd(most_ms=3)
            clients = [asyncio.create_task(crowd.over_http(here.port)) for _ in range(8)]
            await crowd.until_ok(20)
            fill(ballast)
            await crowd.until_told(lambda ends: ends["RECORD_UNAVAILABLE"] >= 50)
            done, reached = crowd.outcomes()["ok"], len(here.notes("got"))
            await crowd.until_told(lambda ends: ends["RECORD_UNAVAILABLE"] >= 100)
            assert crowd.outcomes()["ok"] == done
            assert len(here.notes("got")) == reached
            ballast.unlink()
            await crowd.until_ok(done + 50)
            crowd.enough = True
            await asyncio.gather(*clients)
            assert await here.stop() == 0
            books = Books(lines_at(here.ledger))
            books.compare(crowd, here.notes("got"))
            assert books.dangling == crowd.outcomes()["OUTCOME_UNKNOWN"]
            print(crowd.outcomes(), await here.verified())

    run(work())


@pytest.mark.requires("disk:small")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_between_admitted_and_settled(scheme: str, tmp_path: Path, disk: Path) -> None:
    """A call whose end cannot be recorded is told that its outcome is unknown."""

    async def work() -> None:
        async with scene(tmp_path, scheme, disk) as here:
            await here.start("--", *STDIO)
            crowd, ballast = Crowd(), disk / "ballast"
            https, speech = [Http(here.port) for _ in range(16)], Speech(MODERN, logs=False)
            calls = [asyncio.create_task(crowd.ask(each, speech, ms=700)) for each in https]
            await here.noted("got", 16)
            fill(ballast)
            outcomes = [(await call).outcome for call in calls]
            # A part of a page that belongs to the file already may take some lines more.
            assert outcomes.count("OUTCOME_UNKNOWN") >= 10
            assert set(outcomes) <= {"OUTCOME_UNKNOWN", "ok"}
            assert (await crowd.ask(https[0], speech, ms=0)).outcome == "RECORD_UNAVAILABLE"
            ballast.unlink()
            assert (await crowd.ask(https[0], speech, ms=0)).outcome == "ok"
            assert await here.stop() == 0
            books = Books(lines_at(here.ledger))
            books.compare(crowd, here.notes("got"))
            assert books.dangling == outcomes.count("OUTCOME_UNKNOWN")
            await here.verified()
            await here.verified("--strict", code=1)

    run(work())


@pytest.mark.requires("disk:small")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_to_the_end(scheme: str, tmp_path: Path, disk: Path) -> None:
    """A gateway that is stopped while the disk is full ends in order, and the next one goes on."""

    async def work() -> None:
        async with scene(tmp_path, scheme, disk) as here:
            await here.start("--", *STDIO)
            crowd, ballast = Crowd(), disk / "ballast"
            http, speech = Http(here.port), Speech(MODERN, logs=False)
            assert (await crowd.ask(http, speech)).outcome == "ok"
            fill(ballast)
            while (await crowd.ask(http, speech)).outcome != "RECORD_UNAVAILABLE":
                assert len(crowd.told) < 100
            assert await here.stop() == 0
            assert b"the end could not be recorded" in here.log
            await here.none_alive()
            await here.verified()
            ballast.unlink()
            await here.start("--", *STDIO)
            assert (await crowd.ask(Http(here.port), speech)).outcome == "ok"
            assert await here.stop() == 0
            Books(lines_at(here.ledger)).compare(crowd, here.notes("got"))
            await here.verified()

    run(work())


@pytest.mark.requires("disk:small")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_from_the_start(scheme: str, tmp_path: Path, disk: Path) -> None:
    """A gateway that cannot write its first line does not start: it says why, and ends with 3."""

    async def work() -> None:
        async with scene(tmp_path, scheme, disk) as here:
            fill(disk / "ballast")
            await here.launch("--", *STDIO)
            assert await here.ended() == 3
            assert b"No space left" in here.log or b"disk is full" in here.log
            (disk / "ballast").unlink()
            await here.start("--", *STDIO)
            http, crowd = Http(here.port), Crowd()
            assert (await crowd.ask(http, Speech(MODERN, logs=False))).outcome == "ok"
            assert await here.stop() == 0
            await here.verified()

    run(work())
