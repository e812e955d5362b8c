"""Taking the oldest lines out of a ledger: which ones, and where they are kept before they go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcp_envelope.core.ports import Ledger, LedgerError, Source
from mcp_envelope.stores.places import make_private

from .whole_file import WholeFile

#: What is removed ends at a multiple of this many lines.
SEGMENT: Final = 256

_CHECKPOINT: Final = b'{"v":1,"event":"checkpoint",'
_TIME: Final = re.compile(rb'"time":"([0-9TZ:.+-]{10,40})"')


@dataclass(frozen=True, slots=True)
class Plan:
    """The lines from ``first`` to before ``end`` are to go; none if the two are equal."""

    first: int
    end: int

    @property
    def lines(self) -> int:
        """How many."""
        return self.end - self.first


def planned(source: Source, before: int) -> Plan:
    """What can be removed of the lines before number ``before``, as :meth:`Ledger.remove` has it.

    Whole segments, at least one line stays, and a checkpoint is never the last that goes.
    """
    first, next_one = source.bounds()
    end = min(before, next_one - 1) // SEGMENT * SEGMENT
    while end > first and _is_checkpoint(source, end - 1):
        end -= SEGMENT
    return Plan(first, max(first, end))


def older_than(source: Source, time: str) -> int:
    """The number of the first line that is not older than a time as lines write it.

    Where the clock was put back, later lines may be older; they stay.
    """
    first, next_one = source.bounds()
    wanted = time.encode()
    for seq, line in _from(source, first):
        found = _TIME.search(line)
        if found is None or found[1] >= wanted:
            return seq
    return next_one


class Archive:
    """A file of exact lines, on the disk before any of them is removed.

    It is called ``NAME-FIRST-LAST.jsonl``, and is the ``archive`` of :meth:`Ledger.remove`.
    FileExistsError where there is such a file: none is ever replaced.
    """

    def __init__(self, folder: Path, name: str, plan: Plan) -> None:
        self.path = folder / f"{name}-{plan.first}-{plan.end - 1}.jsonl"
        self._left = plan.lines
        make_private(folder)
        if self.path.exists():
            raise FileExistsError(f"{self.path} is there already")
        self._file = WholeFile(self.path)

    def __call__(self, line: bytes) -> None:
        """Keep a line, with its newline; all that was planned is on the disk after ``b""``."""
        if line:
            self._file.write(line)
            self._left -= 1
        elif self._left == 0:
            self._file.finish()
        else:
            raise LedgerError("other lines were to be removed than were planned")

    def close(self) -> None:
        """Delete what is not finished: then nothing was removed either."""
        self._file.discard()


async def remove(ledger: Ledger, plan: Plan, archive: Archive | None) -> int:
    """Remove what was planned; how many lines went."""
    if plan.lines == 0:
        return 0
    try:
        return await ledger.remove(plan.end, archive)
    finally:
        if archive is not None:
            archive.close()


def _is_checkpoint(source: Source, seq: int) -> bool:
    place = source.place_of(seq)
    return place is not None and source.at(place).startswith(_CHECKPOINT)


def _from(source: Source, first: int) -> Iterator[tuple[int, bytes]]:
    place = source.place_of(first)
    if place is not None:
        for number, placed in enumerate(source.after(place), first):
            yield number, placed.line
