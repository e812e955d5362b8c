"""Proofs as texts that stand alone: that a line is in a ledger, and that a ledger only grew.

The first is a ``c2sp.org/tlog-proof@v1``, the second what ``c2sp.org/tlog-witness`` calls the
body of an *add-checkpoint* request. Both end in the signed checkpoint that they lead to.
Whether that is signed by a key one trusts is for :mod:`mcp_envelope.core.signing` to say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .errors import EnvelopeError
from .merkle import leaf_hash, verify_consistency, verify_inclusion
from .notes import Checkpoint, Note, base64_of, bytes_of

#: What an inclusion proof begins with.
HEADER: Final = "c2sp.org/tlog-proof@v1"

_MOST_HASHES: Final = 63
_HASH: Final = 32
_INDEX: Final = re.compile(r"index (0|[1-9][0-9]{0,18})")
_OLD: Final = re.compile(r"old (0|[1-9][0-9]{0,18})")


@dataclass(frozen=True, slots=True)
class Inclusion:
    """That a line is number ``index`` of the ledger that the note is about.

    ``hashes`` are those beside the way up, the leaf's sibling first.
    """

    index: int
    hashes: tuple[bytes, ...]
    note: Note

    @property
    def checkpoint(self) -> Checkpoint:
        """What the note says. EnvelopeError if it is no checkpoint."""
        return Checkpoint.parse(self.note.text)

    def is_of(self, line: bytes) -> bool:
        """Whether it is a proof of this line, without its newline, and right."""
        found = self.checkpoint
        return verify_inclusion(leaf_hash(line), self.index, found.size, self.hashes, found.root)

    def __str__(self) -> str:
        return _text((HEADER, f"index {self.index}"), self.hashes, self.note)

    @classmethod
    def parse(cls, data: bytes | str) -> Inclusion:
        """Read one. EnvelopeError, saying why, for anything else. ``extra`` data is left out."""
        what = "inclusion proof"
        head, note = _parts(data, what)
        if head[:1] != [HEADER]:
            raise EnvelopeError(f"this is no {what}", hint=f"it begins with {HEADER}")
        rest = head[2:] if len(head) > 1 and head[1].startswith("extra ") else head[1:]
        found = _INDEX.fullmatch(rest[0]) if rest else None
        if found is None:
            raise EnvelopeError(f"this {what} does not say the number of its line")
        return cls(int(found[1]), _hashes(rest[1:], what), note)


@dataclass(frozen=True, slots=True)
class Consistency:
    """That the ledger of ``old`` lines is how the ledger that the note is about began."""

    old: int
    hashes: tuple[bytes, ...]
    note: Note

    @property
    def checkpoint(self) -> Checkpoint:
        """What the note says. EnvelopeError if it is no checkpoint."""
        return Checkpoint.parse(self.note.text)

    def is_from(self, old_root: bytes) -> bool:
        """Whether it leads from this root of the older tree, and is right."""
        found = self.checkpoint
        return verify_consistency(self.old, found.size, self.hashes, old_root, found.root)

    def __str__(self) -> str:
        return _text((f"old {self.old}",), self.hashes, self.note)

    @classmethod
    def parse(cls, data: bytes | str) -> Consistency:
        """Read one. EnvelopeError, saying why, for anything else."""
        what = "consistency proof"
        head, note = _parts(data, what)
        found = _OLD.fullmatch(head[0])
        if found is None:
            raise EnvelopeError(f"this is no {what}", hint="it begins with old and a number")
        return cls(int(found[1]), _hashes(head[1:], what), note)


def _text(head: Sequence[str], hashes: Sequence[bytes], note: Note) -> str:
    return "\n".join([*head, *map(base64_of, hashes), "", str(note)])


def _parts(data: bytes | str, what: str) -> tuple[list[str], Note]:
    """The lines before the first empty one, and the note behind it."""
    try:
        text = data.decode() if isinstance(data, bytes) else data
    except UnicodeError:
        raise EnvelopeError(f"this is no {what}: it is not UTF-8") from None
    head, empty, rest = text.partition("\n\n")
    if not empty:
        raise EnvelopeError(f"this is no {what}", hint="it has a checkpoint behind an empty line")
    note = Note.parse(rest)
    Checkpoint.parse(note.text)
    return head.split("\n"), note


def _hashes(lines: Sequence[str], what: str) -> tuple[bytes, ...]:
    if len(lines) > _MOST_HASHES:
        raise EnvelopeError(f"this {what} has more than {_MOST_HASHES} hashes")
    found = tuple(bytes_of(line, f"a hash of this {what}") for line in lines)
    if any(len(one) != _HASH for one in found):
        raise EnvelopeError(f"a hash of this {what} is no SHA-256")
    return found
