"""A SQLite ledger that is read, also while a gateway writes it."""

from __future__ import annotations

import re
import sqlite3
import stat
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import orjson

from mcp_envelope.core.ports import LedgerError, Placed
from mcp_envelope.core.seal import Removed

from .sqlite_schema import check, code_of, connect
from .sqlite_tree import subtree_of

_PATIENCE: Final = 5.0
_PIECE: Final = re.compile(rb"[^\n]*\n")
#: Lines that are read at once: no reader holds up the writer's log for longer.
CHUNK: Final = 512
_ROWS: Final = "SELECT seq, CAST(line AS BLOB) FROM lines WHERE seq >= ? ORDER BY seq LIMIT ?"


class SqliteSource:
    """The ledger at ``path``. Places are the numbers of lines.

    Lines that were removed are not there any more, also where deleting them was cut short.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = _connect(path)

    @property
    def url(self) -> str:
        """``sqlite:PATH``."""
        return f"sqlite:{self.path}"

    @property
    def size(self) -> int:
        """The number of the line to come."""
        return self.bounds()[1]

    def physical(self) -> Iterator[bytes]:
        """Each line with a newline."""
        for one in self.after(0):
            piece = one.line + b"\n"
            if piece.index(b"\n") == len(piece) - 1:
                yield piece
            else:
                yield from _PIECE.findall(piece)

    def after(self, place: int) -> Iterator[Placed]:
        """The lines from a number on."""
        begun = self.kept_from()
        place = max(place, begun)
        count = CHUNK
        while True:
            try:
                rows = self._connection.execute(_ROWS, (place, count)).fetchall()
            except sqlite3.Error as error:
                if count == 1:
                    raise self._broken(error, place) from None
                count = 1  # as far as one can get
                continue
            if rows and rows[0][0] != place and self.kept_from() != begun:
                raise LedgerError(f"{self.path}: lines were removed meanwhile", hint="read it anew")
            for seq, line in rows:
                yield Placed(seq, seq + 1, line)
                place = seq + 1
            if len(rows) < count:
                return

    def at(self, place: int) -> bytes:
        """The line with that number."""
        row = self._one("SELECT CAST(line AS BLOB) FROM lines WHERE seq = ?", place)
        if row is None or place < self.kept_from():
            raise LedgerError(f"{self.path} has no line {place}")
        return bytes(row[0])

    def place_of(self, seq: int) -> int | None:
        """The number itself, where there is such a line."""
        row = self._one("SELECT seq FROM lines WHERE seq = ?", seq)
        return seq if row is not None and seq >= self.kept_from() else None

    def bounds(self) -> tuple[int, int]:
        """The first number, and that of the line to come."""
        row = self._one("SELECT min(seq), max(seq) FROM lines")
        if row is None or row[0] is None:
            return 0, 0
        return max(row[0], self.kept_from()), row[1] + 1

    def subtree(self, level: int, index: int) -> bytes:
        """From what is kept of the tree, and from at most 128 lines."""
        try:
            return subtree_of(self._connection, level, index)
        except LedgerError as error:
            raise LedgerError(f"{self.path}: {error.message}") from None
        except sqlite3.Error as error:
            raise self._broken(error, index << level) from None

    def removed(self) -> Removed | None:
        """As the newest line says that says so."""
        row = self._one("SELECT value FROM facts WHERE name = 'removal'")
        if row is None:
            return None
        said = orjson.loads(self.at(int(row[0])))["warnings"]
        found = [one for one in map(Removed.parse, said) if one is not None]
        if not found:
            raise LedgerError(f"{self.path}: line {row[0]} does not say what was removed")
        return found[0]

    def body(self, digest: str) -> bytes | None:
        """What was kept under a SHA-256."""
        row = self._one("SELECT body FROM bodies WHERE digest = ?", digest)
        if row is None:
            return None
        found = bytes(row[0])
        if sha256(found).hexdigest() != digest:
            raise LedgerError(f"{self.path}: what is kept as {digest} is something else")
        return found

    def close(self) -> None:
        """Let go of it."""
        self._connection.close()

    def kept_from(self) -> int:
        """The number before which all lines were removed, 0 if none was."""
        row = self._one("SELECT value FROM facts WHERE name = 'removed'")
        return int(row[0]) if row is not None else 0

    def _one(self, query: str, *values: object) -> tuple[Any, ...] | None:
        try:
            found: tuple[Any, ...] | None = self._connection.execute(query, values).fetchone()
        except sqlite3.Error as error:
            raise self._broken(error, None) from None
        return found

    def _broken(self, error: sqlite3.Error, seq: int | None) -> LedgerError:
        at = f" from line {seq} on" if seq is not None else ""
        return LedgerError(f"{self.path} cannot be read{at}: {error}", reached=seq)


def _connect(path: Path) -> sqlite3.Connection:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise LedgerError(f"{path} is not a regular file", hint="name another one")
    except OSError as error:
        if isinstance(error, LedgerError):
            raise
        raise LedgerError(f"{path} cannot be opened: {error.strerror}") from None
    problem = ""
    # Without the right to make files beside it SQLite reads it only if nobody else may write it.
    for mode in ("ro", "ro&immutable=1"):
        if mode != "ro" and Path(f"{path.resolve()}-wal").exists():
            break
        connection = connect(path, mode, timeout=_PATIENCE)
        try:
            check(connection, path)
            connection.execute("SELECT max(seq) FROM lines").fetchone()
        except sqlite3.Error as error:
            connection.close()
            problem = str(error)
            if code_of(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                break
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise LedgerError(f"{path} cannot be read: {problem}")
