"""The SQLite database of a ledger: its tables, how it is made, found to be ours, and migrated.

A database file of a ledger is never opened but by SQLite. POSIX drops the locks that a process
holds on a file as soon as any descriptor of it is closed there, those of a writer too.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import stat
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Final
from urllib.parse import quote

from mcp_envelope.core.ports import LedgerError

#: What SQLite raises: it quotes what is damaged as if it were text.
TROUBLE: Final = (sqlite3.Error, UnicodeDecodeError)
_log: Final = logging.getLogger("mcp_envelope.ledger")
#: What the name of the log of a database ends in.
LOG: Final = "-wal"
#: "MCPE": what says that a database is a ledger of ours.
APPLICATION: Final = 0x4D435045

_VERSION_1: Final = """
CREATE TABLE lines(seq INTEGER PRIMARY KEY, line BLOB NOT NULL);
CREATE TABLE nodes(
    level INTEGER, idx INTEGER, hash BLOB NOT NULL, PRIMARY KEY(level, idx)
) WITHOUT ROWID;
CREATE TABLE bodies(digest TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
-- Which line was the last that a body belongs to: once that is removed the body goes too.
CREATE TABLE uses(digest TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX uses_seq ON uses(seq);
CREATE TABLE facts(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TRIGGER lines_never_change BEFORE UPDATE ON lines
    BEGIN SELECT RAISE(ABORT, 'a line of a ledger never changes'); END;
CREATE TRIGGER lines_stay BEFORE DELETE ON lines
    WHEN old.seq >= coalesce((SELECT CAST(value AS INTEGER) FROM facts WHERE name = 'removed'), 0)
    BEGIN SELECT RAISE(ABORT, 'a line of a ledger is not deleted'); END;
CREATE TRIGGER nodes_never_change BEFORE UPDATE ON nodes
    BEGIN SELECT RAISE(ABORT, 'a hash of a ledger never changes'); END;
CREATE TRIGGER nodes_stay BEFORE DELETE ON nodes
    BEGIN SELECT RAISE(ABORT, 'a hash of a ledger is not deleted'); END;
"""

#: What makes version n + 1 of version n. Released ones never change.
MIGRATIONS: Final[tuple[str, ...]] = (_VERSION_1,)

_TABLES: Final = frozenset({"lines", "nodes", "bodies", "uses", "facts"})
_PLAIN: Final = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE TABLE %'"
# What SQLite makes itself, as with ANALYZE, nobody else can.
_SCHEMA: Final = (
    "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite!_%'"
    " ESCAPE '!'"
)
_SEQ: Final = (0, "seq", "INTEGER", 0, None, 1)
_HINT: Final = "name another file"
# How long others are waited for at the start: whoever finds a log after a crash reads it first.
_PATIENCE: Final = 2.0


def connect(path: Path, mode: str, *, timeout: float = 0.0) -> sqlite3.Connection:
    """A connection without transactions of its own: ``ro``, ``rw`` or ``ro&immutable=1``."""
    url = f"file:{quote(str(path))}?mode={mode}"
    return sqlite3.connect(
        url, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
    )


def lost_log(path: Path) -> bool:
    """Whether lines may be in the log of a database that is empty itself.

    SQLite would delete that log, even if it is only to read.
    """
    try:
        return not path.stat().st_size and path.with_name(path.name + LOG).stat().st_size > 0
    except OSError:
        return False


def code_of(error: Exception) -> int:
    """The primary result code of SQLite."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def open_database(
    path: Path, named: Path, migrations: Sequence[str] = MIGRATIONS
) -> sqlite3.Connection:
    """The database at ``path``, made if absent, migrated if old; ``named`` is what it is called.

    For the writer, who holds the lock, and sets how long it waits for others. LedgerError, and
    not a byte is changed, if it is no ledger of ours or of a newer version.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        found = None
    except OSError as error:
        raise LedgerError(f"{named} cannot be opened: {error.strerror}") from None
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise LedgerError(f"{named} is not a regular file", hint=_HINT)
    try:
        if found is None or found.st_size == 0:
            _make(path, migrations)
        else:
            with contextlib.closing(connect(path, "ro", timeout=_PATIENCE)) as connection:
                version = check(connection, named, len(migrations))
                missing = _missing(connection, named, migrations[:version])
            if version < len(migrations) or missing:
                with contextlib.closing(connect(path, "rw", timeout=_PATIENCE)) as connection:
                    for statement in missing:
                        connection.execute(statement)
                    _migrate(connection, version, migrations)
        return connect(path, "rw", timeout=_PATIENCE)
    except LedgerError:
        raise
    except TROUBLE as error:
        raise LedgerError(f"{named} cannot be opened: {error}") from None
    except OSError as error:
        raise LedgerError(f"{named} cannot be made: {error.strerror}") from None


def check(connection: sqlite3.Connection, named: Path, known: int = len(MIGRATIONS)) -> int:
    """The version of a ledger's schema. LedgerError if it is no ledger, or newer than we are."""
    try:
        # It may come from anybody: what looks like a table is not to run anything.
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        found = {name for (name,) in connection.execute(_PLAIN)}
        is_foreign = application != APPLICATION and bool(found) and not found & _TABLES
        # With another type, or as no key, numbers would stand elsewhere and lines would seem gone.
        if version == known and _SEQ not in connection.execute("PRAGMA table_info(lines)"):
            found = set()
    except sqlite3.DatabaseError as error:
        if code_of(error) != sqlite3.SQLITE_NOTADB:
            raise
        application, version, found, is_foreign = 0, 0, set(), False
    if application != APPLICATION or version < 1 or not (found >= _TABLES or version > known):
        # What may have been one is damaged: that is a verdict, and no mistake in a name.
        reached = None if is_foreign else 0
        raise LedgerError(f"{named}: it is not a ledger", hint=_HINT, reached=reached)
    if version > known:
        raise LedgerError(
            f"{named}: a newer version of mcp-envelope wrote it (schema {version}, known: {known})",
            hint=f"install that version, or {_HINT}",
        )
    return version


def _missing(connection: sqlite3.Connection, named: Path, migrations: Sequence[str]) -> list[str]:
    """The triggers and indices that it lacks. LedgerError if it has any that is not ours.

    A trigger could swallow lines that are written, or write others.
    """
    with contextlib.closing(sqlite3.connect(":memory:")) as model:
        model.executescript("\n".join(migrations))
        wanted = dict(model.execute(_SCHEMA).fetchall())
    found = dict(connection.execute(_SCHEMA).fetchall())
    strange = sorted(name for name, sql in found.items() if wanted.get(name) != sql)
    if strange:
        raise LedgerError(
            f"{named}: somebody changed its schema: {strange[0]!r:.80} is not as we made it",
            hint="see who did; restore it, or name another file",
        )
    return [sql for name, sql in wanted.items() if name not in found]


def _make(path: Path, migrations: Sequence[str]) -> None:
    """Make an empty ledger: all of it appears at once, or nothing."""
    new = path.with_name(path.name + ".new")
    # What is left of a database that is gone must not be taken for the log of this one.
    for ending in ("-wal", "-shm", "-journal"):
        new.with_name(new.name + ending).unlink(missing_ok=True)
        _set_aside(path.with_name(path.name + ending))
    new.unlink(missing_ok=True)
    fd = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with contextlib.closing(connect(new, "rw")) as connection:
            # It is forced to the disk as a whole, and what breaks off here is thrown away.
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("PRAGMA journal_mode = MEMORY")
            _migrate(connection, 0, migrations)
            connection.execute("PRAGMA journal_mode = WAL")
        os.fsync(fd)
    finally:
        os.close(fd)
    new.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _set_aside(log: Path) -> None:
    """Give what lies where a log of SQLite belongs another name: it may hold lines."""
    try:
        size = log.stat().st_size
    except FileNotFoundError:
        return
    if not size or log.name.endswith("-shm"):
        log.unlink(missing_ok=True)
        return
    names = (log.with_name(f"{log.name}.lost-{number}") for number in count(1))
    aside = next(name for name in names if not name.exists())
    log.rename(aside)
    _log.warning(
        "%s is gone or empty, but its log is not: that is kept as %s, and a new ledger begins",
        log.with_name(log.name.removesuffix(LOG)),
        aside.name,
    )


def _migrate(connection: sqlite3.Connection, version: int, migrations: Sequence[str]) -> None:
    """Take all steps from a version on, or none."""
    steps = "\n".join(migrations[version:])
    try:
        connection.executescript(
            f"BEGIN IMMEDIATE;\n{steps}\nPRAGMA application_id = {APPLICATION};\n"
            f"PRAGMA user_version = {len(migrations)};\nCOMMIT;"
        )
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
