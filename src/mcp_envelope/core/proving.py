"""What can be proven of a ledger that is read: its checkpoints, its lines, its growth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import orjson

from .errors import EnvelopeError
from .merkle import consistency_proof, inclusion_proof, range_hash
from .notes import Checkpoint, Note
from .ports import Placed, Source
from .proofs import Consistency, Inclusion
from .seal import Sealed, origin_of, read_sealed

_CHECKPOINT: Final = b'{"v":1,"event":"checkpoint",'
_NEAR: Final = 256


class UnprovenError(EnvelopeError):
    """Something does not hold of a ledger, and so cannot be proven of it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, code="", hint=hint)

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


@dataclass(frozen=True, slots=True)
class Standing:
    """A checkpoint, and the number of the line that it stands in: that of the lines it covers."""

    seq: int
    line: bytes
    sealed: Sealed

    @property
    def note(self) -> Note:
        """The signed note."""
        return self.sealed.note

    @property
    def checkpoint(self) -> Checkpoint:
        """What the note says."""
        return self.sealed.checkpoint


def newest_checkpoint(source: Source) -> Standing | None:
    """The last checkpoint in a ledger, None if it has none.

    UnprovenError where that line is damaged. It is looked for from the end, a piece at a time.
    """
    first, end = source.bounds()
    width = _NEAR
    while end > first:
        begin = max(first, end - width)
        found = None
        for placed in lines_from(source, begin, end):
            if placed.line.startswith(_CHECKPOINT):
                found = placed
        if found is not None:
            return standing(found.line)
        end, width = begin, width * 4
    return None


def lines_from(source: Source, begin: int, end: int) -> Iterator[Placed]:
    """The lines with the numbers from ``begin`` to before ``end``."""
    place = source.place_of(begin)
    if place is None:
        raise UnprovenError(f"line {begin} is missing", hint=_VERIFY)
    left = end - begin
    for placed in source.after(place):
        yield placed
        left -= 1
        if left <= 0:
            return


def line_at(source: Source, seq: int) -> bytes | None:
    """The line with that number, without its newline; None if there is none."""
    place = source.place_of(seq)
    return None if place is None else source.at(place)


def fields_of(line: bytes) -> dict[str, Any]:
    """What a line says. UnprovenError if it is none."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict) or not isinstance(value.get("seq"), int):
        raise UnprovenError("a line of the ledger is damaged", hint=_VERIFY)
    return value


def standing(line: bytes) -> Standing:
    """Read a checkpoint line. UnprovenError if it is damaged."""
    fields = fields_of(line)
    try:
        sealed = read_sealed(line, fields.get("warnings") or ())
    except EnvelopeError as error:
        where = f"the checkpoint in line {fields['seq']}"
        raise UnprovenError(f"{where} is damaged: {error.message}", hint=_VERIFY) from None
    if sealed.checkpoint.size != fields["seq"]:
        raise UnprovenError(f"line {fields['seq']} holds another line's checkpoint", hint=_VERIFY)
    return Standing(fields["seq"], line, sealed)


def inclusion(source: Source, seq: int, line: bytes, to: Standing) -> Inclusion:
    """The proof that a line is covered by a checkpoint.

    UnprovenError where that is not so: the ledger was changed.
    """
    hashes = inclusion_proof(seq, to.checkpoint.size, source.subtree)
    proof = Inclusion(seq, tuple(hashes), to.note)
    if not proof.is_of(line):
        raise UnprovenError(f"line {seq} is not the one that was signed", hint=_VERIFY)
    return proof


def consistency(source: Source, old: Note, to: Standing) -> Consistency:
    """The proof that the ledger only grew since an older checkpoint of it.

    UnprovenError, saying why, where that is not so, or where the older one is of another ledger.
    """
    before, now = Checkpoint.parse(old.text), to.checkpoint
    if before.origin != now.origin:
        raise UnprovenError(
            f"the older checkpoint is of another ledger, {before.origin}",
            hint=f"this one is {now.origin}",
        )
    if not 0 < before.size <= now.size:
        raise UnprovenError(
            f"the older checkpoint covers {before.size:,} lines, and this ledger's newest one "
            f"only {now.size:,}",
            hint="it was cut, or an old copy was put in its place",
        )
    if range_hash(0, before.size, source.subtree) != before.root:
        raise UnprovenError(
            f"the first {before.size:,} lines of this ledger are not those of the older checkpoint",
            hint="it was rewritten; mcp-envelope ledger verify may say where",
        )
    _check_own_line(source, before, now)
    proof = Consistency(
        before.size, tuple(consistency_proof(before.size, now.size, source.subtree)), to.note
    )
    if not proof.is_from(before.root):
        raise UnprovenError("the newest checkpoint is not of these lines", hint=_VERIFY)
    return proof


def _check_own_line(source: Source, before: Checkpoint, now: Checkpoint) -> None:
    """The line that the older checkpoint stood in is still that line."""
    if not before.extensions:
        return
    line = line_at(source, before.size)
    if line is None and before.size < source.bounds()[0]:
        return  # removed; its root is covered all the same
    if line is not None and line.startswith(_CHECKPOINT):
        found = standing(line).checkpoint
        if found == before:
            return
    raise UnprovenError(
        f"line {before.size} is not the one that the older checkpoint stood in", hint=_VERIFY
    )


def origin(source: Source) -> str | None:
    """What the ledger is called in its checkpoints; None where its first line is not there."""
    line = line_at(source, 0)
    return None if line is None else origin_of(sha256(line).hexdigest())


_VERIFY: Final = "mcp-envelope ledger verify says what is wrong"
