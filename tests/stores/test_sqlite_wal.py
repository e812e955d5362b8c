"""The log of a SQLite ledger, and who waits while it is brought home."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from mcp_envelope.stores.sqlite_wal import LogKeeper


def test_nobody_waits_for_most_of_a_log_that_is_emptied(tmp_path: Path) -> None:
    """What was written before is home by then: only what came meanwhile is waited for."""
    path = tmp_path / "calls.db"
    held: list[tuple[bool, str]] = []
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE a(b)")

        def connect() -> sqlite3.Connection:
            second = sqlite3.connect(path, isolation_level=None)
            second.set_trace_callback(lambda text: held.append((keeper.gate.locked(), text)))
            return second

        keeper = LogKeeper(connect)
        assert keeper.empty()
        assert held == [
            (False, "PRAGMA wal_checkpoint(PASSIVE)"),
            (True, "PRAGMA wal_checkpoint(TRUNCATE)"),
        ]
        assert (tmp_path / "calls.db-wal").stat().st_size == 0
