"""Telling from a file what kind of ledger is in it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from mcp_envelope.core.ports import LedgerError

from .sqlite_schema import code_of, connect, lost_log


def scheme_of(path: Path) -> str:
    """``sqlite`` or ``jsonl``. LedgerError for what can be neither.

    SQLite itself is asked: to open its file here and close it could cost a writer its locks.
    """
    if not path.is_file():
        raise LedgerError(f"{path} is not a regular file", hint="name another one")
    if path.stat().st_size == 0:
        return "sqlite" if lost_log(path.resolve()) else "jsonl"
    try:
        with contextlib.closing(connect(path.absolute(), "ro", timeout=1.0)) as connection:
            connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.Error as error:
        if code_of(error) == sqlite3.SQLITE_NOTADB:
            return _scheme_of_other(path)
    return "sqlite"


def _scheme_of_other(path: Path) -> str:
    with path.open("rb") as file:
        if b"\0" in file.read(100):
            hint = "it is damaged, or something else"
            raise LedgerError(f"{path}: it is not a ledger", hint=hint, reached=0)
    return "jsonl"
