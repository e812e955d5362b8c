"""Who vouches for the lines of a ledger: trusted keys, and those that they hand on to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from .errors import EnvelopeError
from .notes import Note, VerifierKey
from .seal import Sealed
from .signing import is_signed_by

#: The most keys that are remembered of a ledger.
_MOST_KEYS: Final = 100


@dataclass(frozen=True, slots=True)
class Judged:
    """A checkpoint line whose signatures were checked, and those whose they are."""

    sealed: Sealed
    signed_by: tuple[VerifierKey, ...]
    is_vouched: bool


def signers_of(note: Note, keys: Iterable[VerifierKey]) -> tuple[VerifierKey, ...]:
    """Those of the keys that signed a note. EnvelopeError if a signature of theirs is wrong."""
    return tuple(key for key in keys if is_signed_by(note, key))


class Vouching:
    """The keys that are trusted, and how far they vouch.

    With none to begin with each checkpoint line is checked by the keys that it names itself.
    """

    def __init__(self, trusted: Iterable[VerifierKey]) -> None:
        self._trusted = dict.fromkeys(trusted)
        self.is_asked: Final = bool(self._trusted)
        self.seen: dict[VerifierKey, None] = {}
        #: Keys that an earlier one handed on to, each with the line that did.
        self.rotations: list[tuple[int, VerifierKey]] = []
        self.checkpoints = 0
        #: The number of the last checkpoint line, whoever signed it.
        self.last = 0
        #: How many lines are vouched for.
        self.vouched = 0
        #: The first checkpoint line behind those: signed by nobody whom we know.
        self.stranger: int | None = None

    def judge(self, sealed: Sealed) -> Judged:
        """Check the signatures by keys that are trusted, and by those that the line names.

        EnvelopeError if one of them is wrong, or if a key that the line names has not signed, or
        if it names none and none is trusted.
        """
        keys = dict.fromkeys((*self._trusted, *sealed.keys))
        signed_by = signers_of(sealed.note, keys)
        if not all(key in signed_by for key in sealed.keys):
            raise EnvelopeError("a key that the line names has not signed it")
        if not self.is_asked and not signed_by:
            raise EnvelopeError("it names no key that signed it")
        known = self._trusted if self.is_asked else keys
        return Judged(sealed, signed_by, any(key in known for key in signed_by))

    def is_signed(self, note: Note) -> bool:
        """Whether a trusted key signed a note. EnvelopeError if such a signature is wrong."""
        return bool(signers_of(note, self._trusted))

    def take(self, seq: int, judged: Judged) -> None:
        """Go on behind a checkpoint line."""
        self.checkpoints += 1
        self.last = seq
        for key in judged.sealed.keys:
            if len(self.seen) < _MOST_KEYS:
                self.seen.setdefault(key)
        if not judged.is_vouched:
            self.stranger = seq if self.stranger is None else self.stranger
            return
        self.vouched = seq + 1
        self.stranger = None
        for key in judged.signed_by if self.is_asked else ():
            if key not in self._trusted and len(self._trusted) < _MOST_KEYS:
                self._trusted[key] = None
                self.rotations.append((seq, key))
