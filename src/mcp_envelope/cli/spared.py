"""Files that no verb replaces or puts something in the place of: ledgers, what is theirs, keys."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import mcp_envelope as me
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.notes import VerifierKey
from mcp_envelope.stores.sqlite_schema import code_of, connect

#: What SQLite and the stores put beside a ledger, by the ends of the names.
_OF_DATABASES: Final = ("-wal", "-shm", "-journal")
_BESIDE: Final = (
    *_OF_DATABASES,
    *(".lock", ".bodies", ".index"),
    *(f".index{ending}" for ending in _OF_DATABASES),
)
_LINE: Final = b'{"v":1,"event":"'
_LOG: Final = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
#: Twice as much as the longest line has.
_MOST: Final = 1 << 17
_HINT: Final = "name another file; no --force replaces this one"


def check_spared(name: str, read: Iterable[Path] = ()) -> None:
    """Refuse (UsageError) what would destroy a ledger, a file that belongs to one, or a key.

    ``read`` are files that the verb itself needs, whatever is in them.
    """
    own = Path(name).absolute()
    for path in dict.fromkeys((own, own.resolve())):
        what = _what_it_is(path, read)
        if what:
            raise me.UsageError(f"{name} {what}", hint=_HINT)


def _what_it_is(path: Path, read: Iterable[Path]) -> str:
    """What speaks against writing there; empty if nothing does."""
    for other in read:
        if path.exists() and other.exists() and path.samefile(other):
            return "is what is read here"
    for ending in _BESIDE:
        ledger = path.with_name(path.name.removesuffix(ending))
        if path.name.endswith(ending) and ledger.name and is_ledger(ledger):
            return f"belongs to the ledger {ledger}"
    if is_ledger(path):
        return "is a ledger"
    head = _head(path)
    if head.startswith(_LOG):
        return "holds lines of a ledger in SQLite"
    return "holds a key" if _is_key(head) else ""


def is_ledger(path: Path) -> bool:
    """Whether lines can be in a file: in any database, and in JSON Lines of ours."""
    if not path.is_file() or path.stat().st_size == 0:
        return False
    if _is_database(path):
        return True
    lines = _head(path).splitlines(keepends=True)
    return any(line.startswith(_LINE) and line.endswith(b"\n") for line in lines)


def _is_database(path: Path) -> bool:
    """SQLite itself is asked, in a way that leaves nothing beside the file."""
    try:
        with contextlib.closing(connect(path, "ro&immutable=1")) as connection:
            connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.Error as error:
        return code_of(error) != sqlite3.SQLITE_NOTADB
    return True


def _head(path: Path) -> bytes:
    """How a file begins. None of a database is opened here: that could cost it its locks."""
    try:
        if not stat.S_ISREG(path.stat().st_mode) or not os.access(path, os.R_OK):
            return b""
        with path.open("rb") as file:
            return file.read(_MOST)
    except OSError:
        return b""


def _is_key(head: bytes) -> bool:
    first = head.split(b"\n", 1)[0].strip()
    if first.startswith(b"PRIVATE+KEY+"):
        return True
    try:
        VerifierKey.parse(first.decode())
    except (EnvelopeError, UnicodeError):
        return False
    return True
