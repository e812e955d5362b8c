"""The Merkle tree of a ledger in SQLite: every eighth level is kept, the rest is computed."""

from __future__ import annotations

import sqlite3

from mcp_envelope.core.merkle import Frontier, complete_root, leaf_hash, subtrees
from mcp_envelope.core.ports import LedgerError

from .draft import STEP, TOP


def subtree_of(connection: sqlite3.Connection, level: int, index: int) -> bytes:
    """The hash of a complete subtree. LedgerError where what it needs is not there."""
    kept = min(level // STEP * STEP, TOP)
    count = 1 << (level - kept)
    begin = index * count
    if kept:
        rows = connection.execute(
            "SELECT hash FROM nodes WHERE level = ? AND idx >= ? AND idx < ? ORDER BY idx",
            (kept, begin, begin + count),
        ).fetchall()
        row = [one if isinstance(one, bytes) else b"" for (one,) in rows]
    else:
        rows = connection.execute(
            "SELECT coalesce(CAST(line AS BLOB), x'') FROM lines"
            " WHERE seq >= ? AND seq < ? ORDER BY seq",
            (begin, begin + count),
        ).fetchall()
        row = [leaf_hash(one) for (one,) in rows]
    if len(row) != count:
        first = index << level
        what = f"lines {first} to {first + (1 << level) - 1}"
        raise LedgerError(f"the hash over {what} is not there, nor what it is made of")
    return complete_root(row)


def tree_of(connection: sqlite3.Connection, size: int) -> Frontier:
    """The tree of the first lines, to go on with."""
    return Frontier(size, [subtree_of(connection, *place) for place in subtrees(size)])
