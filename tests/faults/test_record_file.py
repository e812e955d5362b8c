"""What people do to the files of a running gateway: it is noticed before a tool runs unrecorded."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from tests.faults.clients import Http, Speech
from tests.faults.crowd import Books, Crowd
from tests.faults.ledgers import SCHEMES, calls_in, lines_at
from tests.faults.scene import STDIO, Scene, run, scene
from tests.faults.script import MODERN


@asynccontextmanager
async def busy(folder: Path, scheme: str) -> AsyncIterator[tuple[Scene, Crowd]]:
    """A gateway that has answered some calls."""
    async with scene(folder, scheme) as here:
        await here.start("--upstream", await here.serve_http())
        crowd = Crowd(most_ms=2)
        await several(here, crowd)
        assert crowd.outcomes() == {"ok": 40}
        yield here, crowd


async def several(here: Scene, crowd: Crowd) -> None:
    """Forty calls."""
    await asyncio.gather(*(crowd.over_http(here.port, 10) for _ in range(4)))


async def refused(here: Scene, crowd: Crowd) -> None:
    """See that forty calls are refused, and that none of them is done."""
    before, reached = crowd.outcomes()["RECORD_UNAVAILABLE"], len(here.notes("got"))
    await several(here, crowd)
    assert crowd.outcomes()["RECORD_UNAVAILABLE"] == before + 40
    assert len(here.notes("got")) == reached


async def goes_on(here: Scene, crowd: Crowd) -> None:
    """See that a gateway that is started anew does its work, and ends in order."""
    await here.start("--", *STDIO)
    http, speech = Http(here.port), Speech(MODERN, logs=False)
    assert (await crowd.ask(http, speech)).outcome == "ok"
    assert await here.stop() == 0
    await here.verified("--strict")


def beside(here: Scene) -> list[Path]:
    """The file of the ledger, and what belongs to it."""
    return sorted(here.ledger.parent.glob(here.ledger.name + "*"))


@pytest.mark.parametrize("end", ["SIGTERM", "SIGKILL"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_deleted(scheme: str, end: str, tmp_path: Path) -> None:
    """All calls are refused; the next gateway begins a new ledger, with nothing of the old one."""

    async def work() -> None:
        async with busy(tmp_path, scheme) as (here, crowd):
            here.ledger.unlink()
            await refused(here, crowd)
            assert await here.stop(signal.Signals[end]) == (-9 if end == "SIGKILL" else 0)
            assert b"deleted" in here.log
            await goes_on(here, Crowd())
            events = [entry["event"] for entry in calls_in(here.entries())]
            assert events == ["started", "admitted", "settled", "stopped"]

    run(work())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_replaced(scheme: str, tmp_path: Path) -> None:
    """All calls are refused, and the file that took its place stays as it is."""

    async def work() -> None:
        (tmp_path / "other").mkdir()
        async with scene(tmp_path / "other", scheme) as other:
            await other.start("--", *STDIO)
            await Crowd().over_http(other.port, 10)
            assert await other.stop() == 0
            content = other.ledger.read_bytes()
        async with busy(tmp_path, scheme) as (here, crowd):
            other.ledger.replace(here.ledger)
            await refused(here, crowd)
            assert await here.stop() == 0
            assert here.ledger.read_bytes() == content
            lines = lines_at(here.ledger)
            await goes_on(here, Crowd(prefix="later"))
            assert lines_at(here.ledger)[: len(lines)] == lines

    run(work())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_truncated(scheme: str, tmp_path: Path) -> None:
    """Calls are refused once the end of the file is gone, and the ledger is found damaged."""

    async def work() -> None:
        async with busy(tmp_path, scheme) as (here, crowd):
            os.truncate(here.ledger, here.ledger.stat().st_size // 2)
            await refused(here, crowd)
            assert await here.stop() == 0

    run(work())


@contextmanager
def unchangeable(path: Path) -> Iterator[None]:
    """A file that even root may not change, for tests that require `disk:unchangeable`."""
    subprocess.run(["chattr", "+i", str(path)], check=True)
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", str(path)], check=True)


def remount(disk: Path, how: str) -> None:
    """Make a disk read-only, or take that back."""
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)


@pytest.mark.requires("disk:unchangeable")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_made_unchangeable(scheme: str, tmp_path: Path) -> None:
    """Calls are refused as long as nothing can be written, and then go on without a restart."""

    async def work() -> None:
        async with busy(tmp_path, scheme) as (here, crowd):
            written = [path for path in beside(here) if path.suffix in (".jsonl", ".db-wal")]
            with unchangeable(written[0]):
                await refused(here, crowd)
            await several(here, crowd)
            assert crowd.outcomes() == {"ok": 80, "RECORD_UNAVAILABLE": 40}
            assert await here.stop() == 0
            Books(lines_at(here.ledger)).compare(crowd, here.notes("got"))
            await here.verified("--strict")

    run(work())


@pytest.mark.requires("disk:small")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_read_only_folder(scheme: str, tmp_path: Path, disk: Path) -> None:
    """A gateway whose ledger cannot be written from the start says so, and ends with 3."""

    async def work() -> None:
        async with scene(tmp_path, scheme, disk) as here:
            await here.start("--", *STDIO)
            assert await here.stop() == 0
            lines = lines_at(here.ledger)
            remount(disk, "ro")
            await here.launch("--", *STDIO)
            assert await here.ended() == 3
            assert str(here.ledger).encode() in here.log
            remount(disk, "rw")
            assert lines_at(here.ledger) == lines
            await goes_on(here, Crowd())

    run(work())


def test_lock_file_is_deleted(tmp_path: Path) -> None:
    """The lock of a SQLite ledger is deleted: one gateway still writes at a time."""

    async def work() -> None:
        async with busy(tmp_path, "sqlite") as (here, crowd), scene(tmp_path, "sqlite") as second:
            here.ledger.with_name(here.ledger.name + ".lock").unlink()
            await second.launch("--", *STDIO)
            await asyncio.wait([asyncio.create_task(second.gateway.wait())], timeout=1.5)
            await several(here, crowd)
            for each in (here, second):
                if each.gateway.returncode is None:
                    await each.stop()
            # Whichever of them was refused: no call ran unrecorded, and the chain is one.
            Books(lines_at(here.ledger)).compare(crowd, here.notes("got"))
            await here.verified()

    run(work())
