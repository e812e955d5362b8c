"""``ledger prune``: old lines go, nothing goes unsaid, and what is left still holds."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.cli.ledgers import key_of, url_in, write

from mcp_envelope.core.ports import LedgerError
from mcp_envelope.gateway.archiving import Archive, Plan
from mcp_envelope.stores import open_ledger, read_ledger

from .conftest import Run

#: Much work: run by tools/ci.py.
pytestmark = [pytest.mark.usefixtures("state"), pytest.mark.whole]


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A ledger of 1,207 lines: 300 calls, a checkpoint, 300 calls, a checkpoint."""
    made = write(url_in(tmp_path, "sqlite"), 300)
    return write(made, 300, begin=300)


def first_of(url: str) -> int:
    """The number of the first line that is there."""
    source = read_ledger(url)
    try:
        return source.bounds()[0]
    finally:
        source.close()


def pruned(run: Run, url: str, *words: str) -> dict[str, Any]:
    """What was removed, with ``--json``."""
    how = () if {"--archive", "--dry-run"} & set(words) else ("--discard",)
    done = run("ledger", "prune", url, *words, *how, "--json")
    assert done.code == 0, done.out
    found: dict[str, Any] = done.json
    return found


def test_lines_before_a_number(run: Run, tmp_path: Path, url: str) -> None:
    """Whole segments; what is left holds, and so do checkpoints that were kept."""
    kept = tmp_path / "kept"
    run("ledger", "checkpoint", url, "--out", str(kept))
    found = pruned(run, url, "--before", "600")
    assert (found["first"], found["last"], found["lines"]) == (0, 511, 512)
    assert (found["begins_at"], found["told_in"], found["archive"]) == (512, 1206, None)
    assert first_of(url) == 512
    done = run("ledger", "verify", url, "--checkpoint", str(kept))
    assert done.code == 0
    assert b"lines 0 to 511 were removed; line 1206 vouches for it" in done.out
    assert run("ledger", "checkpoint", url, "--since", str(kept)).code == 0
    assert run("ledger", "prove", url, "700").code == 0
    assert run("ledger", "prove", url, "3").code == 1
    again = pruned(run, url, "--before", "1100")
    assert (again["first"], again["last"]) == (512, 1023)
    assert run("ledger", "verify", url).code == 0


def test_the_archive_and_the_rest_are_the_whole(run: Run, tmp_path: Path, url: str) -> None:
    """One behind the other they are the ledger as it was, and more."""
    before = run("ledger", "export", url).out
    folder = tmp_path / "archive" / "deep"
    found = pruned(run, url, "--before", "600", "--archive", str(folder))
    path = folder / "calls-0-511.jsonl"
    assert found["archive"] == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    rest = run("ledger", "export", url).out
    whole = path.read_bytes() + rest
    assert whole.startswith(before)
    assert run("ledger", "verify", "-", given=whole).code == 0
    (tmp_path / "rest").write_bytes(rest)
    assert run("ledger", "verify", str(tmp_path / "rest")).code == 0
    done = run("ledger", "verify", "-", given=rest)
    assert done.code == 1
    assert b"give it as a file" in done.out
    assert [one.name for one in folder.iterdir()] == ["calls-0-511.jsonl"]


def test_the_lines_before_a_time(run: Run, url: str) -> None:
    """A date, or a time in any zone; in the ledger a second is a call, two lines."""
    assert pruned(run, url, "--dry-run", "--before", "2026-01-01")["lines"] == 0
    assert pruned(run, url, "--dry-run", "--before", "2026-01-01T00:04:00Z")["last"] == 255
    assert pruned(run, url, "--dry-run", "--before", "2026-01-01T02:05:00+02:00")["last"] == 511
    assert pruned(run, url, "--dry-run", "--before", "2026-01-02")["last"] == 511
    assert first_of(url) == 0


def test_by_age(run: Run, url: str) -> None:
    """What is older goes; the checkpoint in line 602 is from just now, and stays."""
    assert pruned(run, url, "--keep", "99999d", "--dry-run")["lines"] == 0
    for age in ("900s", "20m", "3h", "4d", "1w"):
        assert pruned(run, url, "--keep", age, "--dry-run")["last"] == 511
    assert first_of(url) == 0


def test_in_words(run: Run, tmp_path: Path, url: str) -> None:
    """What was removed, where it is, what can still be proven; and where nothing was."""
    dry = run("ledger", "prune", url, "--before", "600", "--dry-run")
    assert dry.out == b"would remove lines 0 to 511, 512 in number\n"
    done = run("ledger", "prune", url, "--before", "600", "--archive", str(tmp_path))
    assert done.out.startswith(b"removed lines 0 to 511, 512 in number\n  they are in ")
    assert b"bodies that were kept of these calls are not in it" in done.out
    none = run("ledger", "prune", url, "--before", "600", "--discard")
    assert none.code == 0
    assert none.out.decode().splitlines() == [
        "nothing to remove yet: of lines 512 to 599 none can go alone",
        "  lines go in segments of 256, of which a checkpoint is never the last",
        "  the first that can go are lines 512 to 767: --before 768",
    ]
    none = run("ledger", "prune", url, "--before", "300", "--discard")
    assert none.out.startswith(b"nothing to remove before line 300: the ledger begins with 512\n")
    done = run("ledger", "prune", url, "--before", "800", "--discard")
    assert b"they are gone, and bodies that were kept of them" in done.out


def test_why_nothing_goes_by_time(run: Run, tmp_path: Path, url: str) -> None:
    """How old the first line is, which lines would go, and when; or that there are too few."""
    none = run("ledger", "prune", url, "--keep", "99999d", "--dry-run").out.decode().splitlines()
    assert none[0].startswith("nothing to remove: no line is older than 1970-01-01T")
    assert none[0].endswith("Z, the first is of 2026-01-01T00:00:00.000Z")
    assert none[2:] == [
        "  the first that can go are lines 0 to 255, once that is older than 99999d;",
        "  line 255 is of 2026-01-01T00:02:07.000Z",
    ]
    few = write(url_in(tmp_path, "sqlite", "few"), 3)
    none = run("ledger", "prune", few, "--keep", "1d", "--discard").out.decode().splitlines()
    assert none[-1] == "  there are 9 lines: none can go before line 256 is there"


def test_what_becomes_of_the_lines_must_be_said(run: Run, tmp_path: Path, url: str) -> None:
    """Neither --archive nor --discard, or both: nothing is removed."""
    words = ["ledger", "prune", url, "--before", "600"]
    for more in ([], ["--archive", str(tmp_path / "a"), "--discard"]):
        done = run(*words, *more)
        assert (done.code, done.out) == (2, b"")
        assert "--archive" in done.err
        assert "--discard" in done.err
    assert first_of(url) == 0


def test_all_lines_are_not_removed_by_a_slip(run: Run, url: str) -> None:
    """A number beyond the end and a time to come are mistakes; the end itself is none."""
    for word in ("1207", "9" * 18, "2999-01-01"):
        done = run("ledger", "prune", url, "--before", word, "--discard")
        assert done.code == 2
        assert "it is beyond the end" in done.err or "this is in the future" in done.err
    assert first_of(url) == 0
    assert pruned(run, url, "--before", "1206")["last"] == 1023


def test_a_checkpoint_is_never_the_last_that_goes(run: Run, tmp_path: Path) -> None:
    """A segment that ends in one stays, with it."""
    url = write(url_in(tmp_path, "sqlite"), 253, dangling=0)
    write(url, 0, begin=253)
    source = read_ledger(url)
    events = [json.loads(one.line)["event"] for one in source.after(0)]
    source.close()
    at = events.index("checkpoint")
    assert at > 255
    url = write(url_in(tmp_path, "sqlite", "two"), 127, dangling=1)
    source = read_ledger(url)
    events = [json.loads(one.line)["event"] for one in source.after(0)]
    source.close()
    assert events.index("checkpoint") == 254
    write(url, 126, dangling=126, begin=127)
    assert pruned(run, url, "--before", "256", "--dry-run")["last"] == 255


def test_a_damaged_ledger_is_left_as_it_is(run: Run, tmp_path: Path, url: str) -> None:
    """What goes could not be looked into any more."""
    with sqlite3.connect(tmp_path / "calls.db") as database:
        database.execute("DROP TRIGGER lines_never_change")
        line = database.execute("SELECT line FROM lines WHERE seq = 100").fetchone()[0]
        new = line.replace(b'"add"', b'"sub"')
        database.execute("UPDATE lines SET line = ? WHERE seq = 100", (new,))
    database.close()
    done = run("ledger", "prune", url, "--before", "600", "--archive", str(tmp_path / "a"))
    assert (done.code, done.out) == (1, b"")
    assert "does not hold, and so nothing was removed: line 100: altered" in done.err
    assert first_of(url) == 0
    assert not (tmp_path / "a").exists()


def test_a_gateway_holds_it(run: Run, url: str) -> None:
    """Then nothing can be removed: 3, and who holds it."""
    ledger = open_ledger(url)
    done = run("ledger", "prune", url, "--before", "600", "--discard")
    asyncio.run(ledger.close())
    assert (done.code, done.out) == (3, b"")
    assert "is being written by process" in done.err
    assert first_of(url) == 0


def test_an_archive_is_not_overwritten(run: Run, tmp_path: Path, url: str) -> None:
    """And nothing is removed where it could not be kept."""
    path = tmp_path / "calls-0-511.jsonl"
    path.write_text("mine")
    done = run("ledger", "prune", url, "--before", "600", "--archive", str(tmp_path))
    assert done.code == 2
    assert (path.read_text(), first_of(url)) == ("mine", 0)
    (tmp_path / "file").write_text("")
    done = run("ledger", "prune", url, "--before", "600", "--archive", str(tmp_path / "file"))
    assert done.code in (2, 3)
    assert first_of(url) == 0


def test_a_full_disk_keeps_the_lines(
    run: Run, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the archive breaks off nothing goes, and no half of it is left."""

    def fail(_: object, line: bytes) -> None:
        if b'"seq":300,' in line:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(Archive, "__call__", fail)
    done = run("ledger", "prune", url, "--before", "600", "--archive", str(tmp_path / "a"))
    assert done.code == 3
    assert "No space left" in done.err
    assert first_of(url) == 0
    assert list((tmp_path / "a").iterdir()) == []
    assert run("ledger", "verify", url).code == 0


def test_an_archive_takes_what_was_planned(tmp_path: Path) -> None:
    """Anything else keeps the lines in the ledger."""
    archive = Archive(tmp_path, "calls", Plan(0, 2))
    archive(b"0\n")
    with pytest.raises(LedgerError):
        archive(b"")
    archive(b"1\n")
    assert not archive.path.exists()
    archive(b"")
    assert archive.path.read_bytes() == b"0\n1\n"
    archive.close()
    assert archive.path.exists()
    with pytest.raises(FileExistsError):
        Archive(tmp_path, "calls", Plan(0, 2))


def test_the_ledger_of_others_is_left_alone(run: Run, tmp_path: Path) -> None:
    """Who removes has to sign, and with a key that the ledger knows."""
    url = write(url_in(tmp_path, "sqlite"), 300, signers=[key_of("other")])
    done = run("ledger", "prune", url, "--before", "300", "--discard")
    assert done.code == 2
    assert "nothing was removed: other signs this ledger" in done.err
    assert first_of(url) == 0


@pytest.mark.parametrize(
    "words,why",
    [
        ([], "one of --keep and --before"),
        (["--keep", "1d", "--before", "3"], "one of --keep and --before"),
        (["--keep", "3"], "is no age"),
        (["--keep", "d"], "is no age"),
        (["--before", "soon"], "neither a line's number nor a time"),
        (["--before", "0001-01-01T00:00:00+23:00"], "neither a line's number nor a time"),
        (["--before", "3", "--key-file", "absent"], ""),
    ],
)
def test_mistakes(run: Run, url: str, words: list[str], why: str) -> None:
    """Of the command line: 2, and nothing is removed."""
    done = run("ledger", "prune", url, *words, "--discard")
    assert done.code == (2 if why else 0)
    assert why in done.err
    assert first_of(url) == 0


def test_other_kinds_cannot_do_it(run: Run, tmp_path: Path) -> None:
    """A file of JSON Lines is only ever appended to."""
    url = write(url_in(tmp_path, "jsonl"), 300)
    done = run("ledger", "prune", url, "--before", "256", "--discard")
    assert done.code == 2
    assert "from sqlite: ledgers only" in done.err
