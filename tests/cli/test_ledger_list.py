"""``ledger list``, and ledgers that are named as the upstream whose they are."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.cli.ledgers import time_of, url_in, write

from mcp_envelope.stores import open_ledger
from mcp_envelope.stores.places import default_path

from .conftest import Run


@pytest.fixture
def default(state: Path) -> Path:
    """The default ledger of the upstream ``time``: a run with two calls."""
    return Path(write(f"sqlite:{default_path('time')}", 2, seal=False).partition(":")[2])


def test_the_list(run: Run, state: Path, default: Path) -> None:
    """Each with its size, its lines, its times, and who writes it."""
    write(url_in(state, "jsonl", "a"), 1, seal=False)
    (state / "notes.jsonl").write_text("milk\n")
    ledger = open_ledger(None, name="other")
    try:
        done = run("ledger", "list", "--json")
        said = run("ledger", "list").out.decode().splitlines()
    finally:
        asyncio.run(ledger.close())
    assert done.json["folder"] == str(state)
    lines, other, time = done.json["ledgers"]
    assert [Path(one["path"]).name for one in (lines, other, time)] == [
        *("a.jsonl", "other.db", "time.db"),
    ]
    assert (lines["lines"], lines["bytes"]) == (4, (state / "a.jsonl").stat().st_size)
    assert (other["lines"], other["first"], other["last"]) == (0, None, None)
    assert (other["held"], other["holder"]) == (True, os.getpid())
    assert (time["held"], time["holder"], time["problem"]) == (False, None, "")
    assert (time["lines"], time["first"], time["last"]) == (6, time_of(0), time_of(2))
    assert said[0].split() == ["FILE", "BYTES", "LINES", "FIRST", "LAST", "HELD", "BY"]
    assert said[2].endswith(f"process {os.getpid()}")
    assert said[4:] == ["", f"in {state}"]


def test_what_cannot_be_read_is_listed(run: Run, state: Path, default: Path) -> None:
    """With the reason, and it is no failure of the list."""
    with default.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 4000)
    done = run("ledger", "list", "--json")
    assert done.code == 0
    (one,) = done.json["ledgers"]
    assert (one["lines"], bool(one["problem"])) == (None, True)
    assert one["problem"] in run("ledger", "list").out.decode()


def test_nothing_to_list(run: Run, state: Path, tmp_path: Path) -> None:
    """No folder yet, an empty one, one that is none; nothing is made."""
    done = run("ledger", "list")
    assert (done.code, done.out.decode()) == (0, f"no ledger in {state}\n")
    assert not state.exists()
    (tmp_path / "empty").mkdir()
    assert run("ledger", "list", str(tmp_path / "empty"), "--json").json["ledgers"] == []
    assert run("ledger", "list", str(tmp_path / "absent")).code == 2


@pytest.mark.parametrize(
    "verb",
    [
        ["query", "time"],
        ["show", "time", "1"],
        ["tail", "time"],
        ["verify", "time"],
        ["export", "time"],
        ["checkpoint", "time"],
        ["prove", "time", "1"],
        ["prune", "time", "--before", "1", "--discard"],
    ],
    ids=lambda words: str(words[0]),
)
def test_by_the_name_of_the_upstream(
    run: Run, default: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: list[str]
) -> None:
    """Every verb takes it, unless there is a file of that name."""
    monkeypatch.chdir(tmp_path)
    assert run("ledger", *verb).code == 0
    Path("time").mkdir()
    done = run("ledger", *verb)
    assert (done.code, "time is a folder" in done.err) == (2, True)


def test_a_name_that_is_none(run: Run, default: Path, tmp_path: Path) -> None:
    """What there is is said; a URL is never taken for an upstream's name."""
    done = run("ledger", "query", "tiem")
    assert done.code == 2
    assert done.err == (
        "mcp-envelope: there is no file tiem; by default gateways keep these here: time; "
        "mcp-envelope ledger list says more\n"
    )
    assert run("ledger", "query", "sqlite:time").code == 2


def test_without_a_home(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is none is still a mistake of the command line."""

    def fail() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", fail)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    done = run("ledger", "query", "absent")
    assert (done.code, "see how it is written" in done.err) == (2, True)
