"""Lines in the making: where a chain goes on, and what it would be with some lines more.

Nothing here is written yet, and what could not be written has not been: a chain takes over the
head of a draft only once its lines are where they belong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import orjson

from mcp_envelope.core.entry import GENESIS, Facts, Receipt, line
from mcp_envelope.core.merkle import Frontier
from mcp_envelope.core.ports import Sealing
from mcp_envelope.core.seal import origin_of, sealed_line

if TYPE_CHECKING:
    from .chain import Wait

#: How a checkpoint line begins.
SEALED: Final = b'{"v":1,"event":"checkpoint",'
#: Complete subtrees of every eighth level are kept, so that proofs need few lines and hashes.
STEP: Final = 8
#: The highest level of which they are kept.
TOP: Final = 24
#: Lines below a subtree of the lowest level that is kept; segments that are removed end there.
SEGMENT: Final = 1 << STEP


@dataclass(slots=True)
class Head:
    """Where a chain goes on.

    ``first`` is the digest of line 0, ``tree`` None where nobody needs it, ``since`` the number
    of lines since the last checkpoint.
    """

    seq: int = 0
    prev: str = GENESIS
    first: str = ""
    tree: Frontier | None = field(default_factory=Frontier)
    since: int = 0


@dataclass(slots=True)
class Batch:
    """Lines that are written at once, the first with the number ``seq``, and what goes with them.

    ``nodes`` are complete subtrees (level, index, hash), ``bodies`` have the digest, the number
    of the line that they belong to and the bytes, ``marks`` are small facts about the ledger.
    """

    seq: int
    lines: list[bytes] = field(default_factory=list)
    nodes: list[tuple[int, int, bytes]] = field(default_factory=list)
    bodies: list[tuple[str, int, bytes]] = field(default_factory=list)
    marks: dict[str, str] = field(default_factory=dict)


#: Who waits for a line, its receipt, and the note in it if it is a checkpoint.
End = tuple["Wait | None", Receipt, bytes | None]


class Draft:
    """Lines that are to go on after ``head``, sealed as ``sealing`` says.

    ``remarks`` stand in the first of them.
    """

    __slots__ = (
        *("_every", "_first", "_prev", "_remarks", "_sealing", "_seq", "_since", "_tree"),
        *("batch", "ends"),
    )

    def __init__(self, head: Head, sealing: Sealing | None, remarks: Sequence[str] = ()) -> None:
        self.batch = Batch(head.seq)
        self.ends: list[End] = []
        self._seq = head.seq
        self._prev = head.prev
        self._first = head.first
        self._tree = head.tree.copy() if head.tree is not None else None
        self._since = head.since
        self._remarks = tuple(remarks)
        self._sealing = sealing if sealing is not None and sealing.signers else None
        every = self._sealing.every if self._sealing is not None else 0
        self._every = every if every > 0 else 1 << 63

    @property
    def head(self) -> Head:
        """Where the chain goes on behind these lines."""
        return Head(self._seq, self._prev, self._first, self._tree, self._since)

    def add(self, facts: Facts, bodies: Sequence[bytes], waiting: Wait) -> None:
        """A line. TypeError, and nothing happened, if these facts cannot be said."""
        if self._remarks:
            facts = facts._replace(warnings=(*self._remarks, *facts.warnings))
        text = line(facts, self._seq, self._prev)
        self._remarks = ()
        for body in bodies:
            self.batch.bodies.append((sha256(body).hexdigest(), self._seq, body))
        self._since += 1
        self._put(text, waiting, None)

    def is_due(self) -> bool:
        """Whether there are as many lines without a checkpoint as may be."""
        return self._since >= self._every

    def wants_seal(self) -> bool:
        """Whether a checkpoint would say anything new, and can be signed."""
        return self._sealing is not None and self._since > 0

    def seal(
        self,
        waiting: Wait | None,
        remarks: Sequence[str] = (),
        marks: dict[str, str] | None = None,
    ) -> None:
        """A checkpoint line; ``marks`` are written with it.

        Whatever clock and signers raise; nothing happened then.
        """
        sealing, marked = self._sealing, self.batch.marks
        if sealing is None or self._tree is None:
            raise ValueError("nobody signs here")
        text = sealed_line(
            self._seq,
            self._prev,
            time=sealing.now(),
            instance=sealing.instance,
            origin=origin_of(self._first),
            root=self._tree.root(),
            signers=sealing.signers,
            remarks=(*self._remarks, *remarks),
        )
        self._remarks = ()
        marked["sealed"] = str(self._seq)
        if marks:
            marked.update(marks)
            marked["removal"] = str(self._seq)
        self._since = 0
        note: str = orjson.loads(text)["warnings"][-1]
        self._put(text, waiting, note.encode())

    def cut(self, head: Head, count: int) -> Draft:
        """What it would be with its first lines only; ``head`` is what it went on after."""
        short = Draft(head, None)
        for text, (waiting, _, note) in zip(self.batch.lines[:count], self.ends, strict=False):
            short._since = 0 if note is not None else short._since + 1
            short._put(text, waiting, note)
        return short

    def _put(self, text: bytes, waiting: Wait | None, note: bytes | None) -> None:
        seq = self._seq
        digest = sha256(text).hexdigest()
        self.batch.lines.append(text)
        self.ends.append((waiting, Receipt(seq, digest), note))
        if self._tree is not None:
            leaf = sha256(b"\x00" + text).digest()
            if (seq + 1) % SEGMENT:
                self._tree.add(leaf)
            else:
                self.batch.nodes += grown(self._tree, leaf)
        if not seq:
            self._first = self.batch.marks["first"] = digest
        self._seq = seq + 1
        self._prev = digest


def grown(tree: Frontier, leaf: bytes) -> list[tuple[int, int, bytes]]:
    """Add a leaf; the subtrees (level, index, hash) that are complete by it and are kept."""
    size = tree.size
    complete = ~size & (size + 1)  # the lowest bit that is zero: how far up it goes
    levels = [at for at in range(STEP, TOP + 1, STEP) if complete >> at]
    found = []
    begun = tree.nodes[-(complete.bit_length() - 1) :] if complete > 1 else []
    tree.add(leaf)
    one = leaf
    for level, left in enumerate(reversed(begun), 1):
        one = sha256(b"\x01" + left + one).digest()
        if level in levels:
            found.append((level, size >> level, one))
    return found
