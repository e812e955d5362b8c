"""How a line of a ledger begins: its number, and the digest that ties it to the one before."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from mcp_envelope.core.entry import GENESIS, MOST
from mcp_envelope.core.ports import LedgerError

BEGIN: Final = re.compile(
    rb'\{"v":1,"event":"[a-z]+","seq":(0|[1-9][0-9]{0,18}),"prev":"([0-9a-f]{64})",'
)


def seq_of(line: bytes) -> int | None:
    """The number that a line gives itself; None if it looks like no line."""
    found = BEGIN.match(line)
    return int(found[1]) if found is not None else None


def is_row(seq: int, line: bytes) -> bool:
    """Whether a row of a database holds one line, and the one whose number it has."""
    if b"\n" in line or len(line) > MOST:
        return False
    # Before the number stand the version and the event, in fewer bytes than this.
    return line.startswith(b'"seq":%d,' % seq, line.find(b'"seq":', 0, 48))


@dataclass(slots=True)
class Walk:
    """Goes along a chain: what it takes next has to be line ``seq``, and to follow ``prev``."""

    seq: int = 0
    prev: str = GENESIS

    @classmethod
    def at(cls, seq: int, line: bytes) -> Walk:
        """Before that line, believing what it says of the one before it."""
        found = BEGIN.match(line)
        return cls(seq, found[2].decode() if found is not None else GENESIS)

    def take(self, line: bytes) -> None:
        """Step over a line. LedgerError if another one belongs there."""
        seq = self.seq
        found = BEGIN.match(line)
        if found is None or int(found[1]) != seq or b"\n" in line or len(line) > MOST:
            raise LedgerError(f"it is damaged: line {seq} is not in it")
        if found[2].decode() != self.prev:
            raise LedgerError(f"it is damaged: line {seq}, or the one before it, was altered")
        self.seq = seq + 1
        self.prev = sha256(line).hexdigest()
