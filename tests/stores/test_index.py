"""The search index: follows a ledger, is made anew whatever is wrong, finds what is meant."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.facts import all_facts, some_facts

from mcp_envelope.core.entry import GENESIS, Facts
from mcp_envelope.core.entry import line as line_of
from mcp_envelope.core.ports import LedgerError, Source
from mcp_envelope.core.search import Search, milliseconds
from mcp_envelope.stores import index as index_module
from mcp_envelope.stores import open_ledger, read_ledger
from mcp_envelope.stores.index import Index
from mcp_envelope.stores.index_search import by_id, find, has_run_since, names_of

ROOT = Path(__file__).resolve().parents[2]


def write(url: str, *facts: Facts) -> None:
    """Append lines to a ledger, which is made if absent."""

    async def run() -> None:
        ledger = open_ledger(url)
        try:
            for one in facts:
                await ledger.append(one)
        finally:
            await ledger.close()

    asyncio.run(run())


def call(number: int, *, ok: bool = True, **more: Any) -> tuple[Facts, Facts]:
    """Both lines of a call, a second after the one before."""
    said: dict[str, Any] = {
        "request_id": f"{number:08x}-0000-4000-8000-{number * 7:012x}",
        "time": f"2026-11-19T{number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}.000Z",
        **more,
    }
    end = {"event": "settled", "outcome": "ok" if ok else "TIMEOUT"}
    nothing = {"outcome": None, "duration_ms": None}
    return some_facts(**{**said, "event": "admitted", **nothing}), some_facts(**{**end, **said})


@pytest.fixture(params=["sqlite", "jsonl"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a ledger may be made, of each kind that is a file."""
    return f"{request.param}:{tmp_path / 'calls'}"


@pytest.fixture
def opened() -> Iterator[Callable[[str], Index]]:
    """Opens indexes, brought up to date, and closes them."""
    indexes: list[Index] = []

    def open_(url: str, **more: Any) -> Index:
        index = Index(read_ledger(url), **more)
        index.follow()
        indexes.append(index)
        return index

    yield open_
    for index in indexes:
        index.close()
        index.source.close()


def numbers(index: Index, **more: Any) -> list[int]:
    """The `seq` of the lines that are found, in that order."""
    return [json.loads(hit.line)["seq"] for hit in find(index, Search(**more))]


def test_a_call_is_found_once(url: str, opened: Callable[[str], Index]) -> None:
    """By its last line, or by the only one if its end is not known; newest first."""
    first, second = call(1), call(2)
    refused = some_facts(event="refused", time="2026-11-19T00:00:03Z", request_id="r" * 36)
    write(url, first[0], second[0], second[1], first[1], refused, call(4)[0])
    index = opened(url)
    found = find(index, Search())
    assert [(json.loads(h.line)["seq"], h.is_open) for h in found] == [
        (5, True),
        (4, False),
        (2, False),
        (3, False),
    ]
    assert (found.matched, found.more) == (4, False)
    assert numbers(index, oldest_first=True) == [3, 2, 4, 5]
    assert numbers(index, outcome="outcome_unknown") == [5]


def test_an_end_that_comes_later_is_the_calls(
    url: str, opened: Callable[[str], Index], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was open is settled in a later batch, wherever the cuts between batches are."""
    facts = [*(begin for begin, _ in map(call, range(5))), *(end for _, end in map(call, range(5)))]
    write(url, *facts)
    for most in (1, 2, 3, 7):
        monkeypatch.setattr(index_module, "MANY", most)
        index = opened(url)
        assert numbers(index, oldest_first=True) == [5, 6, 7, 8, 9]
        assert numbers(index, lines=True, oldest_first=True) == list(range(10))
        assert index.db.execute("SELECT count(*) FROM open").fetchone() == (0,)
        assert by_id(index, facts[3].request_id or "") == {facts[3].request_id: places(index, 3, 8)}
        index.renew()


@pytest.mark.parametrize("run", [1, 5_000, 10_000])
def test_many_lines_with_one_id_take_no_longer(tmp_path: Path, run: int) -> None:
    """A client that uses one id again and again: each end belongs to the last begin before it."""
    begin, end = call(1)
    lines = [line_of(facts, seq, GENESIS) for seq, facts in ((1, begin), (1, end))]
    text = b"".join(
        lines[number // run % 2].replace(b'"seq":1', b'"seq":%d' % number) + b"\n"
        for number in range(20_000)
    )
    (tmp_path / "calls").write_bytes(text)
    index = Index(read_ledger(f"jsonl:{tmp_path / 'calls'}"))
    began = time.perf_counter()
    index.follow()
    assert time.perf_counter() - began < 2
    assert (index.lines, index.damaged) == (20_000, 0)
    ended = index.db.execute("SELECT count(*), count(begun) FROM calls WHERE event = 2").fetchone()
    assert ended == (10_000, 10_000)
    index.close()


def places(index: Index, *seqs: int) -> list[int]:
    """Where the lines of these numbers are."""
    return [place for seq in seqs if (place := index.source.place_of(seq)) is not None]


def test_it_follows(url: str, opened: Callable[[str], Index]) -> None:
    """What is written later is found after following again, and nothing is read twice."""
    write(url, *call(1))
    index = opened(url)
    assert (index.follow(), index.lines) == (0, 2)
    write(url, *call(2), call(3)[0])
    assert (index.follow(), index.lines) == (3, 5)
    write(url, call(3)[1])
    assert index.follow() == 1
    assert numbers(index) == [5, 3, 1]
    again = opened(url)
    assert (again.lines, again.follow()) == (6, 0)


def test_filters(url: str, opened: Callable[[str], Index]) -> None:
    """By tool, peer, outcome, kind, instance, event, trace and time, also together."""
    write(
        url,
        *call(1, tool="read_file", kind="mcp/request:tools/call:read_file", peer="ada"),
        *call(2, tool="read_mail", kind="mcp/request:tools/call:read_mail", peer="bob", ok=False),
        *call(3, tool=None, kind="mcp/request:resources/read:file:///a", trace_id="abcdef" * 4),
        *call(4, tool="write", kind="mcp/request:tools/call:write", peer="ada", instance="other"),
        some_facts(event="stopped", time="2026-11-19T00:00:05Z", outcome="ok", request_id=None),
    )
    index = opened(url)
    wanted: list[tuple[list[int], dict[str, Any]]] = [
        ([3, 1], {"tool": "read_*"}),
        ([1], {"tool": "read_*", "peer": "ada"}),
        ([7, 3, 1], {"tool": "*"}),
        ([7, 1], {"peer": "ada"}),
        ([], {"peer": "nobody"}),
        ([3], {"outcome": "failed"}),
        ([3], {"outcome": "timeout"}),
        ([7, 5, 1], {"outcome": "ok"}),
        ([3, 1], {"kind": "mcp/request:tools/call:read_*"}),
        ([7, 3, 1], {"kind": "mcp/request:tools/call"}),
        ([5], {"kind": "*file:///a"}),
        ([7], {"instance": "other"}),
        ([8], {"event": "stopped"}),
        ([6, 4, 2, 0], {"event": "admitted"}),
        ([5], {"trace": "abcdef" * 4}),
        ([5], {"trace": "abcdefab"}),
        ([5, 4], {"trace": "abcdefab", "lines": True}),
        ([], {"trace": "abcdefff"}),
        ([5, 3], {"since": at("00:00:02"), "until": at("00:00:03")}),
        ([3], {"since": at("00:00:02"), "until": at("00:00:03"), "tool": "*"}),
        ([3, 2, 1, 0], {"tool": "read_*", "lines": True}),
        ([3], {"text": "READ_MAIL"}),
        ([], {"text": "READ_MAIL", "peer": "ada"}),
    ]
    for expected, filters in wanted:
        assert numbers(index, **filters) == expected, filters
    assert names_of(index, "peer") == ["ada", "bob", "stdio:1234"]
    assert names_of(index, "tool") == ["get_current_time", "read_file", "read_mail", "write"]


def at(clock: str) -> int:
    """The milliseconds of a time of that day."""
    found = milliseconds(f"2026-11-19T{clock}Z")
    assert found is not None
    return found


def test_the_limit(url: str, opened: Callable[[str], Index]) -> None:
    """So many are given, all are counted, and whether there are more is said."""
    write(url, *(line for number in range(6) for line in call(number)))
    index = opened(url)
    for filters in ({}, {"tool": "get*"}, {"peer": "stdio*"}, {"lines": True}):
        total = 12 if filters.get("lines") else 6
        for limit, count in ((2, 2), (total, total), (0, total)):
            found = find(index, Search(limit=limit, **filters))
            assert (len(list(found)), found.matched) == (count, total)
            assert found.more is (count < total)
    found = find(index, Search(limit=2, text="get_current"))
    assert (len(list(found)), found.matched, found.more) == (2, None, True)
    found = find(index, Search(limit=6, text="get_current"))
    assert (len(list(found)), found.matched, found.more) == (6, 6, False)


def test_ids_are_found_by_their_beginning(url: str, opened: Callable[[str], Index]) -> None:
    """All that begin so, each with its lines; the exact one alone where there is one."""
    same = ["abcdef", "abcdef00", "abcdef01-2345"]
    write(url, *(line for n, name in enumerate(same) for line in call(n, request_id=name)))
    index = opened(url)
    assert sorted(by_id(index, "abcdef0")) == same[1:]
    assert list(by_id(index, "abcdef")) == same[:1]
    assert by_id(index, "abcdef01") == {same[2]: places(index, 4, 5)}
    assert by_id(index, "abcdeg") == {}
    assert len(by_id(index, "abcdef0", most=1)) == 1


def test_a_run_that_came_later_is_known(url: str, opened: Callable[[str], Index]) -> None:
    """A call without end, and a start behind it: its gateway is gone."""
    start = some_facts(event="started", request_id=None)
    write(url, start, call(1)[0])
    index = opened(url)
    assert not has_run_since(index, places(index, 1)[0])
    write(url, start)
    index.follow()
    assert has_run_since(index, places(index, 1)[0])


def test_it_is_beside_the_ledger_for_its_owner_alone(
    url: str, opened: Callable[[str], Index], tmp_path: Path
) -> None:
    """`PATH.index`, 0600."""
    write(url, *call(1))
    index = opened(url)
    assert index.path == tmp_path / "calls.index"
    assert not index.is_temporary
    assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("calls.index*")} == {0o600}


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda path: path.write_bytes(b"something else" * 1000), id="other"),
        pytest.param(lambda path: path.write_bytes(b""), id="empty"),
        pytest.param(lambda path: path.unlink(), id="gone"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:5000]), id="cut"),
        pytest.param(lambda path: execute(path, "PRAGMA user_version = 99"), id="newer"),
        pytest.param(lambda path: execute(path, "PRAGMA user_version = 0"), id="older"),
        pytest.param(lambda path: execute(path, "PRAGMA application_id = 7"), id="foreign"),
        pytest.param(lambda path: execute(path, "DROP TABLE open"), id="table"),
        pytest.param(lambda path: execute(path, "UPDATE state SET value = 'x'"), id="state"),
        pytest.param(
            lambda path: execute(path, "UPDATE state SET value = 0 WHERE name = 'last'"),
            id="another ledger",
        ),
    ],
)
def test_whatever_is_wrong_with_it_it_is_made_anew(
    url: str, opened: Callable[[str], Index], tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """Nobody learns of it."""
    write(url, *call(1), *call(2))
    opened(url).close()
    damage(tmp_path / "calls.index")
    write(url, *call(3))
    index = opened(url)
    assert numbers(index) == [5, 3, 1]
    assert not index.is_temporary


def execute(path: Path, statement: str) -> None:
    """Change an index."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement)
    connection.close()


def test_damage_that_shows_while_searching_is_mended(
    url: str, opened: Callable[[str], Index]
) -> None:
    """The search goes on where it was."""
    write(url, *(line for number in range(4) for line in call(number)))
    index = opened(url)
    found = iter(find(index, Search(oldest_first=True)))
    assert json.loads(next(found).line)["seq"] == 1
    index.db.execute("DROP TABLE subjects")
    assert [json.loads(hit.line)["seq"] for hit in found] == [3, 5, 7]
    index.db.execute("DROP TABLE names")
    assert names_of(index, "tool") == ["get_current_time"]
    index.db.execute("DROP TABLE names")
    assert names_of(index, "peer") == ["stdio:1234"]
    index.db.execute("DROP TABLE ids")
    assert len(by_id(index, "000000")) == 4


def test_an_index_that_is_deleted_meanwhile_is_made_anew(
    url: str, opened: Callable[[str], Index], tmp_path: Path
) -> None:
    """Also where somebody holds it open."""
    write(url, *call(1))
    index = opened(url)
    for path in tmp_path.glob("calls.index*"):
        path.unlink()
    index.follow()
    assert numbers(index) == [1]
    assert (tmp_path / "calls.index").exists()
    assert opened(url).lines == 2


def test_another_ledger_in_the_same_place_is_read_anew(
    url: str, opened: Callable[[str], Index], tmp_path: Path
) -> None:
    """Whether it is longer or shorter than the one before."""
    for count in (3, 1, 2):
        for path in (*tmp_path.glob("calls"), *tmp_path.glob("calls-*")):
            path.unlink()
        write(url, *(line for n in range(count) for line in call(n, peer=f"peer {count}")))
        index = opened(url)
        assert len(numbers(index, peer=f"peer {count}")) == count == len(numbers(index))
        index.close()


def test_where_nothing_can_be_written_it_is_temporary(
    url: str, opened: Callable[[str], Index], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so, works, and leaves nothing behind."""
    write(url, *call(1))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "temporary").mkdir()
    (tmp_path / "calls.index").mkdir()  # root may write to any folder, but not to one as a file
    index = opened(url)
    assert index.is_temporary
    assert index.reason
    assert numbers(index) == [1]
    assert list((tmp_path / "temporary").iterdir())
    index.close()
    assert not list((tmp_path / "temporary").iterdir())
    with pytest.raises(LedgerError, match="cannot be written"):
        Index(index.source, temporary=False)


def test_damaged_lines_are_counted_and_left_out(
    tmp_path: Path, opened: Callable[[str], Index]
) -> None:
    """They stop nothing."""
    url = f"sqlite:{tmp_path / 'calls'}"
    write(url, *call(1), *call(2))
    connection = sqlite3.connect(tmp_path / "calls")
    with connection:
        connection.execute("DROP TRIGGER lines_never_change")
        connection.execute("UPDATE lines SET line = x'7bff00' WHERE seq = 1")
        connection.execute("UPDATE lines SET line = '[1]' WHERE seq = 2")
    connection.close()
    index = opened(url)
    assert (index.damaged, index.lines) == (2, 4)
    assert numbers(index, oldest_first=True) == [0, 3]


def test_a_database_that_cannot_be_attached_is_read_line_by_line(
    tmp_path: Path, opened: Callable[[str], Index], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As any other ledger."""
    url = f"sqlite:{tmp_path / 'calls'}"
    write(url, *call(1), *call(2)[:1])
    monkeypatch.setattr(Index, "_attach", lambda self: None)
    index = opened(url)
    assert numbers(index) == [2, 1]
    write(url, call(2)[1])
    monkeypatch.undo()
    assert numbers(opened(url)) == [3, 1]


def test_removed_lines_are_forgotten(tmp_path: Path) -> None:
    """What retention took out of a ledger is no longer found, and the rest is."""
    url = f"sqlite:{tmp_path / 'calls'}"
    write(url, *(line for number in range(400) for line in call(number)))
    source = read_ledger(url)
    index = Index(source)
    index.follow()
    connection = sqlite3.connect(tmp_path / "calls")
    with connection:
        connection.execute("INSERT INTO facts VALUES('removed', '512')")
        connection.execute("DELETE FROM lines WHERE seq < 300")
    connection.close()
    index.follow()
    assert numbers(index, oldest_first=True, limit=1) == [513]
    assert len(numbers(index, limit=0)) == (800 - 512) // 2
    assert by_id(index, call(3)[0].request_id or "") == {}
    index.close()
    (tmp_path / "calls.index").unlink()
    index = Index(source)
    index.follow()
    assert numbers(index, oldest_first=True, limit=1) == [513]
    index.close()
    source.close()


FOLLOWER = """
import sys
from mcp_envelope.stores import read_ledger
from mcp_envelope.stores.index import Index
index = Index(read_ledger(sys.argv[1]))
while index.lines < int(sys.argv[2]):
    index.turn(7)
"""


def test_several_processes_follow_at_once(url: str, opened: Callable[[str], Index]) -> None:
    """Each line is in the index once, whoever took it in."""
    count = 150
    write(url, *call(0))
    words = [sys.executable, "-c", FOLLOWER, url, str(2 * count)]
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    others = [subprocess.Popen(words, env=surroundings) for _ in range(2)]
    for begin in range(1, count, 10):
        write(url, *(line for n in range(begin, min(begin + 10, count)) for line in call(n)))
    assert [other.wait(60) for other in others] == [0, 0]
    index = opened(url)
    assert index.lines == 2 * count
    assert numbers(index, limit=0, oldest_first=True) == list(range(1, 2 * count, 2))
    assert numbers(index, limit=0, lines=True, oldest_first=True) == list(range(2 * count))


def expected(lines: Sequence[dict[str, Any]]) -> list[int]:
    """The numbers of the lines that stand for calls: slowly, as docs/cli.md says it."""
    begun: dict[str, list[int]] = {}
    calls = []
    for line in lines:
        name, event = line["request_id"], line["event"]
        if event == "admitted":
            begun.setdefault(name, []).append(line["seq"])
        elif event == "settled" and begun.get(name) and name is not None:
            begun[name].pop()
        if event in ("settled", "refused", "malformed"):
            calls.append(line["seq"])
    return sorted([*calls, *(seq for seqs in begun.values() for seq in seqs)])


def with_an_id(facts: Facts) -> Facts:
    """The same with an id as ours are: SQLite ends texts at a NUL character."""
    name = facts.request_id
    return facts._replace(request_id=name.replace("\0", "0") if name is not None else None)


@given(
    st.lists(all_facts().map(with_an_id), max_size=12),
    st.integers(1, 5),
    st.sampled_from(["sqlite", "jsonl"]),
)
def test_any_line_that_can_be_written_is_indexed(
    tmp_path_factory: pytest.TempPathFactory, facts: list[Facts], most: int, kind: str
) -> None:
    """Whatever texts stand in it, as strange as may be, and however the batches are cut."""
    path = tmp_path_factory.mktemp("index") / kind
    lines: list[bytes] = []
    for one in facts:
        prev = sha256(lines[-1]).hexdigest() if lines else GENESIS
        lines.append(line_of(one, len(lines), prev))
    if kind == "jsonl":
        path.write_bytes(b"".join(one + b"\n" for one in lines))
    else:
        write(f"sqlite:{path}", *facts)
    source: Source = read_ledger(f"{kind}:{path}")
    index = Index(source)
    while index.turn(most):
        pass
    read = [json.loads(placed.line) for placed in source.after(0)]
    assert (index.damaged, index.lines) == (0, len(facts)) == (0, len(read))
    assert sorted(numbers(index, limit=0)) == expected(read)
    assert sorted(numbers(index, limit=0, lines=True)) == list(range(len(read)))
    for entry in read:
        tool = entry["tool"]
        if tool and "\0" not in tool:  # where SQLite ends a text
            assert entry["seq"] in numbers(index, lines=True, limit=0, tool=tool)
    index.close()
    source.close()
