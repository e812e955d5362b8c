"""Finding what checkpoint lines say of lines that were removed."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from mcp_envelope.core.ports import Placed
from mcp_envelope.core.seal import Removed

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
