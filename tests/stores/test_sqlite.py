"""The ledger in SQLite: one writer, and whole whatever happens to its process, disk and files."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.facts import some_facts
from tests.stores.chain import follow
from tests.stores.processes import SURROUNDINGS, WRITER, assert_kept, kill_writers, small_disk
from tests.stores.sealed import checked, writing

from mcp_envelope.core.entry import Facts, Receipt
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.ports import LedgerError, Writing
from mcp_envelope.stores import chain, locks, read_ledger, sqlite_wal
from mcp_envelope.stores.sqlite import SqliteLedger

#: Processes that are killed, disks that are full: run by tools/ci.py.
pytestmark = pytest.mark.whole


HOLDER = """if True:
    import sqlite3, sys
    connection = sqlite3.connect(sys.argv[1], isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    print("held", flush=True)
    sys.stdin.readline()
    connection.execute("ROLLBACK")
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a ledger may be made, in a folder that is missing."""
    return tmp_path / "state" / "mcp-envelope" / "calls.db"


def write(path: Path, *facts: Facts, how: Writing | None = None) -> list[Receipt]:
    """Open the ledger, append and close it."""

    async def run() -> list[Receipt]:
        ledger = SqliteLedger(path, how)
        try:
            return list(await asyncio.gather(*(ledger.append(one) for one in facts)))
        finally:
            await ledger.close()

    return asyncio.run(run())


def failing(ledger: SqliteLedger) -> EnvelopeError:
    """Append in vain; the error."""
    with pytest.raises(EnvelopeError) as caught:
        asyncio.run(ledger.append(some_facts()))
    assert caught.value.code == "RECORD_UNAVAILABLE"
    return caught.value


def lines_of(path: Path) -> list[bytes]:
    """The lines of a sound database."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = connection.execute("SELECT seq, line FROM lines ORDER BY seq").fetchall()
    assert [seq for seq, _ in rows] == list(range(len(rows)))
    return [line for _, line in rows]


def by_hand(path: Path, statement: str, *values: object) -> None:
    """What somebody does in a shell."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement, values)


# -- where it is and who may write it --


def test_a_chain_goes_on_over_restarts(path: Path) -> None:
    """`seq` and `prev` are taken from the last line."""
    for start in range(0, 9, 3):
        receipts = write(path, *[some_facts()] * 3)
        assert [receipt.seq for receipt in receipts] == [start, start + 1, start + 2]
    assert len(follow(lines_of(path))) == 9


def test_files_and_folders_are_their_owners_alone(path: Path) -> None:
    """0600 and 0700, the folders above and the files beside it included."""
    before = os.umask(0)
    try:
        ledger = SqliteLedger(path)
        asyncio.run(ledger.append(some_facts()))
    finally:
        os.umask(before)
    found = {one.name: stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()}
    names = ("calls.db", "calls.db-wal", "calls.db-shm", "calls.db.lock")
    assert found == dict.fromkeys(names, 0o600)
    folders = (path.parent, path.parent.parent)
    assert [stat.S_IMODE(one.stat().st_mode) for one in folders] == [0o700, 0o700]
    asyncio.run(ledger.close())
    assert [one.name for one in path.parent.iterdir()] == ["calls.db"]


def test_a_second_writer_is_told_who_is_the_first(path: Path) -> None:
    """Whichever name it uses for the file, and the first goes on undisturbed."""
    command = [*WRITER, f"sqlite:{path}"]
    with subprocess.Popen(command, env=SURROUNDINGS, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        other = path.with_name("other")
        other.symlink_to(path)
        for name in (path, other):
            with pytest.raises(LedgerError, match=f"process {child.pid}; a ledger has") as caught:
                SqliteLedger(name)
            assert (caught.value.taken, caught.value.holder) == (True, child.pid)
        child.stdout.readline()
        child.kill()
        child.stdout.read()
    count = len(follow(lines_of(path)))
    assert write(other, some_facts())[0].seq == count


def test_a_ledger_is_taken_within_a_process_too(path: Path) -> None:
    """Two routes cannot write one file by mistake."""
    first = SqliteLedger(path)
    with pytest.raises(LedgerError, match=f"process {os.getpid()}"):
        SqliteLedger(path)
    asyncio.run(first.close())
    write(path, some_facts())


def test_a_lock_deleted_while_it_is_taken_is_taken_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or two writers could each hold one."""
    lock = locks._lock
    deleted: list[Path] = []

    def meddle(fd: int, ledger: Path) -> None:
        if not deleted:
            deleted.append(locks.note_of(ledger))
            deleted[0].unlink()
        lock(fd, ledger)

    monkeypatch.setattr(locks, "_lock", meddle)
    ledger = SqliteLedger(path)
    assert deleted[0].exists()
    monkeypatch.undo()
    with pytest.raises(LedgerError, match="is being written by"):
        SqliteLedger(path)
    asyncio.run(ledger.close())


def test_two_writers_that_passed_the_lock_do_no_harm(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever finds lines of the other stops; the chain is whole."""

    async def run() -> None:
        first = SqliteLedger(path)
        await first.append(some_facts())
        locks.note_of(path).unlink()
        second = SqliteLedger(path)
        await second.append(some_facts())
        for _ in range(3):
            with pytest.raises(EnvelopeError, match="something else wrote to its database; see"):
                await first.append(some_facts())
        await second.append(some_facts())
        await first.close()
        await second.append(some_facts())
        await second.close()

    asyncio.run(run())
    assert len(follow(lines_of(path))) == 4
    assert len(caplog.records) == 1


# -- the process --


@pytest.mark.parametrize("durability", ["process", pytest.param("power", marks=pytest.mark.whole)])
def test_what_was_told_survives_kill_9(path: Path, durability: str) -> None:
    """However often a writer is killed, and wherever; the chain and its checkpoints are whole."""
    told = kill_writers(f"sqlite:{path}", durability, times=8, seed=4)
    lines = lines_of(path)
    follow(lines)
    assert_kept(told, lines)
    assert len(told) > 20
    checked(lines, roots=False)
    assert checked(lines[:300]) == list(range(30, min(300, len(lines)), 31))
    assert write(path, some_facts())[0].seq == len(lines)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["jsonl", "sqlite"])
@pytest.mark.parametrize("seed", range(3))
def test_what_was_told_survives_hundreds_of_kills(tmp_path: Path, scheme: str, seed: int) -> None:
    """In whichever store."""
    told = kill_writers(f"{scheme}:{tmp_path / 'calls'}", "process", times=50, seed=seed)
    with contextlib.closing(read_ledger(str(tmp_path / "calls"))) as source:
        lines = [one.line for one in source.after(0)]
    follow(lines)
    assert_kept(told, lines)
    checked(lines, roots=False)


# -- the disk --


@pytest.mark.requires("disk:small")
def test_a_full_disk_fails_appends_until_there_is_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What was acknowledged before stays, and nothing is doubled."""
    with small_disk(tmp_path / "disk", "1m") as disk:
        path = disk / "calls.db"
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * 500_000)
        told: list[Receipt] = []

        async def fill(ledger: SqliteLedger) -> None:
            while True:
                told.extend(await asyncio.gather(*(ledger.append(some_facts()) for _ in range(5))))

        async def run() -> None:
            ledger = SqliteLedger(path)
            with pytest.raises(EnvelopeError, match="the disk is full; make room"):
                await fill(ledger)
            with pytest.raises(EnvelopeError, match="the disk is full; make room"):
                await fill(ledger)
            ballast.unlink()
            told.append(await ledger.append(some_facts()))
            await ledger.close()

        asyncio.run(run())
        lines = lines_of(path)
    assert [receipt.seq for receipt in told] == list(range(len(lines)))
    follow(lines)
    messages = [record.getMessage().partition("calls.db ")[2] for record in caplog.records]
    assert messages == ["cannot be written: the disk is full", "can be written again"]


def test_a_file_that_cannot_grow_fails_appends_and_recovers(path: Path) -> None:
    """The limit on the size of files stands for any error of the disk."""
    done = subprocess.run(
        [*WRITER, f"sqlite:{path}", "200000"],
        env=SURROUNDINGS,
        capture_output=True,
        check=True,
        timeout=30,
    )
    told = done.stdout.decode().splitlines()
    failed = [one for one in told if one.startswith("failed")]
    assert len(failed) == 10
    assert set(failed) == {
        "failed RECORD_UNAVAILABLE the record cannot be written: the disk fails or is full"
    }
    lines = lines_of(path)
    follow(lines)
    seen = [one.split() for one in told if not one.startswith("failed")]
    assert_kept([(int(seq), digest) for seq, digest in seen], lines)
    assert len(lines) == len(seen)


# -- others at its files --


@contextlib.contextmanager
def held(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds the database locked until it is told to let go, or ends."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        yield child
        child.kill()


@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_locked_database_is_waited_for(path: Path, durability: Any) -> None:
    """Not by the event loop; what comes meanwhile keeps its order."""

    async def run() -> None:
        ledger = SqliteLedger(path, Writing(durability=durability))
        await ledger.append(some_facts())
        with held(path) as child:
            appends = [asyncio.create_task(ledger.append(some_facts())) for _ in range(3)]
            longest = 0.0
            for _ in range(20):
                began = time.perf_counter()
                await asyncio.sleep(0.005)
                longest = max(longest, time.perf_counter() - began)
                appends.append(asyncio.create_task(ledger.append(some_facts())))
            assert not any(one.done() for one in appends)
            assert longest < 0.1
            child.communicate(b"\n")
        assert [one.seq for one in await asyncio.gather(*appends)] == list(range(1, 24))
        await ledger.close()

    asyncio.run(run())
    follow(lines_of(path))


def test_a_database_locked_for_long_fails_appends_and_recovers(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After about two seconds, which are shorter here; the hint says what to do."""
    monkeypatch.setattr(chain, "_PATIENCE", 0.1)

    async def run() -> None:
        ledger = SqliteLedger(path)
        with held(path) as child:
            for _ in range(2):
                begun = time.monotonic()
                with pytest.raises(EnvelopeError) as caught:
                    await ledger.append(some_facts())
                assert caught.value.message.endswith("another program holds its database locked")
                assert "transaction open" in caught.value.hint
                assert 0.09 < time.monotonic() - begun < 2
            child.communicate(b"\n")
        await ledger.append(some_facts())
        await ledger.close()

    asyncio.run(run())
    assert len(follow(lines_of(path))) == 1
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


def test_a_ledger_is_opened_while_it_is_locked(path: Path) -> None:
    """For as long as that does not take too long its first line waits."""
    write(path, some_facts())

    async def run() -> None:
        with held(path) as child:
            ledger = SqliteLedger(path)
            append = asyncio.create_task(ledger.append(some_facts()))
            await asyncio.sleep(0.05)
            child.communicate(b"\n")
            assert (await append).seq == 1
        await ledger.close()

    asyncio.run(run())


def test_a_deleted_file_is_noticed(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Lines would go nowhere, so no tool may run; said once, without its path to clients."""
    ledger = SqliteLedger(path)
    asyncio.run(ledger.append(some_facts()))
    path.unlink()
    errors = [failing(ledger) for _ in range(3)]
    assert "was deleted or moved" in errors[0].message
    assert "restart" in errors[0].hint
    assert str(path) not in str(errors[0])
    assert len(caplog.records) == 1
    assert str(path) in caplog.text
    asyncio.run(ledger.close())


def test_a_file_that_is_moved_and_put_back_goes_on(path: Path) -> None:
    """Another one in its place is left alone."""
    ledger = SqliteLedger(path)
    asyncio.run(ledger.append(some_facts()))
    elsewhere = path.with_name("elsewhere.db")
    path.rename(elsewhere)
    path.write_bytes(b"mine")
    assert "was replaced" in failing(ledger).message
    assert path.read_bytes() == b"mine"
    elsewhere.rename(path)
    assert asyncio.run(ledger.append(some_facts())).seq == 1
    asyncio.run(ledger.close())
    assert len(follow(lines_of(path))) == 2


def test_a_file_that_is_cut_short_is_noticed(path: Path) -> None:
    """Nothing is written behind a hole; put right, it goes on."""
    write(path, *[some_facts()] * 500)
    ledger = SqliteLedger(path)
    asyncio.run(ledger.append(some_facts()))
    whole = path.read_bytes()
    os.truncate(path, len(whole) // 8_192 * 4_096)
    assert "was cut short" in failing(ledger).message
    with path.open("r+b") as file:
        file.write(whole)
    assert asyncio.run(ledger.append(some_facts())).seq == 501
    asyncio.run(ledger.close())
    assert len(follow(lines_of(path))) == 502


def test_a_deleted_log_costs_no_line(path: Path) -> None:
    """What was in it is saved at once; nothing more is taken until a restart."""
    ledger = SqliteLedger(path)
    asyncio.run(ledger.append(some_facts()))
    Path(f"{path}-wal").unlink()
    assert "log was deleted" in failing(ledger).message
    assert "restart the gateway" in failing(ledger).hint
    del ledger._database._connection  # as if it had been killed
    with contextlib.closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection:
        assert connection.execute("SELECT count(*) FROM lines").fetchone() == (1,)


@pytest.mark.parametrize("seq", [1, 5])
def test_a_line_written_by_somebody_else_is_noticed(
    path: Path, seq: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is written behind it, and nothing over it."""
    ledger = SqliteLedger(path)
    asyncio.run(ledger.append(some_facts()))
    by_hand(path, "INSERT INTO lines VALUES (?, ?)", seq, b"{}")
    assert [failing(ledger).message for _ in range(2)][1].endswith(
        "something else wrote to its database"
    )
    asyncio.run(ledger.close())
    assert len(caplog.records) == 1
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT line FROM lines WHERE seq = ?", (seq,)).fetchone() == (
            b"{}",
        )


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lines SET line = 'x' WHERE seq = 1",
        "UPDATE lines SET seq = 9 WHERE seq = 1",
        "DELETE FROM lines WHERE seq = 1",
        "DELETE FROM lines",
        "UPDATE nodes SET hash = x'00'",
        "DELETE FROM nodes",
    ],
)
def test_nobody_changes_a_line_by_accident(path: Path, statement: str) -> None:
    """Neither with a shell nor by a mistake of ours."""
    write(path, *[some_facts()] * 256)
    with pytest.raises(sqlite3.IntegrityError, match=r"of a ledger (never changes|is not deleted)"):
        by_hand(path, statement)
    assert len(follow(lines_of(path))) == 256


def test_the_log_does_not_grow_for_ever(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is written without a pause; nobody waits for the disk meanwhile."""
    monkeypatch.setattr(sqlite_wal, "SOME", 50)
    monkeypatch.setattr(sqlite_wal, "MANY", 200)
    sizes = []
    log = f"{path}-wal"

    async def run() -> None:
        ledger = SqliteLedger(path)
        for _ in range(2_000):
            await asyncio.gather(*(ledger.append(some_facts()) for _ in range(4)))
            sizes.append(os.stat(log).st_size)  # noqa: PTH116 - in a loop
        await ledger.close()

    asyncio.run(run())
    # Some 10 KB are written each time.
    assert max(sizes) < 12_000_000
    assert path.stat().st_size > 5_000_000
    assert len(follow(lines_of(path))) == 8_000


# -- whatever breaks, wherever --


class Broken:
    """A cursor of which some statements fail: before they are run, or, a commit, after."""

    def __init__(self, cursor: Any, plan: Iterator[str]) -> None:
        self._cursor = cursor
        self._plan = plan

    def execute(self, statement: str, *values: Any) -> Any:
        """Run a statement, or fail as planned."""
        return self._do(statement, self._cursor.execute, values)

    def executemany(self, statement: str, *values: Any) -> Any:
        """Run it often, or fail as planned."""
        return self._do(statement, self._cursor.executemany, values)

    def _do(self, statement: str, run: Any, values: Any) -> Any:
        fate = next(self._plan, "well")
        if fate == "before":
            raise sqlite3.OperationalError("disk I/O error")
        done = run(statement, *values)
        if fate == "after" and statement == "COMMIT":
            raise sqlite3.OperationalError("disk I/O error")
        return done


@given(
    plan=st.lists(st.sampled_from(["well", "well", "well", "before", "after"]), max_size=60),
    steps=st.lists(
        st.one_of(st.integers(1, 5), st.sampled_from(["restart", "seal", "mixed"])), max_size=8
    ),
)
def test_broken_transactions_leave_a_chain_of_what_was_acknowledged(
    tmp_path_factory: pytest.TempPathFactory, plan: list[str], steps: list[Any]
) -> None:
    """Wherever they break off, and wherever the gateway is restarted in between."""
    path = tmp_path_factory.mktemp("ledger") / "calls.db"
    fates = iter(plan)
    told: list[Receipt] = []

    def opened() -> SqliteLedger:
        ledger = SqliteLedger(path, writing(every=4))
        ledger._database._cursor = Broken(ledger._database._cursor, fates)  # type: ignore[assignment]
        return ledger

    async def run() -> None:
        ledger = opened()
        for step in steps:
            if step == "restart":
                await ledger.close()
                ledger = opened()
                continue
            tools = ["a", object(), "b"] if step == "mixed" else ["a"] * (step == "seal" or step)
            begun = [ledger.append(some_facts(tool=tool)) for tool in tools]
            if step == "seal":
                begun.append(ledger.seal())  # type: ignore[arg-type]
            found = await asyncio.gather(*begun, return_exceptions=True)
            told.extend(one for one in found if isinstance(one, Receipt))
            assert all(isinstance(one, Receipt | EnvelopeError | TypeError | None) for one in found)
        await ledger.close()

    asyncio.run(run())
    lines = lines_of(path)
    follow(lines)
    seals = set(checked(lines))
    assert_kept([(one.seq, one.digest) for one in told], lines)
    # What failed is not there: all others are checkpoints.
    assert {*range(len(lines))} == {one.seq for one in told} | seals


def test_nobody_writes_to_a_log_of_others(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The log says once that a ledger cannot be written, and once that it can be again."""
    caplog.set_level(logging.WARNING, "mcp_envelope.ledger")
    ledger = SqliteLedger(path)
    ledger._database._cursor = Broken(  # type: ignore[assignment]
        ledger._database._cursor, iter(["before", "before"])
    )
    for _ in range(2):
        assert "disk I/O error" in failing(ledger).message
    for _ in range(2):
        asyncio.run(ledger.append(some_facts()))
    asyncio.run(ledger.close())
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
