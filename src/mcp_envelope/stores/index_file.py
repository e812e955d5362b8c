"""The file of a search index: made, found damaged and made anew, temporary where it must be."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Final

from mcp_envelope.core.ports import LedgerError

from .index_schema import APPLICATION, SCRATCH, TABLES, VERSION

_BESIDE: Final = ("", "-wal", "-shm", "-journal")
_WAIT_S: Final = 10.0
_CODE: Final = 0xFF
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_NO_PLACE: Final = frozenset(
    {
        *(sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL),
        *(sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOLFS),
    }
)


class NoPlaceError(LedgerError):
    """There is nowhere that the index could be written."""


#: What a damaged database can make SQLite, and Python with what it gives, say.
DAMAGE: Final = (sqlite3.Error, ValueError, TypeError, OverflowError)


def code_of(error: BaseException) -> int:
    """The primary result code of SQLite, 0 where there is none."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & _CODE


class IndexFile:
    """A connection to an index that has the right tables, whatever was there before.

    ``wanted`` is where it should be; for None, and where nothing can be written there, it is a
    temporary one, unless ``temporary`` forbids that (NoPlaceError). ``reason`` then says why.
    """

    def __init__(self, wanted: Path | None, *, temporary: bool = True) -> None:
        self._folder: Path | None = None
        self._may_be_temporary = temporary
        self._identity: tuple[int, int] | None = None
        self.reason = ""
        self._path = wanted if wanted is not None else self._temporary("it has no place of its own")
        self.db = self._opened()

    @property
    def is_temporary(self) -> bool:
        """Whether it will be gone when it is closed."""
        return self._folder is not None

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._path

    def is_there(self) -> bool:
        """Whether the file is still the one that was opened."""
        try:
            found = self._path.stat()
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._identity

    def renew(self) -> None:
        """Throw it away and begin with an empty one."""
        self.db.close()
        self._discard()
        self.db = self._opened()

    def reopen(self) -> None:
        """Open what lies there now."""
        self.db.close()
        self.db = self._opened()

    def give_way(self, reason: str) -> None:
        """Go on in a temporary file. NoPlaceError if that is forbidden or is one already."""
        self.db.close()
        if self.is_temporary:
            raise NoPlaceError(f"no index can be written: {reason}", hint="see to the disk")
        self._path = self._temporary(reason)
        self.db = self._opened()

    def close(self) -> None:
        """Let go of it."""
        with contextlib.suppress(sqlite3.Error):
            # Else a connection that was interrupted leaves its log unfinished beside the index.
            self.db.execute("SELECT 1").fetchone()
        with contextlib.suppress(sqlite3.Error):
            self.db.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _temporary(self, reason: str) -> Path:
        self.reason = reason
        if not self._may_be_temporary:
            raise NoPlaceError(f"the index cannot be written: {reason}")
        try:
            self._folder = Path(tempfile.mkdtemp(prefix="mcp-envelope-"))
        except OSError as error:
            raise NoPlaceError(f"no index can be written: {error.strerror}") from None
        return self._folder / "index"

    def _opened(self) -> sqlite3.Connection:
        for _ in range(2):
            try:
                found = self._connected()
            except OSError as error:
                why = error.strerror or str(error)
            except DAMAGE as error:
                if code_of(error) in _BUSY:
                    raise busy(self._path) from None
                if code_of(error) not in _NO_PLACE:
                    self._discard()
                    continue
                why = str(error)
            else:
                if found is not None:
                    return found
                self._discard()
                continue
            break
        else:
            why = "what lies there cannot be used or removed"
        if self.is_temporary:
            raise NoPlaceError(f"no index can be written: {why}")
        self._path = self._temporary(why)
        return self._opened()

    def _connected(self) -> sqlite3.Connection | None:
        """A connection with the right tables; None if those that are there are others."""
        # Only a new one: to open what SQLite has open here, and close it, would drop its locks.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        found = self._path.stat()
        self._identity = (found.st_dev, found.st_ino)
        db = sqlite3.connect(
            self._path.absolute().as_uri(), uri=True, isolation_level=None, timeout=_WAIT_S
        )
        try:
            db.text_factory = lambda data: data.decode(errors="replace")
            db.execute("PRAGMA trusted_schema = OFF")
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA wal_autocheckpoint = 4000")
            db.execute("PRAGMA cache_size = -64000")
            db.execute("PRAGMA temp_store = MEMORY")
            if not _has_tables(db):
                db.close()
                return None
            db.executescript(SCRATCH)
        except BaseException:
            db.close()
            raise
        return db

    def _discard(self) -> None:
        for ending in _BESIDE:
            with contextlib.suppress(OSError):
                self._path.with_name(self._path.name + ending).unlink()


def busy(path: Path) -> LedgerError:
    """What is said where another process holds the index for too long."""
    return LedgerError(
        f"{path} is held by another process", hint="try again, or delete it: it is made anew"
    )


def is_interrupted(error: BaseException) -> bool:
    """Whether another thread wanted it to end."""
    return code_of(error) == sqlite3.SQLITE_INTERRUPT


def is_busy(error: BaseException) -> bool:
    """Whether somebody else holds it."""
    return code_of(error) in _BUSY


def has_no_place(error: BaseException) -> bool:
    """Whether the disk or its permissions are at fault."""
    return code_of(error) in _NO_PLACE


def _has_tables(db: sqlite3.Connection) -> bool:
    db.execute("BEGIN IMMEDIATE")
    try:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        owner = db.execute("PRAGMA application_id").fetchone()[0]
        count = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if (version, owner, count) == (0, 0, 0):
            for statement in TABLES.split(";"):
                db.execute(statement)
            version, owner = VERSION, APPLICATION
    finally:
        db.execute("COMMIT")
    return (version, owner) == (VERSION, APPLICATION)
