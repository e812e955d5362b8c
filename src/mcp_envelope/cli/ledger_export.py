"""``ledger export``: the exact lines of a ledger as JSON Lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import mcp_envelope as me
from mcp_envelope.core.ports import Source
from mcp_envelope.core.proving import UnprovenError

from .console import FINE, Console, utf8
from .outputs import Progress, check_free, write_whole
from .records import LEDGER, opened, path_of, whole_number

if TYPE_CHECKING:
    import argparse

    from .arguments import Parser

EXAMPLE = "mcp-envelope ledger export calls.db --out calls.jsonl"

_SEQ: Final = re.compile(rb'\{"v":1,"event":"[a-z]+","seq":([0-9]{1,19}),')
_AT_ONCE: Final = 1 << 18


def configure(parser: Parser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("ledger", metavar="URL|FILE", help=LEDGER)
    parser.add_argument("--out", metavar="FILE", help="write them there, instead of printing them")
    parser.add_argument("--force", action="store_true", help="replace that file if it is there")
    parser.add_argument("--from", metavar="SEQ", dest="first", help="only from this line on")
    parser.add_argument("--to", metavar="SEQ", dest="last", help="only up to this line")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    first = whole_number(arguments.first, "--from", 0)
    last = whole_number(arguments.last, "--to", None)
    if console.json and arguments.out is None:
        hint = "the lines are JSON already, one each; with --out it says what was written"
        raise me.UsageError("--json without --out", hint=hint)
    if arguments.out is not None:
        check_free(arguments.out, force=arguments.force, read=[path_of(arguments.ledger)])
    with opened(arguments.ledger) as source:
        begin, end = source.bounds()
        if min(end, end if last is None else last + 1) <= max(begin, first):
            there = f"lines {begin} to {end - 1}" if end > begin else "none"
            raise UnprovenError(f"there are no such lines: the ledger has {there}")
        reading = _Reading(source, first, last)
        if arguments.out is not None:
            count = write_whole(arguments.out, reading.parts(), force=arguments.force)
        else:
            count = 0
            for part in reading.parts():
                console.write(part)
                count += len(part)
            console.flush()
        notes = [*reading.notes(), *_unverifiable(source, reading)]
    if console.json:
        console.result(
            {
                "ledger": source.url,
                "out": utf8(arguments.out),
                "first": reading.begun,
                "last": reading.ended,
                "lines": reading.lines,
                "bytes": count,
                "notes": notes,
            }
        )
        return FINE
    if arguments.out is not None:
        console.note(f"wrote {_counted(reading.lines)} to {arguments.out}, {count:,} bytes")
    for note in notes:
        console.note(note)
    return FINE


@dataclass(slots=True)
class _Reading:
    """A ledger that is read in order, and how far that has come."""

    source: Source
    first: int
    last: int | None
    begun: int | None = None
    ended: int | None = None
    lines: int = 0
    unfinished: int = 0

    def parts(self) -> Iterator[bytes]:
        """What is wanted of it, in large pieces; what is torn stays where it is."""
        parts: list[bytes] = []
        size = place = seen = 0
        with Progress("exporting", self.source.size) as progress:
            for piece in self._wanted():
                parts.append(piece)
                size += len(piece)
                if size >= _AT_ONCE:
                    place, seen = place + size, seen + len(parts)
                    progress.at(seen if self.source.url.startswith("sqlite:") else place, seen)
                    yield b"".join(parts)
                    parts.clear()
                    size = 0
        if parts:
            yield b"".join(parts)

    def _wanted(self) -> Iterator[bytes]:
        open_piece = b""  # what is no line may come in several pieces
        for part in self.source.physical():
            piece = open_piece + part
            if not part.endswith(b"\n"):
                open_piece = piece
                continue
            open_piece = b""
            found = _SEQ.match(piece)
            seq = int(found[1]) if found else None
            if self.begun is None and (seq is None or seq < self.first) and self.first > 0:
                continue
            if self.last is not None and seq is not None and seq > self.last:
                return
            if seq is not None:
                self.begun = seq if self.begun is None else self.begun
                self.ended = seq
                self.lines += 1
            yield piece
        self.unfinished = len(open_piece)

    def notes(self) -> list[str]:
        """What was left out."""
        if not self.unfinished:
            return []
        return [f"left out {self.unfinished:,} bytes at the end: a line that is not finished"]


def _unverifiable(source: Source, reading: _Reading) -> list[str]:
    """Which part of what was exported says nothing by itself."""
    begin, _ = source.bounds()
    notes = []
    if reading.begun is not None and reading.begun > begin:
        notes.append(
            f"cannot be verified by itself: the lines before {reading.begun:,} are not in it; "
            "export from the first line on, or prove single lines (ledger prove)"
        )
    removed = source.removed()
    if removed is not None and reading.last is not None and not notes:
        notes.append(
            "if the checkpoint that tells of the removed lines is not in it, it cannot be "
            "verified by itself: leave out --to"
        )
    return notes


def _counted(lines: int) -> str:
    return f"{lines:,} line{'' if lines == 1 else 's'}"
