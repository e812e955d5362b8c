"""Ledgers that are read: while they are written, torn, damaged, pruned, or on a read-only disk."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.facts import some_facts
from tests.stores.chain import follow
from tests.stores.chain import lines_of as lines_in
from tests.stores.processes import SURROUNDINGS, WRITER, small_disk
from tests.stores.sealed import root_of, writing

from mcp_envelope.core.entry import GENESIS, line
from mcp_envelope.core.errors import ConfigError
from mcp_envelope.core.merkle import inclusion_proof, leaf_hash, verify_inclusion
from mcp_envelope.core.pieces import read_entry
from mcp_envelope.core.ports import LedgerError, Source, Store
from mcp_envelope.stores import STORES, open_ledger, read_ledger
from mcp_envelope.stores.index import Index
from mcp_envelope.stores.jsonl import JsonLinesLedger
from mcp_envelope.stores.sqlite import SqliteLedger

SCHEMES = ("jsonl", "sqlite")


@pytest.fixture(params=SCHEMES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a ledger of each readable kind may be made."""
    return f"{request.param}:{tmp_path / 'calls'}"


def write(url: str, count: int, every: int = 100) -> list[bytes]:
    """Write a sealed ledger of so many lines and its checkpoints; what was written."""

    async def run() -> None:
        ledger = open_ledger(url, writing=writing(every))
        for begin in range(0, count, 50):
            some = (some_facts(tool=f"t{n}") for n in range(begin, min(begin + 50, count)))
            await asyncio.gather(*map(ledger.append, some))
        await ledger.close()

    asyncio.run(run())
    return lines_of(url)


def lines_of(url: str) -> list[bytes]:
    """The lines of a ledger, by nothing of ours."""
    scheme, _, place = url.partition(":")
    if scheme == "jsonl":
        return lines_in(Path(place).read_bytes())
    with contextlib.closing(sqlite3.connect(place)) as connection:
        return [text for (text,) in connection.execute("SELECT line FROM lines ORDER BY seq")]


def agrees(source: Source, lines: Sequence[bytes], first: int = 0) -> None:
    """All that a source says of a ledger of these lines is so."""
    found = list(source.after(0))
    assert [one.line for one in found] == lines
    assert all(one.after <= other.place for one, other in pairwise(found))
    assert source.bounds() == ((first, first + len(lines)) if lines else (0, 0))
    picked = range(0, len(lines), max(1, len(lines) // 40))
    for index in picked:
        place = source.place_of(first + index)
        assert place == found[index].place
        assert source.at(place) == lines[index]
        rest = source.after(place)
        assert next(rest) == found[index]
    for seq in (first - 1, first + len(lines), 1 << 40):
        assert source.place_of(seq) is None
    assert list(source.after(found[-1].after if found else 0)) == []


def test_every_readable_store_is_tested_here() -> None:
    """Memory is none of them."""
    assert {*SCHEMES, "memory"} == set(STORES)
    with pytest.raises(ConfigError, match="gone with its process"):
        read_ledger("memory:")
    known: tuple[Store, ...] = tuple(STORES[name] for name in SCHEMES)  # for the type checker
    assert known


@pytest.mark.parametrize("count", [0, 1, 7, 1_500])
def test_a_ledger_is_read_as_it_was_written(url: str, count: int) -> None:
    """Piece by piece, from any line on, and by number; by URL and by path."""
    lines = write(url, count)
    for name in (url, url.partition(":")[2]):
        if not lines and name != url:
            continue  # an empty file of lines looks like any empty file
        with contextlib.closing(read_ledger(name)) as source:
            assert source.url == url
            assert b"".join(source.physical()) == b"".join(one + b"\n" for one in lines)
            assert (source.size > 0) == bool(lines)
            assert source.removed() is None
            agrees(source, lines)


def test_a_ledger_far_longer_than_what_is_read_at_once(url: str) -> None:
    """Its lines are found wherever they are."""
    lines = write(url, 3_000, every=0)
    with contextlib.closing(read_ledger(url)) as source:
        agrees(source, lines)


def test_hashes_of_subtrees_are_those_of_the_tree(url: str) -> None:
    """On every level, whatever is kept of it; and there are none beyond the last line."""
    lines = write(url, 1_100, every=0)
    with contextlib.closing(read_ledger(url)) as source:
        for level in range(11):
            for index in {0, 1, (1_100 >> level) - 1}:
                if (index + 1) << level <= 1_100:
                    wanted = root_of(lines[index << level : (index + 1) << level])
                    assert source.subtree(level, index) == wanted
            with pytest.raises(LedgerError):
                source.subtree(level, 1_100 >> level)
        for index in (0, 255, 256, 700, 1_099):
            proof = inclusion_proof(index, 1_100, source.subtree)
            leaf = leaf_hash(lines[index])
            assert verify_inclusion(leaf, index, 1_100, proof, root_of(lines))


def test_hashes_follow_a_ledger_that_grows(url: str) -> None:
    """A reader need not begin anew."""
    write(url, 300, every=0)
    with contextlib.closing(read_ledger(url)) as source:
        with pytest.raises(LedgerError):
            source.subtree(9, 0)
        lines = write(url, 300, every=0)
        assert source.subtree(9, 0) == root_of(lines[:512])
        assert source.subtree(2, 149) == root_of(lines[596:600])


def test_a_ledger_is_read_while_it_is_written(url: str) -> None:
    """From where one was; never half a line, never one twice, and the writer goes on."""
    command = [*WRITER, url]
    with subprocess.Popen(command, env=SURROUNDINGS, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found: list[bytes] = []
        with contextlib.closing(read_ledger(url)) as source:
            place = 0
            for _ in range(30):
                for one in source.after(place):
                    found.append(one.line)
                    place = one.after
                child.stdout.readline()
            assert source.bounds()[1] >= len(found)
        assert child.poll() is None
        child.kill()
        child.stdout.read()
    assert len(found) > 20
    assert lines_of(url)[: len(found)] == found
    follow(found)


def test_no_reader_changes_a_ledger(url: str) -> None:
    """Neither its bytes nor what lies beside it, once it is read."""
    write(url, 300)
    path = Path(url.partition(":")[2])
    before = path.read_bytes()
    source = read_ledger(url)
    list(source.physical())
    source.subtree(8, 0)
    source.close()
    assert path.read_bytes() == before
    others = [one for one in path.parent.iterdir() if one != path]
    assert all(one.name in {"calls-wal", "calls-shm"} for one in others)


# -- what cannot be read --


def test_what_is_not_there_is_said(tmp_path: Path, url: str) -> None:
    """It is not made."""
    for name in (url, str(tmp_path / "calls"), "nosuch.db"):
        with pytest.raises(LedgerError, match=r"[Nn]o such file"):
            read_ledger(name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name,said",
    [
        ("postgresql://bob:secret@db/calls", "postgresql: yet"),
        ("mysql://bob:secret@db/calls", "no kind of ledger is called mysql:"),
        ("jsonl:", "needs the path of a file"),
        ("sqlite:a\0b", "needs the path of a file"),
    ],
)
def test_a_bad_url_is_a_mistake(name: str, said: str) -> None:
    """As when it is to be written."""
    with pytest.raises(ConfigError) as caught:
        read_ledger(name)
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


def test_other_files_are_told_apart(tmp_path: Path) -> None:
    """What is binary and no database can be no ledger, and no text without any line of one."""
    path = tmp_path / "file"
    path.write_bytes(b"\0" * 500)
    with pytest.raises(LedgerError, match="it is not a ledger; it is damaged, or something else"):
        read_ledger(str(path))
    for text in (b'x"v":1,"event":"started"}\n', b"# notes\n\n" * 500_000, b"no newline"):
        path.write_bytes(text)
        with contextlib.closing(read_ledger(str(path))) as source:
            # Who verifies it is shown what there is: that is no ledger, and does not hold.
            assert source.url == f"jsonl:{path}"
            assert b"".join(source.physical()) == text
            assert source.removed() is None
            for look in (source.bounds, lambda one=source: list(one.after(0))):
                with pytest.raises(LedgerError, match="it is not a ledger; name another file"):
                    look()
            with pytest.raises(LedgerError, match="it is not a ledger; name another file"):
                Index(source)
        assert [one.name for one in tmp_path.iterdir()] == ["file"]
    with pytest.raises(LedgerError, match="not a regular file"):
        read_ledger(str(tmp_path))


@pytest.mark.parametrize(
    "begin", [b"", b"x\n", b"\xff" * 3_000_000 + b"\n", b'{"v"', b'{"v":2,"ev']
)
def test_text_with_a_line_in_it_is_a_ledger(tmp_path: Path, begin: bytes) -> None:
    """Whatever happened to the rest of it; so is what may become one, or is a newer one."""
    path = tmp_path / "calls"
    lines = write(f"jsonl:{path}", 2)
    path.write_bytes(begin if begin[:1] == b"{" else begin + lines[1] + b"\n")
    with contextlib.closing(read_ledger(f"jsonl:{path}")) as source:
        assert len(list(source.after(0))) == (begin[:1] != b"{")


@pytest.mark.parametrize("tool", [1_000, 1_999])
def test_a_damaged_database_is_read_as_far_as_it_goes(tmp_path: Path, tool: int) -> None:
    """Then it is said from which line on it cannot be; also where only its end is damaged."""
    url = f"sqlite:{tmp_path / 'calls'}"
    lines = write(url, 2_000)
    path = tmp_path / "calls"
    data = bytearray(path.read_bytes())
    at = data.index(b'"tool":"t%d"' % tool) // 4_096 * 4_096
    data[at : at + 4_096] = b"\xff" * 4_096
    path.write_bytes(data)
    found: list[bytes] = []
    with contextlib.closing(read_ledger(url)) as source:
        with pytest.raises(LedgerError, match="cannot be read from line") as caught:
            found.extend(one.line for one in source.after(0))
        assert tool - 100 < len(found) < tool + 25
        assert found == lines[: len(found)]
        assert caught.value.reached == len(found)
        with pytest.raises(LedgerError, match=r"cannot be read|has no line"):
            source.at(caught.value.reached)


def test_a_row_that_is_not_one_line_is_none(tmp_path: Path) -> None:
    """Cut in two, or taken for what its row is not, it would be a line that only some find."""
    url = f"sqlite:{tmp_path / 'calls'}"
    lines = write(url, 6)
    with contextlib.closing(sqlite3.connect(tmp_path / "calls")) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'"):
            connection.execute(f"DROP TRIGGER {name}")
        run = connection.execute
        run("DELETE FROM lines WHERE seq IN (2, 5)")
        run("UPDATE lines SET line = ? WHERE seq = 1", (lines[1] + b"\n" + lines[2],))
        run("UPDATE lines SET seq = 9 WHERE seq = 4")
        run("INSERT INTO lines VALUES (10, zeroblob(500000)), (11, 'a')")
        connection.commit()
    with contextlib.closing(read_ledger(url)) as source:
        pieces = list(source.physical())
    assert [piece for piece in pieces if read_entry(piece)] == [lines[0] + b"\n", lines[3] + b"\n"]
    assert pieces[1] == b"row 1: " + lines[1] + b"\\n" + lines[2] + b"\n"
    assert pieces[-1] == b"row 11: a\n"
    assert max(map(len, pieces)) < 70_000
    assert all(piece.count(b"\n") == 1 for piece in pieces)


@pytest.mark.requires("disk:small")
def test_a_ledger_on_a_read_only_disk_is_read(tmp_path: Path, url: str) -> None:
    """Where SQLite cannot make the files beside it that it likes to have."""
    with small_disk(tmp_path / "disk", "8m") as disk:
        there = f"{url.partition(':')[0]}:{disk / 'calls'}"
        lines = write(there, 300)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        for name in (there, str(disk / "calls")):
            with contextlib.closing(read_ledger(name)) as source:
                agrees(source, lines)


# -- JSON Lines that broken writes were mended in --

PIECES = st.one_of(
    st.just("line"),
    st.sampled_from([b"{", b"x\n", b"\n\n", b'{"v":1,"event":"adm', b"a\nb\nc"]),
    st.integers(1, 700),
)


@given(pieces=st.lists(PIECES, max_size=12))
def test_torn_regions_are_left_out(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes | int | str]
) -> None:
    """A whole line among them that lacked only its newline, too."""
    path = tmp_path_factory.mktemp("ledger") / "calls"

    async def append() -> None:
        ledger = JsonLinesLedger(path)
        await ledger.append(some_facts())
        await ledger.close()

    asyncio.run(append())
    for piece in pieces:
        if piece == "line":
            asyncio.run(append())
            continue
        torn = piece if isinstance(piece, bytes) else _next_line(path)[: int(piece)]
        with path.open("ab") as file:
            file.write(torn)
        asyncio.run(append())
    lines = lines_in(path.read_bytes())
    follow(lines)
    with contextlib.closing(read_ledger(str(path))) as source:
        agrees(source, lines)
        assert b"".join(source.physical()) == path.read_bytes()
        assert source.subtree(0, len(lines) - 1) == root_of(lines[-1:])


def _next_line(path: Path) -> bytes:
    last = lines_in(path.read_bytes())[-1]
    return line(some_facts(), json.loads(last)["seq"] + 1, GENESIS)


def test_a_torn_whole_line_is_left_out(tmp_path: Path) -> None:
    """All of it was there but its newline; nobody was told that it was written."""
    path = tmp_path / "calls"
    write(f"jsonl:{path}", 2)
    with path.open("ab") as file:
        file.write(_next_line(path))
    with contextlib.closing(read_ledger(str(path))) as source:
        assert [one.line for one in source.after(0)] == lines_in(path.read_bytes())
        write(f"jsonl:{path}", 1)
        assert len(list(source.physical())) == 4
        found = [one.line for one in source.after(0)]
        assert found == lines_in(path.read_bytes())
        assert len(found) == 3
        place = source.place_of(2)
        assert place is not None
        assert source.at(place) == found[2]


def test_a_torn_tail_is_told_of_by_a_checkpoint_too(tmp_path: Path) -> None:
    """Where that is the next line."""
    path = tmp_path / "calls"
    write(f"jsonl:{path}", 2)
    with path.open("ab") as file:
        file.write(b'{"v":1,"ev')

    async def seal() -> None:
        ledger = JsonLinesLedger(path, writing())
        receipt = await ledger.seal()
        assert receipt is not None
        assert receipt.seq == 2
        await ledger.close()

    asyncio.run(seal())
    entries = follow(lines_in(path.read_bytes()))
    assert entries[2]["warnings"][0].startswith("torn tail: the 11 bytes before this line")


def test_a_damaged_file_gets_no_checkpoints(tmp_path: Path) -> None:
    """They would say that all is well."""
    path = tmp_path / "calls"
    lines = write(f"jsonl:{path}", 5)
    for left in ([0, 1, 3, 4], [1, 2, 3, 4], [0, 1, 2, 2, 3, 4]):
        path.write_bytes(b"".join(lines[n] + b"\n" for n in left))
        with pytest.raises(LedgerError, match=r"is damaged: line . is not in it"):
            JsonLinesLedger(path, writing())


def test_a_ledger_that_its_last_checkpoint_is_not_about_is_not_gone_on_with(
    tmp_path: Path, url: str
) -> None:
    """What would be added would contradict it for ever; nothing is changed."""
    write(url, 300, every=99)
    path = tmp_path / "calls"
    before = path.read_bytes()
    mark = before.rindex(b"mcp-envelope/ledger/") + 20
    # A digit of the origin, and one of the root, in the last checkpoint.
    for place in (mark + 4, before.index(b"\\n", mark + 50) - 3):
        data = bytearray(before)
        data[place] ^= 1
        path.write_bytes(data)
        with pytest.raises(
            LedgerError, match=r"damaged: line 299, a checkpoint.*; keep it, and name"
        ):
            open_ledger(url, writing=writing())
        assert path.read_bytes() == data


def test_what_an_old_line_was_changed_to_is_not_sealed_anew(tmp_path: Path) -> None:
    """In a file, whose tree is computed from its lines."""
    path = tmp_path / "calls"
    write(f"jsonl:{path}", 300)
    path.write_bytes(path.read_bytes().replace(b'"tool":"t7"', b'"tool":"t8"'))
    with pytest.raises(LedgerError, match="line 8, or the one before it, was altered"):
        JsonLinesLedger(path, writing())


@pytest.mark.skipif(sys.platform == "darwin" or os.geteuid() == 0, reason="root reads all")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path, url: str) -> None:
    """With the reason."""
    write(url, 1)
    Path(url.partition(":")[2]).chmod(0)
    with pytest.raises(LedgerError, match=str(tmp_path)):
        read_ledger(url)


def test_the_lines_of_a_killed_writer_are_read(tmp_path: Path) -> None:
    """They are still in the log of its database."""
    path = tmp_path / "calls"
    command = [*WRITER, f"sqlite:{path}"]
    with subprocess.Popen(command, env=SURROUNDINGS, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        told = [child.stdout.readline() for _ in range(50)]
        child.kill()
        child.stdout.read()
    with contextlib.closing(read_ledger(str(path))) as source:
        assert source.bounds()[1] >= len(told)
        follow([one.line for one in source.after(0)])
    ledger = SqliteLedger(path)
    asyncio.run(ledger.close())
