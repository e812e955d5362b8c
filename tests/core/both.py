"""Asks both verifiers, which share no code, what they say of the same bytes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from tests.core.ledgers import verdict_of

from mcp_envelope import verify_ledger
from mcp_envelope.core.notes import Note, VerifierKey
from mcp_envelope.core.seal import Removed

#: It has no types that mypy could hold.
ALONE: Any = verify_ledger
Said = tuple[tuple[str, int] | None, int, int]


def one_file(data: bytes, keys: Sequence[VerifierKey], known: Sequence[Note]) -> Said:
    """What the verifier in one file says: damage, and how many calls and tails are open or torn."""
    trusted = [ALONE.key_of(str(key)) for key in keys]
    reading = ALONE.Reading(trusted, [ALONE.note_of(str(note)) for note in known])
    try:
        reading.read(io.BytesIO(data))
    except ALONE.DamageError as damage:
        return damage.args, 0, 0
    return None, len(reading.open), reading.torn


def core(data: bytes, keys: Sequence[VerifierKey], known: Sequence[Note]) -> Said:
    """What the verifier of the core says."""
    lines = [line for line, _ in ALONE.lines_of(io.BytesIO(data)) if line]
    remarks = [text for line in lines if line.event == "checkpoint" for text in line.warnings]
    read = [one for one in map(Removed.parse, remarks) if one and one.count <= lines[0].seq]
    removed = read[-1] if read else None
    found = verdict_of(data, keys, known, removed)
    if found.damage is not None:
        return (found.damage.kind, found.damage.seq), 0, 0
    return None, found.dangling_count, found.torn_count


def alike(
    data: bytes, keys: Sequence[VerifierKey] = (), known: Sequence[Note] = ()
) -> tuple[str, int] | None:
    """The damage that both find: its kind, and the number of its line."""
    found = core(data, keys, known)
    assert one_file(data, keys, known) == found
    return found[0]
