"""A ledger of JSON Lines that is read, also while a gateway writes it."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

from mcp_envelope.core.entry import MOST
from mcp_envelope.core.merkle import Frontier, complete_root, leaf_hash, node_hash, subtrees
from mcp_envelope.core.ports import LedgerError, Placed
from mcp_envelope.core.seal import Removed

from .draft import SEGMENT, STEP, grown
from .jsonl_bodies import body_of
from .jsonl_scan import PIECE, is_ledger, pieces_of, placed
from .links import seq_of
from .remarks import newest_removed

_BUFFER: Final = 1 << 20


class JsonLinesSource:
    """The ledger at ``path``, or what was exported of one. Places are offsets in bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                raise LedgerError(f"{path} is not a regular file", hint="name another one")
            self._open().close()
        except OSError as error:
            if isinstance(error, LedgerError):
                raise
            raise LedgerError(f"{path} cannot be opened: {error.strerror}") from None
        self._tree = _Tree(self)
        self._is_ledger = False

    @property
    def url(self) -> str:
        """``jsonl:PATH``."""
        return f"jsonl:{self.path}"

    @property
    def size(self) -> int:
        """The bytes of the file."""
        return self.path.stat().st_size

    def physical(self) -> Iterator[bytes]:
        """All of it; what is far longer than a line in several pieces."""
        with self._open() as file:
            yield from pieces_of(file)

    def after(self, place: int) -> Iterator[Placed]:
        """The lines from an offset on, where a line has to begin.

        LedgerError, as of :meth:`bounds`, where the file is that of something else.
        """
        if not self._has_lines():
            raise LedgerError(
                f"{self.path}: it is not a ledger", hint="name another file", reached=0
            )
        with self._open() as file:
            file.seek(place)
            yield from placed(file)

    def at(self, place: int) -> bytes:
        """The line that begins there."""
        with self._open(buffering=1 << 13) as file:
            file.seek(place)
            piece = file.readline(MOST + 2)
        if seq_of(piece) is None or not piece.endswith(b"\n"):
            raise LedgerError(f"{self.path} has no line at {place}")
        return piece[:-1]

    def place_of(self, seq: int) -> int | None:
        """By halving; where the file is not in order, by reading all of it."""
        for one in self.after(self._near(seq)):
            found = seq_of(one.line)
            if found == seq:
                return one.place
            if found is None or found > seq:
                break
        return next((one.place for one in self.after(0) if seq_of(one.line) == seq), None)

    def bounds(self) -> tuple[int, int]:
        """The number of the first line, and one more than that of the last."""
        first = next((seq_of(one.line) for one in self.after(0)), None)
        if first is None:
            return 0, 0
        last = first
        for one in self.after(self._near(1 << 63)):
            last = seq_of(one.line) or last
        return first, last + 1

    def subtree(self, level: int, index: int) -> bytes:
        """From its lines; the first time all of it is read."""
        return self._tree.hash(level, index)

    def removed(self) -> Removed | None:
        """As the newest checkpoint says that says so, where it does not begin at 0."""
        first, _ = self.bounds() if self._has_lines() else (0, 0)
        return newest_removed(self.after(0), first) if first else None

    def body(self, digest: str) -> bytes | None:
        """What is kept beside it."""
        return body_of(self.path, digest)

    def close(self) -> None:
        """Nothing is held open."""

    def _open(self, buffering: int = _BUFFER) -> BinaryIO:
        return self.path.open("rb", buffering=buffering)

    def _has_lines(self) -> bool:
        if not self._is_ledger:
            with self._open(buffering=0) as file:
                self._is_ledger = is_ledger(file)
        return self._is_ledger

    def _near(self, seq: int) -> int:
        """Where a line begins that is that one, or not far before it, if the file is in order."""
        with self._open(buffering=1 << 13) as file:
            low, high = 0, file.seek(0, 2)
            while high - low > 4 * MOST:
                middle = (low + high) // 2
                place, found = _next_line(file, middle, high)
                if found is None or found >= seq:
                    high = middle
                else:
                    low = place
        return low


def _next_line(file: BinaryIO, begin: int, end: int) -> tuple[int, int | None]:
    """The first line that begins behind an offset: where, and its number."""
    file.seek(begin)
    _skip(file)
    while (place := file.tell()) < end:
        found = seq_of(_skip(file))
        if found is not None:
            return place, found
    return end, None


def _skip(file: BinaryIO) -> bytes:
    """Read to behind the next newline; the first piece of that."""
    first = piece = file.readline(PIECE)
    while len(piece) == PIECE and not piece.endswith(b"\n"):
        piece = file.readline(PIECE)
    return first


class _Tree:
    """The hashes over each 256 lines of a file, and where these begin."""

    def __init__(self, source: JsonLinesSource) -> None:
        self._source = source
        self._begins: dict[int, int] = {}
        self._hashes: dict[tuple[int, int], bytes] = {}
        self._frontier: Frontier | None = None
        self._place = 0

    def hash(self, level: int, index: int) -> bytes:
        """The hash of a complete subtree."""
        end = (index + 1) << level
        if self._frontier is None or self._frontier.size < end:
            self._read_on()
        if self._frontier is None or self._frontier.size < end:
            raise LedgerError(f"{self._source.path} has no {end} lines")
        return self._over(level, index)

    def _over(self, level: int, index: int) -> bytes:
        known = self._hashes.get((level, index))
        if known is not None:
            return known
        if level > STEP:
            return node_hash(self._over(level - 1, 2 * index), self._over(level - 1, 2 * index + 1))
        return self._over_lines(level, index)

    def _over_lines(self, level: int, index: int) -> bytes:
        first = index << level
        begin = self._begins.get(first // SEGMENT)
        if level == STEP or begin is None:
            raise LedgerError(
                f"{self._source.path}: line {first} was removed, and no hash over it kept"
            )
        skip = first % SEGMENT
        lines = islice(self._source.after(begin), skip, skip + (1 << level))
        return complete_root([leaf_hash(one.line) for one in lines])

    def _read_on(self) -> None:
        tree = self._frontier if self._frontier is not None else self._begun()
        for one in self._source.after(self._place):
            if seq_of(one.line) != tree.size:
                raise LedgerError(f"{self._source.path}: line {tree.size} is not there")
            if tree.size % SEGMENT == 0:
                self._begins[tree.size // SEGMENT] = one.place
            leaf = leaf_hash(one.line)
            if (tree.size + 1) % SEGMENT:
                tree.add(leaf)
            else:
                for level, index, found in grown(tree, leaf):
                    self._hashes[level, index] = found
            self._place = one.after
        self._frontier = tree

    def _begun(self) -> Frontier:
        """The tree over what was removed."""
        first, _ = self._source.bounds()
        removed = self._source.removed()
        if removed is None:
            if first:
                raise LedgerError(f"{self._source.path}: the lines before {first} are not there")
            return Frontier()
        self._hashes.update(zip(subtrees(first), removed.nodes, strict=True))
        return Frontier(first, removed.nodes)
