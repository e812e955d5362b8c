"""How lines get into a SQLite ledger, and out of it where they are removed."""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from mcp_envelope.core.ports import Durability, LedgerError, Writing

from .chain import Busy, Unwritten
from .draft import SEGMENT, Batch, Head
from .locks import unlock
from .sqlite_head import Start
from .sqlite_schema import TROUBLE, code_of, connect, open_database
from .sqlite_source import SqliteSource
from .sqlite_wal import LogKeeper

_log: Final = logging.getLogger("mcp_envelope.ledger")
_PAGE: Final = 4_096
# How long readers are waited for where the log is to be emptied: nobody writes meanwhile.
_PATIENCE: Final = 0.05
_LINE: Final = "INSERT INTO lines VALUES (?, ?)"
_NODE: Final = "INSERT INTO nodes VALUES (?, ?, ?)"
_NODE_ANEW: Final = "INSERT OR REPLACE INTO nodes VALUES (?, ?, ?)"
_BODY: Final = "INSERT INTO bodies VALUES (?, ?) ON CONFLICT DO NOTHING"
_USE: Final = "INSERT INTO uses VALUES (?, ?) ON CONFLICT DO UPDATE SET seq = excluded.seq"
_MARK: Final = "INSERT INTO facts VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"

_MEDDLED: Final = "see that nothing else writes to the ledger, then restart the gateway"
_KEEP: Final = "keep it, and name another file; mcp-envelope ledger verify says more"
_NEW: Final = "put it back, or restart the gateway: a new ledger begins"
_RESTART: Final = "restart the gateway: it goes on with what is there"
_REASONS: Final = {
    sqlite3.SQLITE_FULL: ("the disk is full", "make room on the disk of the ledger"),
    sqlite3.SQLITE_IOERR: ("the disk fails or is full", "look at the disk of the ledger"),
    sqlite3.SQLITE_READONLY: ("its database became read-only", "see to its permissions"),
    sqlite3.SQLITE_CORRUPT: ("its database is damaged", "keep it, and begin a new ledger"),
    sqlite3.SQLITE_NOTADB: ("its database is damaged", "keep it, and begin a new ledger"),
    sqlite3.SQLITE_CONSTRAINT: ("something else wrote to its database", _MEDDLED),
}
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})

# Connections to files that are not where they were. To close one would delete the log that
# now lies beside its path, whosever that is.
_abandoned: Final[list[sqlite3.Connection]] = []


class _MeddledError(Exception):
    """Somebody else did something to the database. It has the reason and the hint."""


class SqliteSink:
    """The database at ``path``, called ``named``, for the one who holds the lock ``fd``.

    ``head`` is where its chain goes on.
    """

    def __init__(self, path: Path, named: Path, note: Path, fd: int, writing: Writing) -> None:
        self._named = named
        self._note = note
        self._fd = fd
        self._path = str(path)
        self._log = f"{path}-wal"
        self._connection = open_database(path, named)
        self._keeper = LogKeeper(lambda: _connected(path))
        self._cursor = self._connection.cursor()
        try:
            self._prepare(writing.durability)
            self.head: Final = self._read_head(signs=writing.sealing is not None)
            self._main, self._size = _look_at(self._path)
            self._log_file, _ = _look_at(self._log)
        except (*TROUBLE, OSError) as error:
            self._connection.close()
            said = f"it cannot be read: {error}"
            if isinstance(error, LedgerError):
                said = error.message.removeprefix(f"{named}").removeprefix(":").lstrip()
            raise LedgerError(f"{named}: {said}", hint=_KEEP) from None

    @property
    def where(self) -> str:
        """The path that it was named by."""
        return str(self._named)

    def remarks(self) -> Sequence[str]:
        """None: a transaction is never torn."""
        return ()

    def write(self, batch: Batch) -> None:
        """All of it in one transaction."""
        with self._writing():
            self._check_files()
            run = self._cursor.execute
            run("BEGIN IMMEDIATE")
            is_whole = False
            try:
                self._check_last(batch.seq - 1)
                done = self._cursor.executemany(_LINE, enumerate(batch.lines, batch.seq))
                if done.rowcount != len(batch.lines):
                    raise _MeddledError("something else changed its database", _MEDDLED)
                if batch.nodes or batch.bodies or batch.marks:
                    self._write_more(batch)
                is_whole = True
                run("COMMIT")
            except BaseException:
                self._undo()
                if not (is_whole and self._is_there(batch)):
                    raise
        size = sum(map(len, batch.lines)) + sum(len(one) for _, _, one in batch.bodies)
        self._keeper.wrote(2 + size // _PAGE)

    def delete(self, before: int) -> int:
        """Delete some of the lines before a number; how many."""
        with self._writing(), self._transaction() as run:
            first = run("SELECT min(seq) FROM lines").fetchone()[0] or 0
            count = run("DELETE FROM lines WHERE seq < ?", (min(before, first + SEGMENT),)).rowcount
        self._keeper.wrote(count // 4)
        return count

    def delete_bodies(self, before: int) -> int:
        """Delete some of the bodies that only such lines had; how many."""
        with self._writing(), self._transaction() as run:
            rows = run("SELECT digest FROM uses WHERE seq < ? LIMIT 64", (before,)).fetchall()
            self._cursor.executemany("DELETE FROM bodies WHERE digest = ?", rows)
            self._cursor.executemany("DELETE FROM uses WHERE digest = ?", rows)
        self._keeper.wrote(4 * len(rows))
        return len(rows)

    def empty_log(self) -> None:
        """Let nothing of what was deleted stay behind. It waits for the disk."""
        if not self._keeper.empty():
            _log.warning("%s-wal holds removed lines until no reader is in its way", self._named)

    def close(self) -> None:
        """Put all into the database file, and let go of it."""
        self._keeper.close()
        is_ours = False
        with suppress(OSError):
            is_ours = _look_at(self._path)[0] == self._main
        if is_ours:
            self._connection.close()
        else:
            _abandoned.append(self._connection)
        unlock(self._fd, self._note)

    def _prepare(self, durability: Durability) -> None:
        run = self._connection.execute
        (mode,) = run("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise LedgerError("its disk cannot hold a SQLite log; it has to be a local one")
        run(f"PRAGMA synchronous = {'FULL' if durability == 'power' else 'NORMAL'}")
        if durability == "power" and sys.platform == "darwin":
            run("PRAGMA fullfsync = ON")
        run("PRAGMA wal_autocheckpoint = 0")
        run("PRAGMA secure_delete = ON")
        run("SELECT count(*) FROM facts").fetchone()  # makes the log, or reads it after a crash
        run("PRAGMA busy_timeout = 0")  # the event loop waits for nobody

    def _read_head(self, *, signs: bool) -> Head:
        with closing(SqliteSource(self._named)) as source:
            start = Start(source, self._connection, signs=signs)
        if start.nodes:
            _log.warning("%s: hashes kept beside its lines were wrong; made anew", self._named)
            with self._transaction():
                # It replaces them as no trigger of ours lets anybody do by mistake.
                self._cursor.executemany(_NODE_ANEW, start.nodes)
        return start.head

    def _check_files(self) -> None:
        """See that the files are still those that were written so far: else lines would be lost."""
        main, size = _look_at(self._path)
        if main != self._main:
            raise _MeddledError("its file was replaced", _NEW)
        if size < self._size:
            raise _MeddledError("its file was cut short", _KEEP)
        self._size = size
        try:
            is_there = _look_at(self._log)[0] == self._log_file
        except FileNotFoundError:
            is_there = False
        if not is_there:
            # We have it open, and so can still save what it holds.
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            raise _MeddledError("its log was deleted or replaced", _RESTART)

    def _check_last(self, last: int) -> None:
        (found,) = self._cursor.execute("SELECT max(seq) FROM lines").fetchone()
        if found != last and (found is not None or last >= 0):
            raise _MeddledError("something else wrote to its database", _MEDDLED)

    def _write_more(self, batch: Batch) -> None:
        run = self._cursor.executemany
        run(_NODE, batch.nodes)
        run(_BODY, [(digest, body) for digest, _, body in batch.bodies])
        run(_USE, [(digest, seq) for digest, seq, _ in batch.bodies])
        run(_MARK, batch.marks.items())

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Alone with the database; what fails becomes :class:`Unwritten`."""
        if not self._keeper.gate.acquire(blocking=False):
            raise Busy("its log is being put away", is_ours=True)
        try:
            yield
        except (sqlite3.Error, OSError, _MeddledError) as error:
            raise _unwritten(error) from None
        finally:
            self._keeper.gate.release()

    @contextmanager
    def _transaction(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        self._cursor.execute("BEGIN IMMEDIATE")
        try:
            yield self._cursor.execute
            self._cursor.execute("COMMIT")
        except BaseException:
            self._undo()
            raise

    def _undo(self) -> None:
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _is_there(self, batch: Batch) -> bool:
        """Whether it was written all the same: the last step of a commit may have failed."""
        last = batch.seq + len(batch.lines) - 1
        with suppress(sqlite3.Error), closing(self._connection.cursor()) as cursor:
            row = cursor.execute("SELECT line FROM lines WHERE seq = ?", (last,)).fetchone()
            return row is not None and row[0] == batch.lines[-1]
        return False


def _look_at(path: str) -> tuple[tuple[int, int], int]:
    """Which file it is, and its size."""
    found = os.stat(path)  # noqa: PTH116 - at every write
    return (found.st_ino, found.st_dev), found.st_size


def _connected(path: Path) -> sqlite3.Connection:
    """A second connection, to bring the log home."""
    connection = connect(path, "rw", timeout=_PATIENCE)
    if sys.platform == "darwin":
        connection.execute("PRAGMA checkpoint_fullfsync = ON")
    return connection


def _unwritten(error: Exception) -> Unwritten:
    if isinstance(error, _MeddledError):
        return Unwritten(error.args[0], hint=error.args[1])
    if isinstance(error, FileNotFoundError):
        return Unwritten("its file was deleted or moved", hint=_NEW)
    if isinstance(error, sqlite3.Error):
        code = code_of(error)
        if code in _BUSY:
            hint = "end what holds a transaction open in the ledger's database"
            return Busy("another program holds its database locked", hint=hint)
        reason, hint = _REASONS.get(code, (str(error), ""))
        return Unwritten(reason, hint=hint)
    reason = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
    return Unwritten(reason)
