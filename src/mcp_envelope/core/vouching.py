"""Who vouches for the lines of a ledger: trusted keys, and those that they hand on to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from .errors import EnvelopeError
from .notes import Note, VerifierKey
from .seal import Sealed
from .signing import is_signed_by

#: The most keys of a ledger that are told of. So many as are handed on to are trusted.
_MOST_TOLD: Final = 100


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

    Trust goes forward only: where a trusted key has signed, the first key that the line names is
    trusted from there on.
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

        EnvelopeError if one of them is wrong, or if the signatures are not those of the keys that
        the line names, one each and in their order: else the last line of a ledger, which nothing
        behind it holds, could be given others.
        """
        made_by = [(one.name, one.key_id) for one in sealed.note.signatures]
        if made_by != [(key.name, key.id) for key in sealed.keys]:
            raise EnvelopeError("its signatures are not those of the keys that it names")
        keys = dict.fromkeys((*self._trusted, *sealed.keys))
        signed_by = signers_of(sealed.note, keys)
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
            if len(self.seen) < _MOST_TOLD:
                self.seen.setdefault(key)
        if not judged.is_vouched:
            self.stranger = seq if self.stranger is None else self.stranger
            return
        self.vouched = seq + 1
        self.stranger = None
        # The first is the current key, others are those that it replaced: whoever trusts a new
        # key has no reason to trust an old one, which may be old because it was stolen.
        for key in judged.sealed.keys[:1] if self.is_asked else ():
            if key not in self._trusted:
                self._trusted[key] = None
                self.rotations.append((seq, key))
