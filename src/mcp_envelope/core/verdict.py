"""What was found when a ledger was verified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from .merkle import EMPTY
from .notes import VerifierKey

DamageKind = Literal[
    "unreadable",
    "altered",
    "missing",
    "reordered",
    "duplicate",
    "inserted",
    "root",
    "signature",
    "unsigned",
    "truncated",
    "fork",
    "corrupt",
]
#: ``checked`` by keys that were trusted, ``unchecked`` but by those that the lines themselves
#: name, or ``none`` there.
Signatures = Literal["checked", "unchecked", "none"]

#: The most calls and torn tails that are listed; all are counted.
MOST_LISTED: Final = 1_000


@dataclass(frozen=True, slots=True)
class Damage:
    """The first thing that is wrong with a ledger.

    ``seq`` is the number of the line that it is about, ``position`` which piece of what was read
    showed it (from 1: the line of a file), ``found`` the number that a line there gives itself.
    """

    kind: DamageKind
    seq: int
    message: str
    hint: str = ""
    position: int | None = None
    found: int | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" + (f" ({self.hint})" if self.hint else "")


@dataclass(frozen=True, slots=True)
class Dangling:
    """A call that was admitted and never settled: nobody knows whether the tool did it.

    The texts are those of the line, and may hold anything that a text can.
    """

    seq: int
    request_id: str | None
    tool: str | None
    time: str | None
    kind: str | None


@dataclass(frozen=True, slots=True)
class TornTail:
    """Bytes of a line that never was finished.

    ``seq`` is the number of the line that says so, or, where they are the end of the ledger and
    so ``is_mended`` is false, that of the line that they would have been. Where ``is_there`` is
    false that line speaks of bytes which are not before it, as in an export of lines alone.
    """

    seq: int
    size: int
    is_mended: bool = True
    is_there: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What there is to say of a ledger; of a damaged one, up to the damage.

    ``first`` is the number of its first line and ``next`` that of the line to come, ``root`` the
    root over the ``next`` lines from number 0 on, ``roots`` the roots at the sizes that were asked
    for, as far as they were reached. ``vouched`` lines from number 0 on are vouched for by a
    signature of a trusted key (of the key that they name themselves, if none is trusted).
    """

    first: int = 0
    next: int = 0
    root: bytes = EMPTY
    roots: Mapping[int, bytes] = field(default_factory=dict)
    origin: str | None = None
    checkpoints: int = 0
    vouched: int = 0
    signatures: Signatures = "none"
    keys: tuple[VerifierKey, ...] = ()
    dangling: tuple[Dangling, ...] = ()
    dangling_count: int = 0
    torn: tuple[TornTail, ...] = ()
    torn_count: int = 0
    remarks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    damage: Damage | None = None

    @property
    def lines(self) -> int:
        """How many lines there are."""
        return self.next - self.first

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.damage is None

    @property
    def holds_strictly(self) -> bool:
        """The same, and there is nothing that somebody should look at either."""
        return self.damage is None and not self.remarks
