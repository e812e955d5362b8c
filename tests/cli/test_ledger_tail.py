"""``ledger tail``: the newest calls, and those that come."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.stores.test_index import call, write

from .conftest import Run

LEDGER = "calls.jsonl"
ROOT = Path(__file__).resolve().parents[2]


def test_the_newest_calls(run: Run, examples: Path) -> None:
    """So many, the newest last."""
    done = run("ledger", "tail", LEDGER, "-n", "2")
    assert (done.code, done.err) == (0, "")
    head, *rows = done.out.decode().splitlines()
    assert head.startswith("TIME ")
    assert ["53098476" in rows[0], "2386d2ea" in rows[1], len(rows)] == [True, True, 2]
    assert len(run("ledger", "tail", LEDGER).out.splitlines()) == 1 + 10
    assert len(run("ledger", "tail", LEDGER, "-n", "0").out.splitlines()) == 1
    assert "outcome_unknown" in run("ledger", "tail", LEDGER).out.decode()


def test_every_line(run: Run, examples: Path) -> None:
    """With numbers and events."""
    rows = run("ledger", "tail", LEDGER, "--lines", "-n", "30").out.decode().splitlines()
    assert rows[0].split()[:2] == ["SEQ", "EVENT"]
    assert [int(row.split()[0]) for row in rows[1:]] == list(range(22))


def test_json_lines(run: Run, examples: Path) -> None:
    """Exactly the lines of the ledger."""
    lines = (examples / LEDGER).read_bytes()
    assert run("ledger", "tail", LEDGER, "--lines", "-n", "99", "--json").out == lines
    done = run("ledger", "tail", LEDGER, "-n", "2", "--json")
    assert done.out.splitlines() == [lines.splitlines()[17], lines.splitlines()[19]]


def test_far_back(run: Run, examples: Path) -> None:
    """Calls are found however many other lines stand between, and however long the ledger is."""
    begins = [call(number)[0] for number in range(300)]
    write("sqlite:many.db", *call(999), *begins, *(call(n)[1] for n in range(300)))
    done = run("ledger", "tail", "many.db", "-n", "301", "--json")
    seqs = [json.loads(line)["seq"] for line in done.out.splitlines()]
    assert seqs == [1, *range(302, 602)]


def test_nothing_yet(run: Run, examples: Path) -> None:
    """It is said."""
    (examples / "empty.jsonl").touch()
    assert run("ledger", "tail", "empty.jsonl").out == b"there is no call yet\n"
    assert run("ledger", "tail", "empty.jsonl", "--json").out == b""


@pytest.mark.parametrize("name", ["absent", "-", ".", "absent/calls.db"])
def test_what_is_no_ledger(run: Run, examples: Path, name: str) -> None:
    """A mistake in the command line; also with --follow, where waiting makes no sense."""
    assert run("ledger", "tail", name).code == 2
    if name != "absent":
        assert run("ledger", "tail", name, "--follow").code == 2
    assert run("ledger", "tail", LEDGER, "-n", "x").code == 2


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
@pytest.mark.parametrize("is_there", [True, False])
def test_what_comes_is_followed(tmp_path: Path, kind: str, is_there: bool) -> None:
    """It is printed soon, also if the ledger is made later; Ctrl-C ends it quietly, with 130."""
    name = tmp_path / "calls"
    if is_there:
        write(f"{kind}:{name}", *call(1))
    words = ["-m", "mcp_envelope", "ledger", "tail", str(name), "--follow", "--json"]
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=surroundings
    ) as process:
        assert process.stdout is not None
        if is_there:
            assert json.loads(process.stdout.readline())["seq"] == 1
        else:
            assert process.stderr is not None
            assert process.stderr.readline() == f"waiting for {name}\n".encode()
            write(f"{kind}:{name}", *call(1))
            assert json.loads(process.stdout.readline())["seq"] == 1
        begin = time.monotonic()
        write(f"{kind}:{name}", *call(2))
        assert json.loads(process.stdout.readline())["seq"] == 3
        assert time.monotonic() - begin < 5
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
    assert (process.returncode, out, err) == (130, b"", b"")
