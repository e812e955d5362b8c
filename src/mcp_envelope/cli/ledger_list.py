"""``ledger list``: which ledgers there are, and who writes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import mcp_envelope as me
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.ports import LedgerError, Source
from mcp_envelope.stores import read_ledger
from mcp_envelope.stores.locks import holder_of, note_of
from mcp_envelope.stores.places import state_directory

from .console import FINE, Console, utf8
from .entries import object_of
from .records import files_in
from .spared import is_ledger

if TYPE_CHECKING:
    import argparse

    from .arguments import Parser

EXAMPLE = "mcp-envelope ledger list"

_HEAD: Final = ("FILE", "BYTES", "LINES", "FIRST", "LAST", "HELD BY")
_TO_THE_RIGHT: Final = frozenset({"BYTES", "LINES"})


@dataclass(frozen=True, slots=True)
class _Listed:
    """A ledger as it was found; ``problem`` is why not all of that is known, else empty."""

    path: str
    bytes: int
    lines: int | None = None
    first: str | None = None
    last: str | None = None
    held: bool = False
    holder: int | None = None
    problem: str = ""


def configure(parser: Parser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "folder",
        metavar="DIR",
        nargs="?",
        help="look into this folder, not into that where gateways keep their ledgers by default",
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    given = arguments.folder
    if given is not None and not Path(given).is_dir():
        raise me.UsageError(f"there is no folder {given}", hint="leave it out for the default one")
    folder = state_directory() if given is None else Path(given)
    found = [_listed(path) for path in files_in(folder) if is_ledger(path)]
    if console.json:
        listed = [{**asdict(one), "path": utf8(one.path)} for one in found]
        console.result({"folder": utf8(str(folder)), "ledgers": listed})
    elif found:
        for row in _rows(found):
            console.say(row)
        console.say()
        console.say(f"in {folder}")
    else:
        console.say(f"no ledger in {folder}")
    return FINE


def _listed(path: Path) -> _Listed:
    log = path.with_name(f"{path.name}-wal")
    size = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
    try:
        source = read_ledger(str(path))
        try:
            first, end = source.bounds()
            has_lines = end > first
            oldest = _time(source, first) if has_lines else None
            newest = _time(source, end - 1) if has_lines else None
            is_database = source.url.startswith("sqlite:")
        finally:
            source.close()
        held = holder_of(note_of(path) if is_database else path, path)
    except (EnvelopeError, LedgerError, OSError) as error:
        return _Listed(str(path), size, problem=str(error))
    holder = held.holder if held is not None else None
    return _Listed(str(path), size, end - first, oldest, newest, held is not None, holder)


def _time(source: Source, seq: int) -> str | None:
    place = source.place_of(seq)
    entry = object_of(source.at(place)) if place is not None else None
    time = entry.get("time") if entry is not None else None
    return time if isinstance(time, str) else None


def _rows(found: Sequence[_Listed]) -> Iterator[str]:
    cells = [_HEAD, *map(_cells, found)]
    wide = [max(len(row[at]) for row in cells) for at in range(len(_HEAD))]
    for row, one in zip(cells, (None, *found), strict=True):
        parts = [
            cell.rjust(wide[at]) if _HEAD[at] in _TO_THE_RIGHT else cell.ljust(wide[at])
            for at, cell in enumerate(row)
        ]
        yield "  ".join(parts).rstrip()
        if one is not None and one.problem:
            yield f"  {one.problem}"


def _cells(one: _Listed) -> tuple[str, ...]:
    held = f"process {one.holder}" if one.holder is not None else "a process" if one.held else ""
    lines = f"{one.lines:,}" if one.lines is not None else "-"
    name = Path(one.path).name
    return (name, f"{one.bytes:,}", lines, one.first or "-", one.last or "-", held)
