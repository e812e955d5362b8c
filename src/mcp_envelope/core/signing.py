"""Ed25519 signatures of notes (c2sp.org/signed-note), by `cryptography`.

Only this module imports it: whoever neither signs nor checks signatures does not load it.
"""

from __future__ import annotations

import re
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from .errors import EnvelopeError
from .notes import ED25519, Note, Signature, VerifierKey, base64_of, bytes_of

_PRIVATE: Final = "PRIVATE+KEY+"
_SEED: Final = 32
_NAME: Final = re.compile(r"[!#-*,-\[\]-~]+")


class Signer:
    """A private key. Its text form is that of Go's note package, and must stay secret.

    EnvelopeError for a name that a ledger line could not hold as it is: it is of printable ASCII
    without spaces, ``+``, quotes and backslashes.
    """

    def __init__(self, name: str, seed: bytes) -> None:
        if not _NAME.fullmatch(name):
            hint = "take letters, digits, dots and dashes, like gateway.example"
            raise EnvelopeError("this cannot be the name of a key", hint=hint)
        self._seed = seed
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.key: Final = VerifierKey(name, self._key.public_key().public_bytes_raw())

    def __repr__(self) -> str:
        return f"Signer({self.key.name!r}, …)"

    @classmethod
    def parse(cls, text: str) -> Signer:
        """Read a private key. EnvelopeError, never repeating it, for anything else."""
        text = text.strip()
        parts = text.removeprefix(_PRIVATE).split("+", 2)
        if not text.startswith(_PRIVATE) or len(parts) != 3:
            raise EnvelopeError("this is no private key of ours", hint="it begins with PRIVATE+KEY")
        data = bytes_of(parts[2], "the private key")
        if data[0] != ED25519 or len(data) != 1 + _SEED:
            raise EnvelopeError("this is no private Ed25519 key")
        made = cls(parts[0], data[1:])
        if made.key.id.hex() != parts[1]:
            raise EnvelopeError("the private key is not the one that its id says")
        return made

    def secret_text(self) -> str:
        """What :meth:`parse` reads. For a file that only its owner can read."""
        data = base64_of(bytes([ED25519]) + self._seed)
        return f"{_PRIVATE}{self.key.name}+{self.key.id.hex()}+{data}"

    def sign(self, text: str) -> Signature:
        """The signature of the text of a note. The same text gives the same one."""
        return Signature(self.key.name, self.key.id, self._key.sign(text.encode()))


def is_signed_by(note: Note, key: VerifierKey) -> bool:
    """Whether a signature of the note is this key's, and right.

    EnvelopeError if one says that it is this key's and is not: such a note is to be rejected.
    """
    mine = [one for one in note.signatures if one.is_by(key)]
    if not mine:
        return False
    public = Ed25519PublicKey.from_public_bytes(key.public)
    for one in mine:
        try:
            public.verify(one.value, note.text.encode())
        except InvalidSignature:
            raise EnvelopeError(f"the signature by {key.name} is wrong") from None
    return True
