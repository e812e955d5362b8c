"""``ledger query``: the table, the JSON, and what is said where nothing is found."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.core.facts import some_facts
from tests.stores.test_index import call, write

from .conftest import Run

LEDGER = "calls.jsonl"


def rows_of(out: bytes) -> list[str]:
    """The rows of a table, without its head and what is said below."""
    return out.decode().partition("\n\n")[0].splitlines()[1:]


def test_the_table(run: Run, examples: Path) -> None:
    """A row for each call, the newest first, aligned, and how many they are."""
    done = run("ledger", "query", LEDGER)
    assert (done.code, done.err) == (0, "")
    head, *rows = done.out.decode().splitlines()
    assert head.split() == ["TIME", "OUTCOME", "MS", "WHAT", "PEER", "ID"]
    assert rows[0].startswith("2026-11-19T10:13:28.612Z  ok ")
    *rows, empty, count, note = rows
    assert (empty, count) == ("", "10 calls")
    assert note == "  outcome_unknown: the call was admitted, and the record has no end of it"
    at = head.index("PEER")
    assert {row[at - 2 : at] for row in rows} == {"  "}
    times = [row.split()[0] for row in rows]
    assert times == sorted(times, reverse=True)
    oldest = run("ledger", "query", LEDGER, "--oldest-first")
    assert [row.split()[0] for row in rows_of(oldest.out)] == times[::-1]


def test_outcomes_that_look_alike_are_explained(run: Run, examples: Path) -> None:
    """Below the table, each where it occurs."""
    begin, end = call(1, outcome="OUTCOME_UNKNOWN")
    write("sqlite:unknown.db", begin, end)
    said = run("ledger", "query", "unknown.db").out.decode()
    note = "\n  OUTCOME_UNKNOWN: the call has an end, and nobody knows whether the tool did it\n"
    assert said.endswith(f"\n1 call{note}")
    assert "\n  OUTCOME" not in run("ledger", "query", LEDGER, "--tool", "search").out.decode()
    assert "\n  outcome" not in run("ledger", "query", LEDGER, "--tool", "search").out.decode()


@pytest.mark.parametrize(
    "words,expected",
    [
        (["--tool", "search"], ["53098476", "c7372d25"]),
        (["--tool", "*_mail"], ["937f63e3"]),
        (["--peer", "anonymous"], ["124e486a"]),
        (["--outcome", "outcome_unknown"], ["937f63e3"]),
        (["--outcome", "failed", "--tool", "search"], ["53098476"]),
        (["--kind", "mcp/request:resources/read"], ["2386d2ea"]),
        (["--kind", "mcp/request:tools/call:read_*", "--outcome", "ok"], ["54ec5954"]),
        (["--trace", "4bf92f3577b34da6a3ce929d0e0e4736"], ["2386d2ea", "54ec5954", "21c5c2a6"]),
        (["--trace", "4bf92f", "--limit", "1"], ["2386d2ea"]),
        (["--since", "2026-11-19T10:13:28Z"], ["2386d2ea"]),
        (["--until", "2026-11-19T09:01:01.516Z"], ["21c5c2a6"]),
        (["--until", "2026-11-18"], []),
        (["--since", "2026-11-19", "--until", "2026-11-19", "--limit", "1"], ["2386d2ea"]),
        (["--instance", "e2c0*", "--peer", "agent-7"], ["2386d2ea", "47ddc946"]),
        (["--text", "NO SUCH FILE"], ["2f2ec92e"]),
        (["--text", "/params/arguments"], ["ce3c332f"]),
        (["--text", "redacted: input"], ["47ddc946"]),
        (["--event", "started"], ["13", "0"]),
        (["--lines", "--tool", "get_weather"], ["21c5c2a6", "21c5c2a6"]),
    ],
)
def test_what_is_found(run: Run, examples: Path, words: list[str], expected: list[str]) -> None:
    """What the options say, and nothing else."""
    done = run("ledger", "query", LEDGER, *words)
    assert done.code == 0
    found = run("ledger", "query", LEDGER, *words, "--json").json["entries"]
    ids = [str(entry["request_id"] or entry["seq"])[:8] for entry in found]
    assert ids == expected
    rows = rows_of(done.out) if expected else []
    assert all(f"  {one}" in row for one, row in zip(expected, rows, strict=True))


def test_the_json_has_the_lines_as_they_are(run: Run, examples: Path) -> None:
    """Byte for byte, in one value, with how many match."""
    lines = (examples / LEDGER).read_bytes().splitlines()
    done = run("ledger", "query", LEDGER, "--json", "--limit", "2")
    assert done.out == (b'{"entries":[%b,%b],"matched":10,"more":true}\n' % (lines[19], lines[17]))
    everything = run(
        "ledger", "query", LEDGER, "--json", "--lines", "--limit", "0", "--oldest-first"
    )
    assert everything.out == b'{"entries":[%b],"matched":22,"more":false}\n' % b",".join(lines)
    text = run("ledger", "query", LEDGER, "--json", "--text", "agent-7", "--limit", "1").json
    assert (len(text["entries"]), text["matched"], text["more"]) == (1, None, True)
    nothing = run("ledger", "query", LEDGER, "--json", "--tool", "nothing")
    assert nothing.out == b'{"entries":[],"matched":0,"more":false}\n'


def test_more_than_the_limit(run: Run, examples: Path) -> None:
    """It is said, with how to see the rest."""
    said = run("ledger", "query", LEDGER, "--limit", "3").out.decode()
    assert said.endswith("\nthe newest 3 of 10 calls; there are more: --limit 0 shows all\n")
    said = run("ledger", "query", LEDGER, "--limit", "3", "--oldest-first").out.decode()
    assert "\nthe oldest 3 of 10 calls; " in said
    said = run("ledger", "query", LEDGER, "--limit", "1", "--text", "agent").out.decode()
    assert said.endswith("\n1 calls; there are more: --limit 0 shows all\n")


def test_nothing_found_is_no_failure(run: Run, examples: Path) -> None:
    """It is said, with the names that there are where one was no name."""
    done = run("ledger", "query", LEDGER, "--tool", "reed_file", "--peer", "agent-7")
    assert (done.code, done.err) == (0, "")
    assert done.out.decode().splitlines() == [
        "no call is like that among the 22 lines of this ledger",
        "no tool here is called 'reed_file'; did you mean read_file?",
    ]
    said = run("ledger", "query", LEDGER, "--peer", "zzz").out.decode()
    assert "no peer here is called 'zzz'; there are agent-7, anonymous, night-report" in said


@pytest.mark.parametrize(
    "words,said",
    [
        (["--since", "yesterday"], "'yesterday' is no time; write 2026-11-19T20:59:08Z"),
        (["--limit", "many"], "--limit must be a number, not 'many'"),
        (["--limit", "-1"], "--limit must be a number"),
        (["--event", "ended"], "no event 'ended'; events: admitted, settled"),
        (["--outcome", "fialed"], "--outcome: no outcome is called 'fialed'; did you mean failed?"),
        (["--outcome", "timeot"], "--outcome: no outcome is called 'timeot'; did you mean TIMEOUT"),
        (["--outcome", "zzz"], "--outcome: no outcome is called 'zzz'; there are ok, failed, outc"),
        (
            ["--since", "2026-11-20", "--until", "2026-11-19"],
            "--since 2026-11-20 is after --until 2026-11-19; nothing can be between them",
        ),
        (["--trace", "4bf9"], "'4bf9' is too short for a trace"),
        (["--tool", ""], "a name to look for is empty"),
        (["--text", ""], "the text to look for is empty"),
        (["--tol", "x"], "no option --tol; did you mean --tool?"),
    ],
)
def test_mistakes(run: Run, examples: Path, words: list[str], said: str) -> None:
    """A mistake in the command line: exit code 2, and what to write."""
    done = run("ledger", "query", LEDGER, *words)
    assert (done.code, done.out) == (2, b"")
    assert done.err.startswith(f"mcp-envelope: {said}")


@pytest.mark.parametrize("name", ["OK", "Failed", "TIMEOUT", "timeout", "OUTCOME_*", "*zzz*"])
def test_outcomes_that_can_be(run: Run, examples: Path, name: str) -> None:
    """In any case, and with ``*`` whatever there is; also where no call has them."""
    words = ["--since", "2026-11-19", "--until", "2026-11-19"]
    assert run("ledger", "query", LEDGER, "--outcome", name, *words).code == 0


def test_ledgers_that_are_none(run: Run, examples: Path) -> None:
    """A file that is not there, standard input, a folder: 2. What cannot be read: 3."""
    for name in ("absent", "-", ".", "jsonl:absent", "memory:"):
        done = run("ledger", "query", name)
        assert (done.code, done.out) == (2, b""), name
    shutil.copy(sys.executable, "program")
    assert run("ledger", "query", "program").code == 3


def test_an_index_that_cannot_be_kept(run: Run, examples: Path) -> None:
    """A temporary one is used, and that is said on standard error."""
    (examples / "calls.jsonl.index").mkdir()
    done = run("ledger", "query", LEDGER, "--json")
    assert done.code == 0
    assert done.json["matched"] == 10
    assert done.err.startswith("the index cannot be kept beside the ledger, so one is made for")


def test_text_from_outside_steers_nothing(run: Run, examples: Path) -> None:
    """Names with escape sequences and line ends stay in their row; wide letters keep it aligned."""
    nasty: dict[str, Any] = {"tool": "a\x1b[2J\nb\u202e", "peer": "日本語", "kind": None}
    begin, end = call(1, **nasty)
    error = {"code": "TIMEOUT", "message": "x\x1b]0;y\x07" * 3}
    write("sqlite:nasty.db", begin, end, *call(2, peer="ok"), some_facts(error=error, **nasty))
    done = run("ledger", "query", "nasty.db", "--tool", "a*")
    assert done.code == 0
    assert "\x1b" not in done.out.decode()
    assert len(rows_of(done.out)) == 2
    assert "a\\x1b[2J\\nb\\u202e  日本語" in done.out.decode()


def test_ids_that_begin_alike_are_told_apart(run: Run, examples: Path) -> None:
    """As much of them is shown as is needed."""
    facts: list[Any] = []
    for number in range(3):
        facts += call(number, request_id=f"00000000-0000-4000-8000-{number:012d}")
    write("jsonl:same.jsonl", *facts)
    said = run("ledger", "query", "same.jsonl").out.decode()
    assert all(f"00000000-0000-4000-8000-{n:012d}" in said for n in range(3))


def test_a_live_ledger_is_searched_up_to_its_end(run: Run, examples: Path) -> None:
    """The index follows before each search."""
    for count in (1, 2, 3):
        write("sqlite:live.db", *call(count))
        assert run("ledger", "query", "live.db", "--json").json["matched"] == count
    entry = run("ledger", "query", "sqlite:live.db", "--json", "--limit", "1").json["entries"][0]
    assert json.loads(json.dumps(entry))["event"] == "settled"
