"""Names what is wrong where a line is not the one that has to come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .errors import EnvelopeError
from .pieces import Entry
from .seal import read_sealed
from .verdict import Damage
from .vouching import signers_of

_WHICH = "nothing behind it tells which of the two"


@dataclass(slots=True)
class Doubt:
    """A line with another number or another ``prev`` than those that have to come.

    ``seq`` and ``prev`` are these, ``first`` is the number of the first line of the ledger.
    """

    entry: Entry
    seq: int
    prev: bytes
    first: int
    position: int

    def at_once(self) -> Damage | None:
        """What is wrong, if that line alone tells."""
        seq, found = self.seq, self.entry.seq
        if found == seq or (found > seq and self.entry.prev != self.prev):
            return None
        if self.entry.prev == self.prev:
            message = f"line {seq} was altered: it says that its number is {found}"
            return self._damage("altered", seq, message, "or a line was put in before it")
        if found < self.first:
            message = f"line {found} stands where line {seq} belongs, but the ledger begins later"
        else:
            message = (
                f"line {found} stands again, or another with its number, where line {seq} belongs"
            )
        return self._damage("duplicate", found, message, "a line was copied, or put in")

    def hear(self, piece: Entry) -> Damage | None:
        """What is wrong, now that a later line is known; None where more are needed."""
        if self.entry.seq == self.seq:
            return self._of_prev(piece)
        if piece.seq != self.seq:
            return None
        message = (
            f"line {self.entry.seq} stands where line {self.seq} belongs, which comes behind it"
        )
        return self._damage("reordered", self.seq, message, "lines were moved")

    def end(self) -> Damage:
        """What is wrong, now that nothing comes any more."""
        if self.entry.seq == self.seq:
            return self._of_prev(None)
        last = self.entry.seq - 1
        which = f"line {last} is" if last == self.seq else f"lines {self.seq} to {last} are"
        hint = f"line {self.entry.seq} comes next; the missing ones may be in a copy"
        if self.seq == 0:
            hint = "a beginning that was removed in order is named by a later checkpoint line"
        return self._damage("missing", self.seq, f"{which} missing", hint)

    def _of_prev(self, after: Entry | None) -> Damage:
        seq = self.seq
        if after is not None and after.seq == seq and after.prev == self.prev:
            message = f"a line was put in before line {seq}: no other line knows of it"
            return self._damage("inserted", seq, message, "the right one stands behind it")
        is_as_written = self._is_as_written(after)
        if seq == self.first or is_as_written is False:
            message = f"line {seq} was altered: neither the line before nor the one behind fits it"
            if seq == self.first:
                message = f"line {seq}, the first one, does not begin as it has to"
            return self._damage("altered", seq, message)
        if is_as_written:
            message = f"line {seq - 1} was altered: it is not the line that line {seq} follows"
            return self._damage("altered", seq - 1, message)
        message = f"line {seq - 1} or line {seq} was altered: they do not fit"
        return self._damage("altered", seq - 1, message, _WHICH)

    def _is_as_written(self, after: Entry | None) -> bool | None:
        """Whether the line in doubt itself is; None if that cannot be known."""
        entry = self.entry
        if entry.event == b"checkpoint":
            return _is_sealed(entry)
        if after is None:
            return None
        if after.seq == entry.seq:  # It takes the place of this one, which was never finished.
            return after.prev == entry.prev
        return after.seq == entry.seq + 1 and after.prev == entry.digest

    def _damage(
        self,
        kind: Literal["altered", "missing", "reordered", "duplicate", "inserted"],
        seq: int,
        message: str,
        hint: str = "",
    ) -> Damage:
        return Damage(kind, seq, message, hint, self.position, self.entry.seq)


def _is_sealed(entry: Entry) -> bool:
    try:
        sealed = read_sealed(entry.text, entry.value["warnings"])
        return bool(signers_of(sealed.note, sealed.keys))
    except EnvelopeError:
        return False
