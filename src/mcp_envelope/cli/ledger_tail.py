"""``ledger tail``: the newest calls, and those that come."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp_envelope.core.ports import Placed, Source

from .console import FINE, Console
from .entries import Table, object_of
from .ledger_query import count_of
from .records import LEDGER, has_default, opened

if TYPE_CHECKING:
    import argparse

    from .arguments import Parser

EXAMPLE = "mcp-envelope ledger tail calls.db --follow"

_COUNT: Final = 10
_EVERY_S: Final = 0.2
_ENDS: Final = frozenset({"settled", "refused", "malformed"})

_Row = tuple[Placed, dict[str, Any], bool]


def configure(parser: Parser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("ledger", metavar="URL|FILE", help=LEDGER)
    parser.add_argument("-n", metavar="N", dest="count", help=f"how many of the newest ({_COUNT})")
    parser.add_argument(
        "--follow",
        action="store_true",
        help="go on with what comes, until Ctrl-C; waits for a file that is not there yet",
    )
    parser.add_argument("--lines", action="store_true", help="every line, not one for each call")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    count = count_of(arguments.count, "-n", _COUNT)
    if arguments.follow:
        _await(arguments.ledger, console)
    with opened(arguments.ledger) as source:
        printer = _Printer(console, lines=arguments.lines)
        rows, place = _newest(source, count, lines=arguments.lines)
        printer.show(rows)
        while arguments.follow:
            new = list(source.after(place))
            if new:
                place = new[-1].after
                printer.show(_rows(new, lines=arguments.lines, is_whole=False))
            console.flush()
            time.sleep(_EVERY_S)
        printer.end()
    return FINE


class _Printer:
    """Prints rows: as a table, or each line exactly as it is."""

    def __init__(self, console: Console, *, lines: bool) -> None:
        self._console = console
        self._table = Table(lines=lines)
        self._what = "line" if lines else "call"
        self._is_empty = True

    def show(self, rows: Sequence[_Row]) -> None:
        """Print some more."""
        if not rows:
            return
        self._is_empty = False
        if self._console.json:
            for placed, _, _ in rows:
                self._console.write(placed.line + b"\n")
            return
        for row in self._table.rows([(entry, is_open) for _, entry, is_open in rows]):
            self._console.say(row)

    def end(self) -> None:
        """Say so if there was nothing."""
        if self._is_empty and not self._console.json:
            self._console.say(f"there is no {self._what} yet")


def _newest(source: Source, count: int, *, lines: bool) -> tuple[list[_Row], int]:
    """The newest rows, oldest first, and the place where what comes will be."""
    first, end = source.bounds()
    back = max(4 * count, 64)
    while True:
        begin = max(first, end - back)
        place = source.place_of(begin) if begin > first else 0
        found = list(source.after(place or 0))
        rows = _rows(found, lines=lines, is_whole=True)
        if len(rows) >= count or not place:
            after = found[-1].after if found else 0
            return rows[len(rows) - min(count, len(rows)) :], after
        back *= 4


def _rows(found: Sequence[Placed], *, lines: bool, is_whole: bool) -> list[_Row]:
    """Those of these lines that stand for a call, or all; ``is_whole``: no end is still to come."""
    read = [(placed, entry) for placed in found if (entry := object_of(placed.line)) is not None]
    ended = {entry.get("request_id") for _, entry in read if entry.get("event") == "settled"}
    rows = []
    for placed, entry in read:
        event = entry.get("event")
        is_open = is_whole and event == "admitted" and entry.get("request_id") not in ended
        if lines or event in _ENDS or is_open:
            rows.append((placed, entry, is_open))
    return rows


def _await(name: str, console: Console) -> None:
    """Wait until there is a ledger of that name; what else is wrong opening it will say."""
    place = name.partition(":")[2] if name.startswith(("jsonl:", "sqlite:")) else name
    path = Path(place).expanduser()
    if place in ("", "-") or not path.parent.is_dir() or _has_something(path):
        return
    if place == name and not path.exists() and has_default(name):
        return
    console.note(f"waiting for {place}")
    while not _has_something(path):
        time.sleep(_EVERY_S)


def _has_something(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False
