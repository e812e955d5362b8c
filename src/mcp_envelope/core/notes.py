"""Signed notes and checkpoints as texts (c2sp.org/signed-note, c2sp.org/tlog-checkpoint).

Nothing here computes a signature: see :mod:`mcp_envelope.core.signing`.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from .errors import EnvelopeError

#: The byte that says Ed25519 in key ids and encoded keys.
ED25519: Final = 0x01
#: The most signatures that a note may have; the specification asks for 16 at least.
MOST_SIGNATURES: Final = 16

_NAME: Final = re.compile(r"[^\s+\ud800-\udfff]+")
_SIGNATURE: Final = re.compile(r"— (\S+) (\S+)")
_SIZE: Final = re.compile(r"0|[1-9][0-9]{0,18}")
_CONTROLS: Final = re.compile(r"[\x00-\x09\x0b-\x1f]")
_HASH: Final = 32


def base64_of(data: bytes) -> str:
    """Standard base64, as notes use it."""
    return base64.b64encode(data).decode("ascii")


def bytes_of(text: str, what: str) -> bytes:
    """The bytes of standard base64, of which each value has one spelling only."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not data or base64_of(data) != text:
        raise EnvelopeError(f"{what} is not base64")
    return data


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A public key by which signatures are checked. As text it is ``NAME+ID+KEY`` (a *vkey*)."""

    name: str
    public: bytes

    @property
    def id(self) -> bytes:
        """The four bytes by which signatures name the key, together with its name."""
        return key_id(self.name, self.public)

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{base64_of(bytes([ED25519]) + self.public)}"

    @classmethod
    def parse(cls, text: str) -> VerifierKey:
        """Read a vkey. EnvelopeError, saying why, for anything else."""
        hint = "it looks like NAME+0123abcd+Ab…; mcp-envelope keys show prints one"
        text = text.strip()
        parts = text.split("+", 2)
        if text.startswith("PRIVATE+KEY+"):
            raise EnvelopeError("this is a private key: only its owner may have it", hint=hint)
        if len(parts) != 3 or not _NAME.fullmatch(parts[0]):
            raise EnvelopeError("this is no public key", hint=hint)
        data = bytes_of(parts[2], "the key")
        if data[0] != ED25519 or len(data) != 1 + _HASH:
            raise EnvelopeError("this is no Ed25519 key", hint=hint)
        made = cls(parts[0], data[1:])
        if made.id.hex() != parts[1]:
            raise EnvelopeError("the key is not the one that its id says", hint="copy it anew")
        return made


def key_id(name: str, public: bytes) -> bytes:
    """The id of an Ed25519 key of this name."""
    return sha256(name.encode() + b"\n" + bytes([ED25519]) + public).digest()[:4]


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature line of a note."""

    name: str
    key_id: bytes
    value: bytes

    def is_by(self, key: VerifierKey) -> bool:
        """Whether it says that this key made it."""
        return self.name == key.name and self.key_id == key.id

    def __str__(self) -> str:
        return f"— {self.name} {base64_of(self.key_id + self.value)}"


@dataclass(frozen=True, slots=True)
class Note:
    """A text, ending in a newline, and its signatures. Not checked: that needs keys."""

    text: str
    signatures: tuple[Signature, ...]

    def __str__(self) -> str:
        return self.text + "\n" + "".join(f"{one}\n" for one in self.signatures)

    @classmethod
    def parse(cls, data: bytes | str) -> Note:
        """Read a signed note. EnvelopeError, saying why, for anything else."""
        try:
            whole = data.decode() if isinstance(data, bytes) else data
            whole.encode()
        except UnicodeError:
            raise EnvelopeError("this is no signed note: it is not UTF-8") from None
        cut = whole.rfind("\n\n")
        if cut < 0 or not whole.endswith("\n") or _CONTROLS.search(whole):
            hint = "it has a text, an empty line, and lines that begin with —"
            raise EnvelopeError("this is no signed note", hint=hint)
        lines = whole[cut + 2 : -1].split("\n")
        if len(lines) > MOST_SIGNATURES:
            raise EnvelopeError(f"this note has more than {MOST_SIGNATURES} signatures")
        return cls(whole[: cut + 1], tuple(map(_signature_of, lines)))


def _signature_of(line: str) -> Signature:
    found = _SIGNATURE.fullmatch(line)
    if found is None or not _NAME.fullmatch(found[1]):
        raise EnvelopeError("a signature line of this note cannot be read")
    data = bytes_of(found[2], "a signature")
    if len(data) < 5:
        raise EnvelopeError("a signature of this note is too short")
    return Signature(found[1], data[:4], data[4:])


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The root of the tree over the first ``size`` lines of the log called ``origin``."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text that is signed."""
        lines = (self.origin, str(self.size), base64_of(self.root), *self.extensions)
        return "".join(f"{line}\n" for line in lines)

    @classmethod
    def parse(cls, text: str) -> Checkpoint:
        """Read the text of a note. EnvelopeError, saying why, for anything else."""
        lines = text.removesuffix("\n").split("\n")
        if len(lines) < 3 or not all(lines) or not text.endswith("\n"):
            raise EnvelopeError("this note is no checkpoint", hint="it has origin, size and root")
        if not _SIZE.fullmatch(lines[1]):
            raise EnvelopeError("the size in this checkpoint is no number")
        root = bytes_of(lines[2], "the root of this checkpoint")
        if len(root) != _HASH:
            raise EnvelopeError("the root of this checkpoint is no SHA-256")
        return cls(lines[0], int(lines[1]), root, tuple(lines[3:]))
