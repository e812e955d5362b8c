"""What is to be said of lines that go: computed from themselves, and only if they are whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from mcp_envelope.core.merkle import Frontier, leaf_hash, node_hash, range_hash, subtrees
from mcp_envelope.core.ports import LedgerError
from mcp_envelope.core.seal import Removed

from .draft import SEGMENT, grown
from .links import Walk
from .sqlite_source import SqliteSource

_HINT = "keep it; mcp-envelope ledger verify says more"


class Leaving:
    """The lines before ``end`` that are still there. ``tree`` gives that of the whole chain."""

    def __init__(self, source: SqliteSource, end: int, tree: Callable[[], Frontier]) -> None:
        self._source = source
        self._end = end
        self._whole = tree
        removed = source.removed()
        self._walk = Walk(removed.count, removed.last) if removed else Walk()
        self._tree = Frontier(removed.count, removed.nodes) if removed else Frontier()
        self._known = dict(zip(subtrees(self._tree.size), self._tree.nodes, strict=True))

    async def read(self, archive: Callable[[bytes], object] | None) -> Removed:
        """Read them once, handing each to ``archive``.

        Nothing that is kept beside the lines is believed. LedgerError where they are not the
        lines that were written: what is removed nobody can look at any more.
        """
        try:
            await self._read(archive)
            if not (self._is_whole() or await self._is_whole_by_lines()):
                raise LedgerError(f"one of its lines before line {self._whole().size} was altered")
        except LedgerError as error:
            said = error.message.removeprefix(f"{self._source.path}").removeprefix(":").lstrip()
            message = f"{self._source.path}: nothing is removed, as {said}"
            raise LedgerError(message, hint=_HINT) from None
        return Removed(self._end, self._walk.prev, tuple(self._tree.nodes))

    async def _read(self, archive: Callable[[bytes], object] | None) -> None:
        walk, tree = self._walk, self._tree
        for one in self._source.after(walk.seq):
            if walk.seq == self._end:
                break
            _step(walk, one.place, one.line)
            leaf = leaf_hash(one.line)
            if archive is not None:
                archive(one.line + b"\n")
            if walk.seq % SEGMENT:
                tree.add(leaf)
            else:
                self._known |= {(level, at): found for level, at, found in grown(tree, leaf)}
                await asyncio.sleep(0)
        if walk.seq != self._end:
            raise LedgerError(f"it is damaged: line {walk.seq} is not in it")

    def _is_whole(self) -> bool:
        """Whether they and what is kept of the others make the tree of the chain."""
        whole = self._whole()
        try:
            return range_hash(0, whole.size, self._subtree) == whole.root()
        except LedgerError:
            return False

    async def _is_whole_by_lines(self) -> bool:
        """The same, where the hashes that are kept of the others may be wrong."""
        whole = self._whole().copy()
        walk, tree = replace(self._walk), self._tree.copy()
        for one in self._source.after(self._end):
            if walk.seq == whole.size:
                break
            _step(walk, one.place, one.line)
            tree.add(leaf_hash(one.line))
            if walk.seq % SEGMENT == 0:
                await asyncio.sleep(0)
        return tree.size == whole.size and tree.root() == whole.root()

    def _subtree(self, level: int, index: int) -> bytes:
        known = self._known.get((level, index))
        if known is not None:
            return known
        if index << level >= self._end:
            return self._source.subtree(level, index)
        left, right = (self._subtree(level - 1, 2 * index + side) for side in (0, 1))
        return node_hash(left, right)


def _step(walk: Walk, seq: int, line: bytes) -> None:
    if seq != walk.seq:
        raise LedgerError(f"it is damaged: line {walk.seq} is not in it")
    walk.take(line)
