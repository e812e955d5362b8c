"""Where the chain of a SQLite ledger goes on, by its lines; what is kept beside them only helps."""

from __future__ import annotations

import sqlite3
from hashlib import sha256
from typing import Final

from mcp_envelope.core.merkle import Frontier, leaf_hash
from mcp_envelope.core.ports import LedgerError
from mcp_envelope.core.seal import ORIGIN, origin_of

from .draft import SEALED, SEGMENT, Head, grown
from .links import Walk
from .remarks import check_sealed, origin_in
from .sqlite_source import SqliteSource
from .sqlite_tree import tree_of

#: A complete subtree: level, index and hash.
Node = tuple[int, int, bytes]
_NODE: Final = "SELECT hash FROM nodes WHERE level = ? AND idx = ?"


class Start:
    """The head of a ledger, and the ``nodes`` of its tree that are not kept as they should be.

    Whoever ``signs`` goes on behind the lines since the last checkpoint, which nothing but they
    themselves vouches for: they are read. Where that checkpoint and the kept hashes disagree,
    all lines are. LedgerError where the lines are not whole, or not what a checkpoint covers.
    """

    def __init__(
        self, source: SqliteSource, connection: sqlite3.Connection, *, signs: bool
    ) -> None:
        self._source = source
        self._connection = connection
        self.head = Head()
        self.nodes: list[Node] = []
        #: Whether all lines had to be read.
        self.is_anew = False
        begin, self._end = source.bounds()
        if not self._end:
            return
        self._marks = dict(connection.execute("SELECT name, value FROM facts").fetchall())
        self._first = sha256(source.at(0)).hexdigest() if begin == 0 else ""
        try:
            self._go_on(begin, signs=signs)
        except (LedgerError, ValueError):
            self.is_anew = True
            self._begin_anew()

    def _go_on(self, begin: int, *, signs: bool) -> None:
        """From the last checkpoint; where nobody signs from the begin of the last segment."""
        mark = self._marks.get("sealed")
        sealed = int(mark) if isinstance(mark, str) and mark.isdecimal() else -1
        place = sealed
        if sealed < begin and not signs:
            place = max(begin, (self._end - 1) // SEGMENT * SEGMENT)
        if not begin <= place < self._end:
            raise LedgerError("there is no checkpoint")
        line = self._source.at(place)
        if sealed == place and not line.startswith(SEALED):
            raise LedgerError(f"line {place} is no checkpoint")
        self._walk(Walk.at(place, line), tree_of(self._connection, place), sealed)

    def _begin_anew(self) -> None:
        """From the first line that is there."""
        removed = self._source.removed()
        walk, tree = Walk(), Frontier()
        if removed is not None:
            walk = Walk(removed.count, removed.last)
            tree = Frontier(removed.count, removed.nodes)
        self._walk(walk, tree, -1)

    def _walk(self, walk: Walk, tree: Frontier, sealed: int) -> None:
        nodes: list[Node] = []
        first = self._first
        for one in self._source.after(walk.seq):
            line, seq = one.line, one.place
            if seq != walk.seq:
                raise LedgerError(f"it is damaged: line {walk.seq} is not in it")
            walk.take(line)
            if line.startswith(SEALED):
                # Where line 0 was removed the first checkpoint says which ledger this is.
                first = first or origin_in(line).removeprefix(ORIGIN)
                check_sealed(line, origin_of(first), seq, tree.root())
                sealed = seq
            if walk.seq % SEGMENT:
                tree.add(leaf_hash(line))
            else:
                nodes += grown(tree, leaf_hash(line))
        if walk.seq != self._end:
            raise LedgerError("it is damaged at its end")
        first = first or str(self._marks.get("first", ""))
        self.head = Head(walk.seq, walk.prev, first, tree, walk.seq - 1 - sealed)
        self.nodes = [one for one in nodes if not self._is_kept(one)]

    def _is_kept(self, node: Node) -> bool:
        level, index, found = node
        row = self._connection.execute(_NODE, (level, index)).fetchone()
        return row is not None and row[0] == found
