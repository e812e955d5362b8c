"""What checkpoint lines say, recomputed from the lines as RFC 6962 and C2SP describe it."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from mcp_envelope.core.ports import Durability, Sealing, Writing
from mcp_envelope.core.signing import Signer

SIGNER = Signer("tests", b"\x07" * 32)


def sealing(every: int = 1_000, notes: list[bytes] | None = None) -> Sealing:
    """Checkpoints by a key of the tests', at a time that stands still."""
    publish = notes.append if notes is not None else lambda note: None
    return Sealing(
        signers=[SIGNER],
        now=lambda: "2026-11-19T21:00:00Z",
        instance="time-4c1a",
        every=every,
        publish=publish,
    )


def writing(
    every: int = 1_000, notes: list[bytes] | None = None, durability: Durability = "process"
) -> Writing:
    """How a ledger with such checkpoints is written."""
    return Writing(durability=durability, sealing=sealing(every, notes))


def root_of(lines: Sequence[bytes]) -> bytes:
    """RFC 6962, section 2.1, to the letter."""
    if not lines:
        return sha256(b"").digest()
    if len(lines) == 1:
        return sha256(b"\0" + lines[0]).digest()
    cut = 1 << ((len(lines) - 1).bit_length() - 1)
    return sha256(b"\1" + root_of(lines[:cut]) + root_of(lines[cut:])).digest()


def checked(lines: Sequence[bytes], *, roots: bool = True) -> list[int]:
    """The numbers of the checkpoint lines, having seen that they say what is so."""
    found = []
    origin = f"mcp-envelope/ledger/{sha256(lines[0]).hexdigest()[:32]}" if lines else ""
    for seq, line in enumerate(lines):
        entry = json.loads(line)
        if entry["event"] != "checkpoint":
            continue
        found.append(seq)
        note: str = entry["warnings"][-1]
        text, _, signatures = note.partition("\n\n")
        said = text.split("\n")
        assert said[:2] == [origin, str(seq)]
        if roots:
            assert base64.b64decode(said[2]) == root_of(lines[:seq])
        cut = line.rindex(b'"mcp-envelope/ledger/')
        blank = line[:cut] + b'""]}'
        assert said[3] == f"line sha256:{sha256(blank).hexdigest()}"
        (signature,) = signatures.splitlines()
        value = base64.b64decode(signature.split(" ")[2])[4:]
        key = Ed25519PublicKey.from_public_bytes(SIGNER.key.public)
        key.verify(value, f"{text}\n".encode())
        assert entry["warnings"][-2] == f"key: {SIGNER.key}"
    return found
