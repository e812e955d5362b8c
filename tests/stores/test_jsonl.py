"""The ledger in a file: continued, one writer, and whole after whatever breaks a write."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.facts import some_facts
from tests.stores.chain import entries_of, follow, lines_of
from tests.stores.processes import small_disk

from mcp_envelope.core.entry import GENESIS, Facts, Receipt, line
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.ports import LedgerError
from mcp_envelope.stores import locks
from mcp_envelope.stores.jsonl import JsonLinesLedger
from mcp_envelope.stores.tail import WINDOW

ROOT = Path(__file__).resolve().parents[2]
WRITER = [sys.executable, str(Path(__file__).with_name("writer.py"))]
SURROUNDINGS = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


def write(path: Path, *facts: Facts) -> list[Receipt]:
    """Open the ledger, append and close it."""

    async def run() -> list[Receipt]:
        ledger = JsonLinesLedger(path)
        try:
            return [await ledger.append(one) for one in facts]
        finally:
            await ledger.close()

    return asyncio.run(run())


def failing(ledger: JsonLinesLedger) -> EnvelopeError:
    """Append in vain; the error."""
    with pytest.raises(EnvelopeError) as caught:
        asyncio.run(ledger.append(some_facts()))
    assert caught.value.code == "RECORD_UNAVAILABLE"
    return caught.value


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a ledger may be made, in a folder that is missing."""
    return tmp_path / "state" / "mcp-envelope" / "calls.jsonl"


def test_a_chain_goes_on_over_restarts(path: Path) -> None:
    """`seq` and `prev` are taken from the last line."""
    for start in range(0, 9, 3):
        receipts = write(path, *[some_facts()] * 3)
        assert [receipt.seq for receipt in receipts] == [start, start + 1, start + 2]
    assert len(entries_of(path.read_bytes())) == 9
    assert path.read_bytes().count(b"\n") == 9


def test_a_chain_of_the_longest_lines_goes_on(path: Path) -> None:
    """The end is read in constant memory, but always far enough."""
    long = some_facts(peer="x" * 64_000)
    for _ in range(3):
        write(path, *[long] * 10)
    assert len(entries_of(path.read_bytes())) == 30
    assert path.stat().st_size > WINDOW


def test_files_and_folders_are_their_owners_alone(path: Path) -> None:
    """0600 and 0700, the folders above included."""
    ledger = JsonLinesLedger(path)
    note = path.with_name("calls.jsonl.lock")
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, note)] == [0o600, 0o600]
    folders = (path.parent, path.parent.parent)
    assert [stat.S_IMODE(one.stat().st_mode) for one in folders] == [0o700, 0o700]
    asyncio.run(ledger.close())
    assert not note.exists()


def test_each_acknowledged_line_survives_kill_9(path: Path) -> None:
    """And the lock is gone with the process."""
    with subprocess.Popen(
        [*WRITER, f"jsonl:{path}"], env=SURROUNDINGS, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        told = [child.stdout.readline() for _ in range(300)]
        child.kill()
        told += child.stdout.read().splitlines(keepends=True)
    acknowledged = [one.split() for one in told if one.endswith(b"\n")]
    kept = lines_of(path.read_bytes())
    follow(kept)
    assert len(kept) >= len(acknowledged) >= 300
    for seq, digest in acknowledged:
        assert sha256(kept[int(seq)]).hexdigest() == digest.decode()
    assert write(path, some_facts())[0].seq == len(kept)
    entries_of(path.read_bytes())


def test_a_second_writer_is_told_who_is_the_first(path: Path) -> None:
    """Whichever name it uses for the file, and the first goes on undisturbed."""
    with subprocess.Popen(
        [*WRITER, f"jsonl:{path}"], env=SURROUNDINGS, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        with pytest.raises(LedgerError, match=f"process {child.pid}; a ledger has one") as caught:
            JsonLinesLedger(path)
        assert (caught.value.taken, caught.value.holder) == (True, child.pid)
        other = path.with_name("other")
        other.symlink_to(path)
        with pytest.raises(LedgerError, match=f"process {child.pid}"):
            JsonLinesLedger(other)
        child.stdout.readline()
        child.kill()
        child.stdout.read()
    entries_of(path.read_bytes())


def test_a_ledger_is_taken_within_a_process_too(path: Path) -> None:
    """Two routes cannot write one file by mistake."""
    first = JsonLinesLedger(path)
    with pytest.raises(LedgerError, match=f"process {os.getpid()}"):
        JsonLinesLedger(path)
    asyncio.run(first.close())
    write(path, some_facts())


TORN_TAILS = [
    b"{",
    b'{"v":1,"event":"adm',
    line(some_facts(), 2, GENESIS),
    b'{"v":1,"ev\n{"v":1,',
    b"hello\n",
    b"\n\n",
    b"\xff\x00" * 70_000,
]


@pytest.mark.parametrize("torn", TORN_TAILS, ids=range(len(TORN_TAILS)))
def test_a_torn_tail_stays_and_is_told_of(
    path: Path, torn: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is rewritten: the next line begins anew, and says what lies before it."""
    write(path, *[some_facts()] * 2)
    before = path.read_bytes() + torn
    path.write_bytes(before)
    with caplog.at_level(logging.WARNING, "mcp_envelope.ledger"):
        write(path, some_facts(warnings=("mine",)), some_facts())
    assert f"ends in {len(torn)} bytes of a line never finished" in caplog.text
    after = path.read_bytes()
    assert after.startswith(before)
    entries = entries_of(after)
    assert [len(entry["warnings"]) for entry in entries] == [0, 0, 2, 0]
    assert entries[2]["warnings"][1] == "mine"
    assert write(path, some_facts())[0].seq == 4


def test_a_torn_first_line_is_mended_too(path: Path) -> None:
    """The chain then begins after it, at 0."""
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"v":1,"eve')
    assert write(path, some_facts())[0].seq == 0
    assert len(entries_of(path.read_bytes())) == 1


def test_a_line_as_long_as_can_be_still_tells_of_a_torn_tail(path: Path) -> None:
    """What tells of it is the last to be cut."""
    write(path, some_facts())
    with path.open("ab") as file:
        file.write(b"torn")
    write(path, some_facts(peer="\0" * 70_000, warnings=("w" * 9_999,) * 300))
    assert len(entries_of(path.read_bytes())) == 2


@pytest.mark.parametrize(
    "content,reason",
    [
        (b"root:x:0:0\n", "it is not a ledger"),
        (b"\nhello", "it is not a ledger"),
        (b"\0" * 500, "it is not a ledger"),
        (b"x" * (WINDOW + 1), "hold no line of a ledger"),
        (line(some_facts(), 0, GENESIS).replace(b'"v":1', b'"v":2') + b"\n", "newer version"),
    ],
)
def test_what_is_no_ledger_is_not_written_to(path: Path, content: bytes, reason: str) -> None:
    """A mistyped path costs nobody a file."""
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=reason) as caught:
        JsonLinesLedger(path)
    assert str(path) in str(caught.value)
    assert not caught.value.taken
    assert path.read_bytes() == content


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """Folders, pipes, links in circles, and paths that lead through files."""
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(LedgerError, match="cannot be opened"):
        JsonLinesLedger(tmp_path / "circle")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(LedgerError, match="Is a directory"):
        JsonLinesLedger(tmp_path)
    with pytest.raises(LedgerError, match="not a regular file"):
        JsonLinesLedger(tmp_path / "pipe")
    with pytest.raises(LedgerError, match="cannot be opened"):
        JsonLinesLedger(tmp_path / "file" / "calls.jsonl")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_may_not_be_written_to_is_named(tmp_path: Path) -> None:
    """With the reason of the operating system."""
    tmp_path.chmod(0o500)
    with pytest.raises(LedgerError, match="Permission denied"):
        JsonLinesLedger(tmp_path / "calls.jsonl")


def test_a_file_that_cannot_grow_fails_appends_and_recovers(path: Path) -> None:
    """The limit on the size of files stands for a full disk: a line gets there in part."""
    done = subprocess.run(
        [*WRITER, f"jsonl:{path}", "10000"],
        env=SURROUNDINGS,
        capture_output=True,
        check=True,
        timeout=30,
    )
    told = done.stdout.decode().splitlines()
    failed = [one for one in told if one.startswith("failed")]
    assert set(failed) == {"failed RECORD_UNAVAILABLE the record cannot be written: File too large"}
    assert len(failed) == 10
    kept = lines_of(path.read_bytes())
    acknowledged = [one.split() for one in told if not one.startswith("failed")]
    assert [[str(n), sha256(text).hexdigest()] for n, text in enumerate(kept)] == acknowledged
    warnings = [entry["warnings"][0] for entry in follow(kept)]
    assert sum(text.startswith("torn tail: ") for text in warnings) == 1


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KiB."""
    with small_disk(tmp_path / "disk", "64k") as place:
        yield place


@pytest.mark.requires("disk:small")
def test_a_full_disk_fails_appends_until_there_is_room(full_disk: Path) -> None:
    """And what was acknowledged before stays."""
    path = full_disk / "calls.jsonl"
    ballast = full_disk / "ballast"
    ballast.write_bytes(b"x" * 20_000)
    ledger = JsonLinesLedger(path)

    told: list[Receipt] = []

    async def fill() -> None:
        while True:
            told.append(await ledger.append(some_facts()))

    with pytest.raises(EnvelopeError, match="No space left on device; make room"):
        asyncio.run(fill())
    count = len(told)
    failing(ledger)
    ballast.unlink()
    assert asyncio.run(ledger.append(some_facts())).seq == count
    assert asyncio.run(ledger.append(some_facts())).seq == count + 1
    assert len(entries_of(path.read_bytes())) == count + 2
    asyncio.run(ledger.close())


class Disk:
    """An ``os.write`` that does as it is told: bytes it takes, then it fails; None: all is well."""

    def __init__(self, plan: list[int | None]) -> None:
        self._plan = iter(plan)
        self._write = os.write
        self._is_full = False

    def __call__(self, fd: int, data: bytes) -> int:
        """Write a part, or fail after having written one."""
        if self._is_full:
            self._is_full = False
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        take = next(self._plan, None)
        if take is None or take >= len(data):
            return self._write(fd, data)
        self._is_full = True
        return self._write(fd, data[:take])


@given(
    plan=st.lists(st.none() | st.integers(0, 900), max_size=12), stops=st.sets(st.integers(0, 12))
)
def test_broken_writes_leave_a_chain_of_what_was_acknowledged(
    tmp_path_factory: pytest.TempPathFactory, plan: list[int | None], stops: set[int]
) -> None:
    """Wherever they break off, and wherever the gateway is restarted in between."""
    path = tmp_path_factory.mktemp("ledger") / "calls.jsonl"
    disk: Any = Disk(plan)
    acknowledged = []

    async def run() -> None:
        ledger = JsonLinesLedger(path)
        for n in range(15):
            if n in stops:
                await ledger.close()
                ledger = JsonLinesLedger(path)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(os, "write", disk)
                with contextlib.suppress(EnvelopeError):
                    await ledger.append(some_facts(tool=f"t{n}"))
                    acknowledged.append(f"t{n}")
        await ledger.close()

    asyncio.run(run())
    tools = [entry["tool"] for entry in entries_of(path.read_bytes())]
    # A line that lacks nothing but its newline may get it from what mends the file.
    assert [tool for tool in tools if tool in acknowledged] == acknowledged
    assert len(acknowledged) >= 15 - len(plan)


def test_short_writes_are_finished(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """POSIX lets a write take less than it was given, without any error."""
    ledger = JsonLinesLedger(path)
    plain = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: plain(fd, bytes(data[:100])))
    for _ in range(3):
        asyncio.run(ledger.append(some_facts()))
    monkeypatch.undo()
    asyncio.run(ledger.close())
    assert [entry["warnings"] for entry in entries_of(path.read_bytes())] == [[], [], []]


def test_a_deleted_file_is_noticed(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Lines would go nowhere, so no tool may run; said once, without its path to clients."""
    ledger = JsonLinesLedger(path)
    asyncio.run(ledger.append(some_facts()))
    path.unlink()
    errors = [failing(ledger) for _ in range(3)]
    assert "was deleted" in errors[0].message
    assert "restart" in errors[0].hint
    assert str(path) not in str(errors[0])
    assert len(caplog.records) == 1
    assert str(path) in caplog.text
    asyncio.run(ledger.close())


def test_a_renamed_file_is_still_the_ledger(path: Path) -> None:
    """Its lines are not lost."""
    ledger = JsonLinesLedger(path)
    asyncio.run(ledger.append(some_facts()))
    path.rename(path.with_name("renamed"))
    asyncio.run(ledger.append(some_facts()))
    asyncio.run(ledger.close())
    assert len(entries_of(path.with_name("renamed").read_bytes())) == 2


def test_a_file_that_others_cut_or_write_to_is_noticed(path: Path) -> None:
    """And goes on where it was, should they take that back."""
    ledger = JsonLinesLedger(path)
    asyncio.run(ledger.append(some_facts()))
    whole = path.read_bytes()
    path.write_bytes(b"")
    assert "something else wrote" in failing(ledger).message
    path.write_bytes(whole + b"hello\n")
    assert "something else wrote" in failing(ledger).message
    path.write_bytes(whole)
    asyncio.run(ledger.append(some_facts()))
    asyncio.run(ledger.close())
    assert len(entries_of(path.read_bytes())) == 2


def test_a_file_replaced_while_it_is_opened_is_opened_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or lines would go to a file that nobody can find."""
    lock = locks._lock
    deleted: list[Path] = []

    def meddle(fd: int, path: Path) -> None:
        if not deleted:
            path.unlink()
            deleted.append(path)
        lock(fd, path)

    monkeypatch.setattr(locks, "_lock", meddle)
    write(path, some_facts())
    assert deleted
    assert len(entries_of(path.read_bytes())) == 1


def test_the_module_can_be_imported_where_files_cannot_be_locked() -> None:
    """On Windows the library and the command line work; only such a ledger is refused."""
    program = """if True:
        import asyncio, concurrent.futures.thread, logging, pathlib, sqlite3, sys
        sys.platform = "win32"
        sys.modules["fcntl"] = None
        from mcp_envelope.core.errors import ConfigError
        from mcp_envelope.stores import open_ledger
        open_ledger("memory:")
        for url in ("jsonl:calls.jsonl", "sqlite:calls.db"):
            try:
                open_ledger(url)
            except ConfigError as error:
                print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", program], env=SURROUNDINGS, capture_output=True, check=True
    )
    assert done.stdout.count(b"cannot be locked on Windows") == 2
