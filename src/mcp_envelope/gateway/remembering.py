"""What was signed last for a ledger, kept beside the key, so that nothing else gets signed.

A gateway signs what stands in its ledger. Whoever may write to that file, and has no key, could put
an older copy or lines of their own in its place, and leave the signing to the next start. So a
gateway only goes on with a ledger that begins with what it has signed before. Of lines that nobody
here has signed it says so, in the next line that it writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.merkle import range_hash
from mcp_envelope.core.notes import Checkpoint, Note, VerifierKey
from mcp_envelope.core.ports import LedgerError, Source
from mcp_envelope.core.proving import newest_checkpoint, standing
from mcp_envelope.core.signing import is_signed_by
from mcp_envelope.stores.places import make_private

from .ground import log
from .whole_file import WholeFile

_FOLDER: Final = "seen"
_DIGITS: Final = 32
_LARGEST: Final = 1 << 16


class Memory:
    """The newest checkpoint that was signed here for the ledger of a URL.

    ``key`` is the file of the key that signs.
    """

    def __init__(self, key: Path, url: str) -> None:
        name = sha256(url.encode(errors="surrogateescape")).hexdigest()[:_DIGITS]
        self.path: Final = key.parent / _FOLDER / f"{name}.checkpoint"

    def keep(self, note: bytes) -> None:
        """Remember a note instead of the one before. OSError if that cannot be done."""
        make_private(self.path.parent)
        with WholeFile(self.path, over=True) as file:
            file.write(note)
            file.finish()

    def recall(self, keys: Sequence[VerifierKey]) -> Note | None:
        """What was kept, None if nothing was, or nothing that one of these keys has signed."""
        try:
            note = Note.parse(self.path.read_bytes()[:_LARGEST])
            if any(is_signed_by(note, key) for key in keys):
                return note
        except FileNotFoundError:
            return None
        except (OSError, EnvelopeError) as error:
            log.warning("%s cannot be used: %s", self.path, error)
            return None
        log.warning("%s is signed by no key that lies here", self.path)
        return None

    def examine(self, source: Source, keys: Sequence[VerifierKey]) -> tuple[str, ...]:
        """What the next line has to say of a ledger that is to be gone on with.

        LedgerError if it does not begin with what was signed for it here.
        """
        note = self.recall(keys)
        count = source.bounds()[1]
        if note is None:
            return _unknown(source, count, keys)
        known = Checkpoint.parse(note.text)
        if count == 0:
            log.warning("%s is new; the one before had more than %d lines", source.url, known.size)
            return (f"begins anew: before it there was {known.origin}, of {known.size + 1} lines",)
        if count <= known.size:
            raise LedgerError(
                f"{source.url} is older than it was: it has {count} lines, and a checkpoint over "
                f"{known.size} was signed for it here",
                hint=self._way_out("put the newer one back"),
            )
        if not _begins_with(source, known, note):
            raise LedgerError(
                f"{source.url} is not the ledger that was signed here: "
                f"its first {known.size} lines are others",
                hint=self._way_out("see who wrote to it, and put the right one back"),
            )
        return _behind(count - known.size - 1, f"the checkpoint in line {known.size}")

    def _way_out(self, usual: str) -> str:
        return f"{usual}; if it is meant to go on with these lines, delete {self.path} first"


def _begins_with(source: Source, known: Checkpoint, note: Note) -> bool:
    """Whether the lines that a checkpoint covers are these, and the line that it stands in."""
    place = source.place_of(known.size)
    if place is None:
        return False
    try:
        there = standing(source.at(place))
        root = range_hash(0, known.size, source.subtree)
    except (EnvelopeError, LedgerError):
        return False
    return there.note.text == note.text and root == known.root


def _unknown(source: Source, count: int, keys: Sequence[VerifierKey]) -> tuple[str, ...]:
    """The same, where nothing was signed here as far as is known."""
    if count == 0:
        return ()
    newest = newest_checkpoint(source)
    if newest is None:
        return _behind(count, "any checkpoint")
    if any(is_signed_by(newest.note, key) for key in keys):
        return _behind(count - newest.seq - 1, f"the checkpoint in line {newest.seq}")
    by = ", ".join(one.name for one in newest.note.signatures)
    log.warning("%s: its checkpoints are signed by %s, which no key here is", source.url, by)
    return (f"goes on behind {count} lines that no key of this machine has signed",)


def _behind(count: int, what: str) -> tuple[str, ...]:
    return (f"goes on behind {count} lines that stand behind {what}",) if count else ()
