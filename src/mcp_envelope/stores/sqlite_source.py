"""A SQLite ledger that is read, also while a gateway writes it."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from mcp_envelope.core.entry import MOST
from mcp_envelope.core.ports import LedgerError, Placed
from mcp_envelope.core.seal import Removed

from .links import is_row
from .remarks import newest_removed, removed_in
from .sqlite_schema import LOG, TROUBLE, check, code_of, connect, lost_log
from .sqlite_tree import subtree_of

_PATIENCE: Final = 5.0
#: Lines that are read at once: no reader holds up the writer's log for longer.
CHUNK: Final = 512
_CLOSED: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})
_FOR_NOW: Final = _CLOSED | {
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM),
    *(sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_FULL, sqlite3.SQLITE_INTERRUPT),
    *(sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_MISUSE),
}
# What was damaged may be no bytes any more, or nothing at all, or far longer than any line.
_LINE: Final = (
    f"CASE WHEN typeof(line) = 'blob' AND length(line) <= {MOST} THEN line"
    f" ELSE coalesce(substr(CAST(line AS BLOB), 1, {MOST + 1}), x'') END"
)
_ROWS: Final = f"SELECT seq, {_LINE} FROM lines WHERE seq >= ? ORDER BY seq LIMIT ?"  # noqa: S608
_ROW: Final = f"SELECT {_LINE} FROM lines WHERE seq = ?"  # noqa: S608


class SqliteSource:
    """The ledger at ``path``. Places are the numbers of lines.

    Lines that were removed are not there any more, also where deleting them was cut short.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = _connect(path)
        self._noted = 0
        self._removed: Removed | None = None

    @property
    def url(self) -> str:
        """``sqlite:PATH``."""
        return f"sqlite:{self.path}"

    @property
    def size(self) -> int:
        """The number of the line to come."""
        return self.bounds()[1]

    def physical(self) -> Iterator[bytes]:
        """Each line with a newline; what is not one line with the number of its row is none.

        All who read the database have to see the same lines, and no others find them by number.
        """
        for rows in self._chunks(0):
            for seq, line in rows:
                if is_row(seq, line):
                    yield line + b"\n"
                else:
                    yield b"row %d: " % seq + line.replace(b"\n", b"\\n") + b"\n"

    def after(self, place: int) -> Iterator[Placed]:
        """The lines from a number on."""
        for rows in self._chunks(place):
            for seq, line in rows:
                yield Placed(seq, seq + 1, line)

    def _chunks(self, place: int) -> Iterator[list[tuple[int, bytes]]]:
        """Some lines at a time; LedgerError where some of them vanish meanwhile."""
        begun = self.kept_from()
        place = max(place, begun)
        for rows in self._rows(place):
            if rows and rows[0][0] != place and self.kept_from() != begun:
                raise LedgerError(f"{self.path}: lines were removed meanwhile", hint="read it anew")
            yield rows
            place = rows[-1][0] + 1 if rows else place

    def _rows(self, place: int) -> Iterator[list[tuple[int, bytes]]]:
        """Some rows at a time, none of them in a transaction that goes on."""
        count = CHUNK
        while True:
            try:
                rows = self._connection.execute(_ROWS, (place, count)).fetchall()
            except TROUBLE as error:
                if count == 1:
                    raise self._broken(error, place) from None
                count = 1  # as far as one can get
                continue
            yield rows
            if len(rows) < count:
                return
            place = rows[-1][0] + 1

    def at(self, place: int) -> bytes:
        """The line with that number."""
        row = self._one(_ROW, place)
        if row is None or place < self.kept_from():
            raise LedgerError(f"{self.path} has no line {place}")
        return bytes(row[0])

    def place_of(self, seq: int) -> int | None:
        """The number itself, where there is such a line."""
        row = self._one("SELECT seq FROM lines WHERE seq = ?", seq)
        return seq if row is not None and seq >= self.kept_from() else None

    def bounds(self) -> tuple[int, int]:
        """The first number, and that of the line to come."""
        # Asked for both at once SQLite would read the whole table.
        row = self._one("SELECT (SELECT min(seq) FROM lines), (SELECT max(seq) FROM lines)")
        if row is None or row[0] is None:
            return 0, 0
        return max(row[0], self.kept_from()), row[1] + 1

    def subtree(self, level: int, index: int) -> bytes:
        """From what is kept of the tree, and from at most 128 lines."""
        try:
            return subtree_of(self._connection, level, index)
        except LedgerError as error:
            raise LedgerError(f"{self.path}: {error.message}") from None
        except TROUBLE as error:
            raise self._broken(error, index << level) from None

    def removed(self) -> Removed | None:
        """As the newest line that says so says it of what is gone; None if none does."""
        return self._removed if self.kept_from() else None

    def body(self, digest: str) -> bytes | None:
        """What was kept under a SHA-256."""
        row = self._one("SELECT body FROM bodies WHERE digest = ?", digest)
        if row is None:
            return None
        found = bytes(row[0]) if isinstance(row[0], bytes) else b""
        if sha256(found).hexdigest() != digest:
            raise LedgerError(f"{self.path}: what is kept as {digest} is something else")
        return found

    def close(self) -> None:
        """Let go of it."""
        self._connection.close()

    def kept_from(self) -> int:
        """The number before which all lines were removed, 0 if none was.

        What is noted of it beside the lines counts only where a checkpoint line says the same.
        """
        row = self._one("SELECT value FROM facts WHERE name = 'removed'")
        noted = _number(row[0]) if row is not None else 0
        if noted != self._noted:
            self._removed = self._removed_of(noted) if noted else None
            self._noted = noted
        return noted if self._removed is not None else 0

    def _removed_of(self, count: int) -> Removed | None:
        row = self._one("SELECT value FROM facts WHERE name = 'removal'")
        line = self._one(_ROW, _number(row[0])) if row is not None else None
        if line is not None and (found := removed_in(line[0], count)):
            return found
        # The line that says so stands behind what is gone.
        rows = (Placed(seq, seq + 1, line) for rows in self._rows(count) for seq, line in rows)
        return newest_removed(rows, count)

    def _one(self, query: str, *values: object) -> tuple[Any, ...] | None:
        try:
            found: tuple[Any, ...] | None = self._connection.execute(query, values).fetchone()
        except TROUBLE as error:
            raise self._broken(error, None) from None
        return found

    def _broken(self, error: Exception, seq: int | None) -> LedgerError:
        at = f" from line {seq} on" if seq is not None else ""
        message = f"{self.path} cannot be read{at}: {_reason(error)}"
        return LedgerError(message, reached=_reached(error) if seq is None else seq)


def _number(text: Any) -> int:
    """A number among the facts; what is none is no line's."""
    return int(text) if isinstance(text, str) and text.isdecimal() and len(text) < 19 else 0


def _connect(path: Path) -> sqlite3.Connection:
    _require_file(path)
    problem, reached = "", None
    # Without the right to make files beside it SQLite reads it only if nobody else may write it.
    for mode in ("ro", "ro&immutable=1"):
        if mode != "ro" and Path(f"{path.resolve()}{LOG}").exists():
            break
        connection = connect(path, mode, timeout=_PATIENCE)
        try:
            check(connection, path)
            # Its beginning only: what is damaged behind that can be read so far.
            connection.execute("SELECT seq FROM lines LIMIT 1").fetchone()
        except TROUBLE as error:
            connection.close()
            problem, reached = _reason(error), _reached(error)
            if reached is not None or code_of(error) not in _CLOSED:
                break
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise LedgerError(f"{path} cannot be read: {problem}", reached=reached)


def _require_file(path: Path) -> None:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise LedgerError(f"{path} is not a regular file", hint="name another one")
    except OSError as error:
        if isinstance(error, LedgerError):
            raise
        raise LedgerError(f"{path} cannot be opened: {error.strerror}") from None
    if lost_log(path.resolve()):
        hint = f"keep {path.name}{LOG} beside it: lines may be in there"
        raise LedgerError(f"{path} was emptied", hint=hint, reached=0)


def _reached(error: Exception) -> int | None:
    """0 where the database itself is damaged, None where only things stand against reading it."""
    return None if isinstance(error, sqlite3.Error) and code_of(error) in _FOR_NOW else 0


def _reason(error: Exception) -> str:
    return "its schema is damaged" if isinstance(error, UnicodeDecodeError) else str(error)
