"""Verifies several ledgers, and finds copies among them that went different ways."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate
from typing import Literal

from .merkle import EMPTY, Frontier
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

    ``same`` and ``older`` (the first has the first ``seq`` lines of the second, or just those
    that were removed from it), ``fork`` (they part at line ``seq``, or before it where that is
    the first one that is in both), ``apart`` (the second begins behind the end of the first, and
    what it keeps of the lines between shows no more than that the first ``seq`` lines are the
    same), ``unmatched`` (none is that of a kept checkpoint).
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
        findings.extend(_of_group(group))
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


def _of_group(group: Sequence[tuple[Reading, Verdict]]) -> Iterator[Finding]:
    """What is found between ledgers of one name, from the shortest to the longest.

    Each is compared with the next longer one that tells all about it: what that one has in common
    with still longer ones, both have.
    """
    for at, one in enumerate(group[:-1]):
        found = [_compared(*one, *group[at + 1])]
        for other in group[at + 2 :] if found[0].kind == "apart" else ():
            found.append(_compared(*one, *other))
            if found[-1].kind != "apart":
                break
        yield found[0] if found[-1].kind == "apart" else found[-1]


def _compared(a: Reading, old: Verdict, b: Reading, new: Verdict) -> Finding:
    names = (a.name, b.name)
    size, root = _common(b, new, old.next)
    is_whole = size == old.next
    if size >= old.first and (old.root if is_whole else _root_at(a, old, size)) != root:
        return _fork(a, old, b, new)
    if not is_whole:
        message = f"{b.name} begins with line {new.first}, and {a.name} ends before that: "
        if size and size >= old.first:
            message += f"of their lines only the first {size} are shown to be the same"
        else:
            message += "nothing shows that they belong together"
        return Finding("apart", names, size, message)
    if size == new.next:
        return Finding("same", names, size, f"{a.name} and {b.name} are the same ledger")
    if size == new.first:
        if b.removed is not None and _last_of(a, size) not in (b.removed.last, None):
            return _fork(a, old, b, new)
        message = f"{b.name} goes on where {a.name} ends, and keeps the root of just these lines"
        return Finding("older", names, size, message)
    message = f"{a.name} is an older copy of {b.name}, with its first {size} lines"
    return Finding("older", names, size, message)


def _fork(a: Reading, old: Verdict, b: Reading, new: Verdict) -> Finding:
    first = max(old.first, new.first)
    seq = _parting(a, b, first)
    where = f"at line {seq}" + (" or before it" if seq == first and first else "")
    message = (
        f"{a.name} and {b.name} are copies of one ledger that went different ways {where}:"
        " only one of them can be right"
    )
    return Finding("fork", (a.name, b.name), seq, message)


def _common(b: Reading, new: Verdict, most: int) -> tuple[int, bytes | None]:
    """The largest size up to ``most`` at which a ledger tells its root; and that root.

    Of lines that were removed it tells those at the ends of the subtrees that are kept.
    """
    if most >= new.first or b.removed is None:
        return most, _root_at(b, new, most)
    count, size, nodes = b.removed.count, 0, 0
    bits = (1 << bit for bit in range(count.bit_length() - 1, -1, -1) if count >> bit & 1)
    for taken, end in enumerate(accumulate(bits), 1):
        if end <= most:
            size, nodes = end, taken
    return size, Frontier(size, b.removed.nodes[:nodes]).root() if size else EMPTY


def _last_of(reading: Reading, size: int) -> str | None:
    """The digest of the last of the first lines, if it is there."""
    for entry in _entries(reading, size - 1):
        return sha256(entry.text).hexdigest()
    return None


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
