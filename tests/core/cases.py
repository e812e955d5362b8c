"""A damaged ledger and what has to be said of it; and the pieces that a good one consists of."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.core.ledgers import pieces_of

_TORN = re.compile(r"torn tail: the (\d+) bytes before this line are no line, sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Case:
    """A damaged ledger: what lies there now, what was done, and the line to be named.

    ``kinds`` are the words for it that a verdict may use. ``needs`` is ``kept`` if only a kept
    checkpoint shows it, ``key`` if a trusted key does as well, else empty.
    """

    name: str
    data: bytes
    seq: int
    kinds: tuple[str, ...]
    needs: str = ""


@dataclass(frozen=True)
class Piece:
    """A piece of a good ledger. ``seq`` is its number, or that of the line that it is before."""

    data: bytes
    seq: int
    is_line: bool


def layout(data: bytes) -> list[Piece]:
    """The pieces of a good ledger, of which the last may be unfinished."""
    found: list[tuple[bytes, int | None]] = []
    for data_of in pieces_of(data):
        entry = _entry(data_of)
        said = _TORN.fullmatch(entry["warnings"][0]) if entry and entry["warnings"] else None
        size = int(said[1]) if said else 0
        for at in range(len(found) - 1, -1, -1):
            if size <= 0:
                break
            size -= len(found[at][0])
            found[at] = (found[at][0], None)
        found.append((data_of, entry["seq"] if entry else None))
    pieces = []
    after = max((seq for _, seq in found if seq is not None), default=-1) + 1
    for data_of, seq in reversed(found):
        after = after if seq is None else seq
        pieces.append(Piece(data_of, after, seq is not None))
    return pieces[::-1]


def _entry(piece: bytes) -> dict[str, Any] | None:
    if not piece.endswith(b"\n"):
        return None
    try:
        found = json.loads(piece)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def joined(pieces: Sequence[Piece]) -> bytes:
    """What lies there then."""
    return b"".join(one.data for one in pieces)


def lines_in(pieces: Sequence[Piece]) -> list[int]:
    """The indexes of those that are lines."""
    return [at for at, one in enumerate(pieces) if one.is_line]


def gaps_in(pieces: Sequence[Piece]) -> list[int]:
    """The places where a line can be put: not behind what was torn, whatever it looks like."""
    return [at for at in range(len(pieces)) if at == 0 or pieces[at - 1].is_line]


def numbers_of(case: Case, good: bytes) -> set[int]:
    """The lines that may be named.

    Where a line came to stand for bytes that look like a whole line, torn off before it, these
    stand for it once it is damaged, and what is wrong is where the next one belongs.
    """
    pieces = layout(good)
    torn = {one.seq for one in pieces if not one.is_line and _entry(one.data)}
    return {case.seq, case.seq + 1} if case.seq in torn else {case.seq}
