"""Checkpoint lines: ledger lines that carry a signed checkpoint of all lines before them.

Such a line has the fields of any other. Its ``warnings`` hold, last, the signed note, and before
that one ``key: VKEY`` for each signature; in front of these may stand what the ledger has to say
of itself, like ``removed: …``. The note covers the lines before by their root, and the line that
it stands in by an extension line, ``line sha256:HEX``: the digest of that line with ``""`` in
the place of the note. So not a byte of the last line of a ledger can change unseen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Protocol

from .entry import MOST, Facts, line
from .errors import EnvelopeError
from .notes import Checkpoint, Note, Signature, VerifierKey, base64_of, bytes_of

#: What every origin begins with.
ORIGIN: Final = "mcp-envelope/ledger/"
_DIGITS: Final = 32
_KEY: Final = "key: "
_BLANK: Final = b'""]}'
_MARK: Final = b'"' + ORIGIN.encode()
_COMMITMENT: Final = re.compile(r"line sha256:([0-9a-f]{64})")
_REMOVED: Final = re.compile(
    r"removed: lines 0 to ([0-9]{1,19}), the last sha256:([0-9a-f]{64}), tree( \S+)+"
)


class Signs(Protocol):
    """A private key."""

    @property
    def key(self) -> VerifierKey:
        """The public half."""

    def sign(self, text: str) -> Signature:
        """The signature of a note's text."""


def origin_of(first: str) -> str:
    """What a ledger is called in checkpoints, from the digest (hex) of its first line."""
    return ORIGIN + first[:_DIGITS]


def sealed_line(
    seq: int,
    prev: str,
    *,
    time: str,
    instance: str,
    origin: str,
    root: bytes,
    signers: Sequence[Signs],
    remarks: Sequence[str] = (),
) -> bytes:
    """The bytes of a checkpoint line, number ``seq``, over the ``seq`` lines before it.

    EnvelopeError if it would be too long: never with remarks and instances of ordinary length.
    """
    keys = (f"{_KEY}{one.key}" for one in signers)
    facts = Facts(
        event="checkpoint",
        time=time,
        instance=instance,
        outcome="ok",
        warnings=(*remarks, *keys, ""),
    )
    blank = line(facts, seq, prev)
    commitment = f"line sha256:{sha256(blank).hexdigest()}"
    text = Checkpoint(origin, seq, root, (commitment,)).text
    note = Note(text, tuple(one.sign(text) for one in signers))
    whole = blank.removesuffix(_BLANK) + _as_json(note) + b"]}"
    if not blank.endswith(_BLANK) or len(whole) > MOST:
        raise EnvelopeError("this checkpoint does not fit into a line")
    return whole


@dataclass(frozen=True, slots=True)
class Sealed:
    """What a checkpoint line says: its note, and the public keys that it names."""

    note: Note
    checkpoint: Checkpoint
    keys: tuple[VerifierKey, ...]


def read_sealed(text: bytes, warnings: Sequence[str]) -> Sealed:
    """Read a checkpoint line; ``warnings`` are those in it. Signatures are not checked.

    EnvelopeError if there is no checkpoint in it, or if a byte of it is not as it was signed.
    """
    cut = text.rfind(_MARK)
    note = Note.parse(warnings[-1]) if warnings and cut >= 0 else None
    if note is None:
        raise EnvelopeError("this line holds no checkpoint")
    checkpoint = Checkpoint.parse(note.text)
    if text != text[:cut] + _as_json(note) + b"]}":
        raise EnvelopeError("the checkpoint is not written as it was")
    blank = sha256(text[:cut] + _BLANK).hexdigest()
    found = _COMMITMENT.fullmatch(checkpoint.extensions[0] if checkpoint.extensions else "")
    if found is None or found[1] != blank:
        raise EnvelopeError("this line is not the one that was signed")
    keys = [one.removeprefix(_KEY) for one in warnings[:-1] if one.startswith(_KEY)]
    return Sealed(note, checkpoint, tuple(map(VerifierKey.parse, keys)))


@dataclass(frozen=True, slots=True)
class Removed:
    """Lines that were taken out of a ledger, from the first one on, and what is kept of them.

    ``last`` is the digest (hex) of the last of them, ``nodes`` the hashes of the complete
    subtrees that they consist of, largest first.
    """

    count: int
    last: str
    nodes: tuple[bytes, ...]

    def __str__(self) -> str:
        tree = " ".join(map(base64_of, self.nodes))
        return f"removed: lines 0 to {self.count - 1}, the last sha256:{self.last}, tree {tree}"

    @classmethod
    def parse(cls, text: str) -> Removed | None:
        """Read the remark of a checkpoint line; None if it is no such remark."""
        found = _REMOVED.fullmatch(text)
        if found is None:
            return None
        count = int(found[1]) + 1
        words = text.partition(", tree ")[2].split(" ")
        try:
            nodes = tuple(bytes_of(word, "a hash") for word in words)
        except EnvelopeError:
            return None
        if len(nodes) != count.bit_count() or any(len(node) != 32 for node in nodes):
            return None
        made = cls(count, found[2], nodes)
        return made if str(made) == text else None


def _as_json(note: Note) -> bytes:
    # A note holds neither quotes nor backslashes nor any control character but newlines.
    return b'"' + str(note).encode().replace(b"\n", b"\\n") + b'"'
