"""A ledger that is a list of lines: what reads ledgers is tested with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from mcp_envelope.core.merkle import complete_root, leaf_hash
from mcp_envelope.core.ports import LedgerError, Placed
from mcp_envelope.core.seal import Removed

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "calls.jsonl"


def example_lines() -> list[bytes]:
    """The lines of the example ledger, without newlines."""
    return EXAMPLE.read_bytes().splitlines()


class ListedSource:
    """The port of a ledger that is read. Places are numbers of lines."""

    url = "listed:"

    def __init__(self, lines: Sequence[bytes]) -> None:
        self.lines = list(lines)
        self.size = len(self.lines)

    def physical(self) -> Iterator[bytes]:
        """Each with its newline."""
        return (line + b"\n" for line in self.lines)

    def after(self, place: int) -> Iterator[Placed]:
        """The lines from a place on."""
        for number in range(place, len(self.lines)):
            yield Placed(number, number + 1, self.lines[number])

    def at(self, place: int) -> bytes:
        """The line there."""
        if not 0 <= place < len(self.lines):
            raise LedgerError("there is no such line")
        return self.lines[place]

    def place_of(self, seq: int) -> int | None:
        """The same number."""
        return seq if 0 <= seq < len(self.lines) else None

    def bounds(self) -> tuple[int, int]:
        """All that there is."""
        return 0, len(self.lines)

    def subtree(self, level: int, index: int) -> bytes:
        """Computed anew each time."""
        part = self.lines[index << level : (index + 1) << level]
        return complete_root([leaf_hash(line) for line in part])

    def removed(self) -> Removed | None:
        """Nothing was."""
        return None

    def body(self, digest: str) -> bytes | None:
        """Nothing was kept."""
        return None

    def close(self) -> None:
        """There is nothing to let go of."""
