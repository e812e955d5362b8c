"""Bringing the write-ahead log of a SQLite ledger home, in a thread of its own.

SQLite would do it in the middle of a commit, and wait for the disk there. Here commits only
append to the log. Under constant load the log could grow without end, as it begins anew only
where all of it is home: so where it is long, the rest is brought home while nobody writes.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from typing import Final

#: Pages that are written between two rounds.
SOME: Final = 4_000
#: Pages from which on writing is held up, for the little that is left after a round.
MANY: Final = 16_000
_TRIES: Final = 10


class LogKeeper:
    """Begins a round whenever enough was written. ``gate`` is held where nobody may write."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self.gate: Final = threading.Lock()
        self._rounds = threading.Lock()
        self._connect = connect
        self._pages = 0
        self._wake = threading.Event()
        self._is_ending = False
        self._thread: threading.Thread | None = None

    def wrote(self, pages: int) -> None:
        """Somebody wrote about so many pages."""
        self._pages += pages
        if self._pages >= SOME:
            self._pages = 0
            self._wake.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ledger-log", daemon=True)
                self._thread.start()

    def empty(self) -> bool:
        """Bring all of it home and cut it to nothing; False where readers are in the way.

        Until then it may still hold what was deleted.
        """
        with self._rounds, contextlib.suppress(sqlite3.Error), self._connected() as connection:
            for _ in range(_TRIES):
                # Most of it while others write; so that little is left while they wait.
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                with self.gate:
                    is_busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not is_busy:
                    return True
        return False

    def close(self) -> None:
        """End after the round that is under way."""
        self._is_ending = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._is_ending:
                return
            # A full disk fails writers too, and they say so; the next round does what is left.
            with self._rounds, contextlib.suppress(sqlite3.Error), self._connected() as connection:
                self._round(connection)

    def _round(self, connection: sqlite3.Connection) -> None:
        _, pages, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if pages >= MANY:
            # What came meanwhile, so that there is little left to be waited for.
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            with self.gate:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def _connected(self) -> contextlib.closing[sqlite3.Connection]:
        return contextlib.closing(self._connect())
