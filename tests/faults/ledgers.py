"""Ledgers seen from outside: their lines, and what `mcp-envelope ledger verify` says of them."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.stores.chain import follow, lines_of

ROOT = Path(__file__).resolve().parent.parent.parent
SCHEMES = ("sqlite", "jsonl")
Entry = dict[str, Any]


def path_of(scheme: str, folder: Path) -> Path:
    """Where a test keeps its ledger."""
    return folder / ("calls.db" if scheme == "sqlite" else "calls.jsonl")


def lines_at(path: Path) -> list[bytes]:
    """The lines of a ledger, without newlines and without what is torn. Nothing is changed."""
    if path.suffix != ".db":
        return lines_of(path.read_bytes())
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as read:
        if not read.execute("SELECT 1 FROM sqlite_schema WHERE name = 'lines'").fetchone():
            return []
        return [bytes(line) for (line,) in read.execute("SELECT line FROM lines ORDER BY seq")]


def entries_at(path: Path) -> list[Entry]:
    """Its entries, a chain without gaps."""
    return follow(lines_at(path))


def calls_in(entries: list[Entry]) -> list[Entry]:
    """The entries that are no checkpoints: those may stand anywhere."""
    return [entry for entry in entries if entry["event"] != "checkpoint"]


def verify(url: str, state: Path, *words: str, code: int = 0) -> str:
    """What `ledger verify` prints, having seen that it ends with that code."""
    return told_by_verb("verify", url, state, *words, code=code)


def told_by_verb(verb: str, url: str, state: Path, *words: str, code: int = 0) -> str:
    """What a verb of the ledger prints, having seen that it ends with that code."""
    done = subprocess.run(
        [sys.executable, "-m", "mcp_envelope", "ledger", verb, url, *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}/src", "XDG_STATE_HOME": str(state)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == code, f"{verb} ended with {done.returncode}: {said}"
    assert "Traceback" not in said
    return said
