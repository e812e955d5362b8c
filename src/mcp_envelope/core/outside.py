"""Checkpoints that were kept outside of a ledger: what a rollback of it cannot take back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .errors import EnvelopeError
from .notes import Checkpoint, Note
from .verdict import Damage
from .vouching import Vouching

_OWN_LINE: Final = re.compile(r"line sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Kept:
    """One of them. ``has_line`` tells whether line ``size`` of the ledger is to hold it."""

    note: Note
    checkpoint: Checkpoint
    has_line: bool


class Outside:
    """Compares a ledger with them. EnvelopeError if a note is no checkpoint.

    With ``is_shared`` some may be of other ledgers: then they are left out as soon as it is known
    what this one is called, and nothing is compared before.
    """

    def __init__(self, notes: Sequence[Note], vouching: Vouching, *, is_shared: bool) -> None:
        self._vouching = vouching
        self._is_shared = is_shared
        self._early: dict[int, bytes] = {}
        kept = []
        for note in notes:
            found = Checkpoint.parse(note.text)
            own = any(map(_OWN_LINE.fullmatch, found.extensions))
            kept.append(Kept(note, found, own))
        self._kept = sorted(kept, key=lambda one: one.checkpoint.size)
        self._roots = {one.checkpoint.size for one in kept}
        self._lines = {one.checkpoint.size for one in kept if one.has_line}

    @property
    def sizes(self) -> frozenset[int]:
        """Those at which there is something to compare."""
        return frozenset(self._roots | self._lines)

    def of_origin(self, origin: str) -> Damage | None:
        """What is wrong with a ledger that is called so."""
        if self._is_shared:
            self._is_shared = False
            self._kept = [one for one in self._kept if one.checkpoint.origin == origin]
            found = (self.of_root(*early) for early in self._early.items())
            return next((one for one in found if one is not None), None)
        for one in self._kept:
            if one.checkpoint.origin != origin:
                message = (
                    f"the checkpoint of {one.checkpoint.size} lines that you kept is of"
                    f" {one.checkpoint.origin}, and this ledger is {origin}"
                )
                hint = (
                    "if it should be the same one, it was replaced from its first line on; if not,"
                    " leave that checkpoint out"
                )
                return self._against(one, Damage("fork", 0, message, hint))
        return None

    def of_root(self, size: int, root: bytes) -> Damage | None:
        """What is wrong with a ledger whose first ``size`` lines have this root."""
        if size not in self._roots:
            return None
        if self._is_shared:
            self._early[size] = root
            return None
        for one in self._kept:
            if one.checkpoint.size == size and one.checkpoint.root != root:
                message = (
                    f"the lines before line {size} are not those that the checkpoint of"
                    f" {size} lines that you kept covers"
                )
                hint = "lines were rewritten after it was made; compare with a copy of that time"
                return self._against(one, Damage("fork", size, message, hint))
        return None

    def of_line(self, seq: int, text: str | None) -> Damage | None:
        """What is wrong with line ``seq``; ``text`` is that of the checkpoint in it, if any."""
        if seq not in self._lines or self._is_shared:
            return None
        for one in self._kept:
            if one.has_line and one.checkpoint.size == seq and one.note.text != text:
                message = f"line {seq} is not the checkpoint line that you kept the checkpoint of"
                hint = "it was replaced; compare with a copy of that time"
                return self._against(one, Damage("fork", seq, message, hint))
        return None

    def of_end(self, count: int) -> Damage | None:
        """What is wrong with a ledger that has ``count`` lines and no more."""
        for one in () if self._is_shared else self._kept:
            size = one.checkpoint.size
            if size > count or (size == count and one.has_line):
                message = (
                    f"the ledger ends before line {count}, and the checkpoint that you kept"
                    f" covers lines 0 to {size - (not one.has_line)}"
                )
                hint = "lines were cut off its end, or it is an older copy"
                return self._against(one, Damage("truncated", count, message, hint))
        return None

    def before(self, first: int) -> list[int]:
        """The sizes of those that say nothing of the lines from number ``first`` on."""
        kept = [] if self._is_shared else self._kept
        return [one.checkpoint.size for one in kept if one.checkpoint.size < first]

    def untrusted(self) -> Damage | None:
        """What is wrong with one that nobody signed who is trusted, if there are such keys."""
        for one in () if self._is_shared else self._kept:
            found = self._of_note(one)
            if found is not None:
                return found
        return None

    def _against(self, one: Kept, damage: Damage) -> Damage:
        # What anybody could have written says nothing against the ledger.
        return self._of_note(one) or damage

    def _of_note(self, one: Kept) -> Damage | None:
        if not self._vouching.is_asked:
            return None
        try:
            if self._vouching.is_signed(one.note):
                return None
            why = "is signed by no key that you trust"
        except EnvelopeError as error:
            why = f"is of no use: {error.message}"
        size = one.checkpoint.size
        return Damage("signature", size, f"the checkpoint of {size} lines that you kept {why}")
