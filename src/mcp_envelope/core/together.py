"""Verifies several ledgers, and finds copies among them that went different ways."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from .notes import Checkpoint, Note, VerifierKey
from .pieces import Entry, read_entry
from .seal import Removed
from .verdict import Verdict
from .verification import Verifier


@dataclass(frozen=True, slots=True)
class Reading:
    """A ledger to verify. ``pieces`` begins to read it anew each time it is called."""

    name: str
    pieces: Callable[[], Iterable[bytes]]
    removed: Removed | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What several ledgers say of one another. ``holds`` tells whether that is in order.

    ``same`` and ``older`` (the first is an older copy of the second), ``fork`` (they part at line
    ``seq``), ``apart`` (no line is in both), ``unmatched`` (none is that of a kept checkpoint).
    """

    kind: Literal["same", "older", "fork", "apart", "unmatched"]
    names: tuple[str, ...]
    seq: int
    message: str

    @property
    def holds(self) -> bool:
        """Whether it is no damage."""
        return self.kind not in ("fork", "unmatched")


@dataclass(frozen=True, slots=True)
class Together:
    """A verdict for each ledger, in their order, and what was found between them."""

    verdicts: tuple[Verdict, ...]
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong with any."""
        return all(one.holds for one in self.verdicts) and all(one.holds for one in self.findings)

    @property
    def holds_strictly(self) -> bool:
        """The same, and there is nothing that somebody should look at either."""
        return self.holds and all(one.holds_strictly for one in self.verdicts)


def verify_together(
    readings: Sequence[Reading], trusted: Sequence[VerifierKey] = (), known: Sequence[Note] = ()
) -> Together:
    """Verify each ledger, with those kept checkpoints that are its own; then compare them.

    EnvelopeError if one of ``known`` is no checkpoint.
    """
    verdicts = tuple(verdict_of(one, trusted, known) for one in readings)
    return Together(verdicts, compared(readings, verdicts, known))


def compared(
    readings: Sequence[Reading], verdicts: Sequence[Verdict], known: Sequence[Note] = ()
) -> tuple[Finding, ...]:
    """What is found between ledgers that were verified, each as one of several."""
    findings = [*_unmatched(verdicts, known)]
    groups: dict[str, list[tuple[Reading, Verdict]]] = {}
    for reading, verdict in zip(readings, verdicts, strict=True):
        if verdict.holds and verdict.origin is not None:
            groups.setdefault(verdict.origin, []).append((reading, verdict))
    for group in groups.values():
        group.sort(key=lambda one: one[1].next)
        findings.extend(_compared(*one, *other) for one, other in pairwise(group))
    return tuple(findings)


def verdict_of(
    reading: Reading, trusted: Sequence[VerifierKey] = (), known: Sequence[Note] = ()
) -> Verdict:
    """The verdict on one of several ledgers: checkpoints of others say nothing of it."""
    verifier = Verifier(trusted, known, reading.removed, is_one_of_several=True)
    for piece in reading.pieces():
        if not verifier.feed(piece):
            break
    return verifier.finish()


def _unmatched(verdicts: Sequence[Verdict], known: Sequence[Note]) -> Iterator[Finding]:
    origins = {one.origin for one in verdicts}
    for note in known:
        kept = Checkpoint.parse(note.text)
        if kept.origin not in origins:
            message = (
                f"none of these ledgers is the one whose checkpoint of {kept.size} lines you"
                f" kept, {kept.origin}"
            )
            yield Finding("unmatched", (), kept.size, message)


def _compared(a: Reading, old: Verdict, b: Reading, new: Verdict) -> Finding:
    names, size = (a.name, b.name), old.next
    if size <= new.first and size < new.next:
        message = f"{b.name} goes on where {a.name} ends: no line is in both, so nothing shows it"
        return Finding("apart", names, size, message)
    if _root_at(b, new, size) != old.root:
        seq = _parting(a, b, max(old.first, new.first))
        message = (
            f"{a.name} and {b.name} are copies of one ledger that went different ways at line"
            f" {seq}: only one of them can be right"
        )
        return Finding("fork", names, seq, message)
    if size == new.next:
        return Finding("same", names, size, f"{a.name} and {b.name} are the same ledger")
    message = f"{a.name} is an older copy of {b.name}, with its first {size} lines"
    return Finding("older", names, size, message)


def _root_at(reading: Reading, verdict: Verdict, size: int) -> bytes | None:
    if size == verdict.next:
        return verdict.root
    verifier = Verifier((), (), reading.removed, (size,))
    for piece in reading.pieces():
        if not verifier.feed(piece) or verifier.next > size + 1:
            break
    return verifier.finish().roots.get(size)


def _parting(a: Reading, b: Reading, first: int) -> int:
    """The number of the first line that is not the same in two ledgers."""
    seq = first
    for one, other in zip(_entries(a, first), _entries(b, first), strict=False):
        if one.text != other.text:
            return min(one.seq, other.seq)
        seq = one.seq + 1
    return seq


def _entries(reading: Reading, first: int) -> Iterator[Entry]:
    for piece in reading.pieces():
        entry = read_entry(piece)
        if entry is not None and entry.seq >= first:
            yield entry
