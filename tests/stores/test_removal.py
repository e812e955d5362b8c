"""Lines that are taken out of a SQLite ledger, and what can still be shown of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.core.facts import some_facts
from tests.stores.meddling import meddle, verdict_on
from tests.stores.sealed import root_of, writing

from mcp_envelope.core.errors import ConfigError, EnvelopeError
from mcp_envelope.core.merkle import (
    Frontier,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    verify_consistency,
    verify_inclusion,
)
from mcp_envelope.core.ports import LedgerError
from mcp_envelope.core.seal import read_sealed
from mcp_envelope.stores import open_ledger, read_ledger
from mcp_envelope.stores.chain import Unwritten
from mcp_envelope.stores.sqlite import SqliteLedger
from mcp_envelope.stores.sqlite_source import SqliteSource

#: Many processes, or much work: run by tools/ci.py.
pytestmark = pytest.mark.whole


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a ledger may be made."""
    return tmp_path / "calls.db"


def body(n: int) -> bytes:
    """The body of the n-th line."""
    return b'{"secret":"%06d"}' % n


async def fill(ledger: SqliteLedger, count: int) -> None:
    """Append lines, each with a body of its own."""
    for begin in range(0, count, 100):
        end = min(begin + 100, count)
        await asyncio.gather(
            *(ledger.append(some_facts(tool=f"t{n}"), [body(n), b"{}"]) for n in range(begin, end))
        )


def run(path: Path, count: int, remove: Callable[[SqliteLedger], Any]) -> Any:
    """Write a sealed ledger of so many lines, and do something to it."""

    async def write() -> Any:
        ledger = SqliteLedger(path, writing(every=300))
        await fill(ledger, count)
        try:
            return await remove(ledger)
        finally:
            await ledger.close()

    return asyncio.run(write())


@pytest.mark.parametrize(
    "count,taken", [(0, 0), (255, 0), (256, 256), (1_100, 1_024), (9_999, 1_792)]
)
def test_whole_segments_are_taken(path: Path, count: int, taken: int) -> None:
    """What is left begins at a multiple of 256; a second time nothing is left to do."""

    async def remove(ledger: SqliteLedger) -> list[int]:
        return [await ledger.remove(count), await ledger.remove(count)]

    assert run(path, 2_000, remove) == [taken, 0]
    with contextlib.closing(SqliteSource(path)) as source:
        # 2,000 lines, six checkpoints, and one that says what was removed.
        assert source.bounds() == (taken, 2_006 + (taken > 0))
        assert source.place_of(taken) == taken
        assert source.place_of(taken - 1) is None


def test_all_but_what_says_so_can_be_taken(path: Path) -> None:
    """Where the lines end at the end of a segment the line that says so is all that stays."""
    assert run(path, 255, lambda ledger: ledger.remove(9)) == 0

    async def remove(ledger: SqliteLedger) -> int:
        await ledger.append(some_facts())
        return await ledger.remove(256)

    path.unlink()
    assert run(path, 255, remove) == 256
    with contextlib.closing(SqliteSource(path)) as source:
        assert source.bounds() == (256, 257)


def test_a_checkpoint_is_never_the_last_that_goes(path: Path) -> None:
    """A segment that ends in one stays."""

    async def write() -> tuple[int, int]:
        ledger = SqliteLedger(path, writing(every=511))
        await fill(ledger, 1_000)
        found = await ledger.remove(512), await ledger.remove(768)
        await ledger.close()
        return found

    assert asyncio.run(write()) == (256, 512)


def test_what_is_left_is_whole_and_can_be_proven(path: Path, tmp_path: Path) -> None:
    """Roots of checkpoints, proofs of each line, and the export; by what the remark holds."""
    archive = (tmp_path / "archive.jsonl").open("wb")

    async def remove(ledger: SqliteLedger) -> int:
        count = await ledger.remove(1_400, archive.write)
        await ledger.append(some_facts(tool="after"))
        await ledger.seal()
        return count

    count = run(path, 3_000, remove)
    archive.close()
    assert count == 1_280
    gone = (tmp_path / "archive.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["seq"] for line in gone] == list(range(1_280))
    source = read_ledger(str(path))
    left = [one.line for one in source.after(0)]
    lines = gone + left
    removed = source.removed()
    assert removed is not None
    assert (removed.count, removed.last) == (1_280, sha256(gone[-1]).hexdigest())
    assert removed.nodes == (root_of(gone[:1_024]), root_of(gone[1_024:]))
    assert json.loads(left[0])["prev"] == removed.last

    tree = Frontier(removed.count, removed.nodes)
    seals = 0
    for line in left:
        entry = json.loads(line)
        assert entry["seq"] == tree.size
        if entry["event"] == "checkpoint":
            sealed = read_sealed(line, entry["warnings"])
            assert (sealed.checkpoint.size, sealed.checkpoint.root) == (tree.size, tree.root())
            seals += 1
        tree.add(leaf_hash(line))
    assert seals == 8
    assert tree.root() == root_of(lines)

    export = tmp_path / "export.jsonl"
    export.write_bytes(b"".join(source.physical()))
    for one in (source, read_ledger(f"jsonl:{export}")):
        assert one.removed() == removed
        assert one.bounds() == (1_280, len(lines))
        for index in (1_280, 1_281, 1_535, 1_536, 2_047, 2_048, len(lines) - 1):
            place = one.place_of(index)
            assert place is not None
            assert one.at(place) == lines[index]
            proof = inclusion_proof(index, len(lines), one.subtree)
            leaf = leaf_hash(lines[index])
            assert verify_inclusion(leaf, index, len(lines), proof, tree.root())
        for old in (1_280, 1_536, 2_000, len(lines) - 1):
            steps = consistency_proof(old, len(lines), one.subtree)
            assert verify_consistency(old, len(lines), steps, root_of(lines[:old]), tree.root())
        one.close()


def test_what_was_removed_is_still_provable(path: Path) -> None:
    """Of each segment the ledger keeps the hash: with the archived lines it gives any proof."""
    gone: list[bytes] = []
    run(path, 1_500, lambda ledger: ledger.remove(1_280, gone.append))
    assert gone.pop() == b""
    lines = [line.removesuffix(b"\n") for line in gone]
    with contextlib.closing(SqliteSource(path)) as source:
        for index in range(5):
            assert source.subtree(8, index) == root_of(lines[256 * index : 256 * (index + 1)])


def test_the_content_is_gone(path: Path) -> None:
    """From the database, its log and its free pages; that of the bodies too, but not of all."""

    async def remove(ledger: SqliteLedger) -> None:
        await ledger.append(some_facts(tool="again"), [body(7)])
        await ledger.remove(1_024)
        data = b"".join(one.read_bytes() for one in path.parent.iterdir())
        assert b'"tool":"t900"' not in data
        assert body(900) not in data
        assert b'"tool":"t1100"' in data
        assert body(1_100) in data

    run(path, 1_200, remove)
    with contextlib.closing(SqliteSource(path)) as source:
        for n, is_there in ((900, False), (1_100, True), (7, True)):
            assert (source.body(sha256(body(n)).hexdigest()) is not None) is is_there
        assert source.body(sha256(b"{}").hexdigest()) == b"{}"


def test_appends_go_on_while_lines_are_removed(path: Path) -> None:
    """They come in between, and none waits for long."""

    async def remove(ledger: SqliteLedger) -> float:
        loop = asyncio.get_running_loop()
        longest = 0.0
        task = asyncio.create_task(ledger.remove(4_000))
        while not task.done():
            begun = loop.time()
            await ledger.append(some_facts())
            longest = max(longest, loop.time() - begun)
        assert await task == 3_840
        return longest

    assert run(path, 4_000, remove) < 0.5


def test_an_archive_that_fails_costs_no_line(path: Path) -> None:
    """Nothing goes, and nothing says that it did."""

    def archive(line: bytes) -> None:
        if b'"tool":"t300"' in line:
            raise OSError("the archive is full")

    async def remove(ledger: SqliteLedger) -> None:
        with pytest.raises(OSError, match="the archive is full"):
            await ledger.remove(900, archive)

    run(path, 1_000, remove)
    with contextlib.closing(SqliteSource(path)) as source:
        assert source.bounds() == (0, 1_003)
        assert source.removed() is None


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
def test_a_removal_that_is_cut_short_is_ended_by_the_next(path: Path, at: int) -> None:
    """Until then nobody sees what is still there of it."""
    count = 0

    async def remove(ledger: SqliteLedger) -> None:
        delete, sink = ledger._database.delete, ledger._database

        def broken(before: int) -> int:
            nonlocal count
            count += before > 0
            if count == at:
                raise Unwritten("disk I/O error")
            return delete(before)

        sink.delete = broken  # type: ignore[method-assign]
        with pytest.raises(EnvelopeError):
            await ledger.remove(1_024)

    run(path, 1_100, remove)
    with contextlib.closing(SqliteSource(path)) as source:
        assert source.bounds() == (1_024, 1_104)
        assert [one.place for one in source.after(0)] == list(range(1_024, 1_104))

    async def again() -> int:
        ledger = SqliteLedger(path, writing())
        count = await ledger.remove(1_024)
        await ledger.close()
        return count

    assert asyncio.run(again()) == 0
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT min(seq) FROM lines").fetchone() == (1_024,)
        assert connection.execute("SELECT count(*) FROM bodies").fetchone()[0] < 90


@pytest.mark.parametrize("level", [8, 16])
def test_what_is_kept_beside_the_lines_is_not_believed(path: Path, level: int) -> None:
    """What a checkpoint says of lines that go is computed from themselves."""

    async def remove(ledger: SqliteLedger) -> int:
        meddle(path, f"UPDATE nodes SET hash = randomblob(32) WHERE level = {level}")
        return await ledger.remove(900)

    assert run(path, 1_500, remove) == 768
    assert verdict_on(path).damage is None


@pytest.mark.parametrize("seq", [0, 103, 511, 767])
def test_altered_lines_are_not_removed(path: Path, seq: int) -> None:
    """Nobody could see any more that they were altered; the archive is not said to be whole."""
    archived: list[bytes] = []

    async def remove(ledger: SqliteLedger) -> None:
        meddle(path, f"UPDATE lines SET line = line || x'20' WHERE seq = {seq}")
        with pytest.raises(LedgerError, match=r"nothing is removed, as .* altered; keep it"):
            await ledger.remove(900, archived.append)

    run(path, 1_500, remove)
    assert b"" not in archived
    with contextlib.closing(SqliteSource(path)) as source:
        assert source.bounds() == (0, 1_505)


def test_only_what_can_be_signed_is_removed(path: Path, tmp_path: Path) -> None:
    """And only from SQLite: other stores never take anything out."""

    async def remove() -> None:
        for url in ("memory:", f"jsonl:{tmp_path / 'calls.jsonl'}"):
            ledger = open_ledger(url, writing=writing())
            with pytest.raises(ConfigError, match="from sqlite: ledgers only"):
                await ledger.remove(256)
            await ledger.close()
        ledger = SqliteLedger(path)
        with pytest.raises(ConfigError, match="without a key"):
            await ledger.remove(256)
        await ledger.close()

    asyncio.run(remove())


def test_readers_are_told_where_lines_vanish(path: Path) -> None:
    """What they read on would have a gap."""

    async def remove(ledger: SqliteLedger) -> None:
        source = SqliteSource(path)
        reading = source.after(0)
        assert [next(reading).place for _ in range(512)] == list(range(512))
        await ledger.remove(900)
        with pytest.raises(OSError, match="lines were removed meanwhile; read it anew"):
            next(reading)
        source.close()

    run(path, 1_000, remove)


def test_what_was_removed_is_found_where_the_note_of_it_is_wrong(path: Path) -> None:
    """The facts beside the lines only save time; a line that cannot be read says nothing."""
    run(path, 1_000, lambda ledger: ledger.remove(512))
    with contextlib.closing(SqliteSource(path)) as source:
        wanted = source.removed()
        first, end = source.bounds()
    assert wanted is not None
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for value in ("600", "x", "99999999999999999999999", "-1"):
            connection.execute("UPDATE facts SET value = ? WHERE name = 'removal'", (value,))
            with contextlib.closing(SqliteSource(path)) as source:
                assert source.removed() == wanted
        connection.execute("DROP TRIGGER lines_never_change")
        connection.execute(
            "UPDATE lines SET line = replace(line, 'removed: lines', 'xemoved: lines')"
        )
        with contextlib.closing(SqliteSource(path)) as source:
            assert source.removed() is None
            assert source.bounds() == (first, end)
