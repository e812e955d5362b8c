"""What checkpoint lines say of the lines before them, and of those that were removed."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.ports import LedgerError, Placed
from mcp_envelope.core.seal import Removed, read_sealed

from .draft import SEALED


def removed_in(line: bytes, count: int) -> Removed | None:
    """What a line says of so many removed lines, if it is a checkpoint and says anything."""
    if not line.startswith(SEALED) or b'"removed: lines 0 to ' not in line:
        return None
    try:
        said = orjson.loads(line)["warnings"]
    except ValueError:
        return None
    found = (Removed.parse(one) for one in said if isinstance(one, str))
    return next((one for one in found if one is not None and one.count == count), None)


def newest_removed(lines: Iterable[Placed], count: int) -> Removed | None:
    """The newest that any of them says."""
    found = None
    for one in lines:
        found = removed_in(one.line, count) or found
    return found


def origin_in(line: bytes) -> str:
    """Which ledger a checkpoint line says that it is of; empty if it says nothing."""
    try:
        return read_sealed(line, orjson.loads(line)["warnings"]).checkpoint.origin
    except (EnvelopeError, ValueError, LookupError, TypeError):
        return ""


def check_sealed(line: bytes, origin: str, size: int, root: bytes) -> None:
    """See that a checkpoint line is about these lines, signatures apart. LedgerError if not.

    What goes on after another one would contradict it for ever.
    """
    try:
        said = read_sealed(line, orjson.loads(line)["warnings"]).checkpoint
    except (EnvelopeError, ValueError, LookupError, TypeError):
        said = None
    if said is None or (said.origin, said.size, said.root) != (origin, size, root):
        raise LedgerError(
            f"it is damaged: line {size}, a checkpoint, is not about the lines before it"
        )
