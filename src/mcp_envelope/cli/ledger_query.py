"""``ledger query``: which calls were there."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import mcp_envelope as me
from mcp_envelope.core.codes import TABLE
from mcp_envelope.core.search import EVENTS, FAILED, UNKNOWN, Search, moment
from mcp_envelope.stores.index import Index
from mcp_envelope.stores.index_search import Found, find, names_of

from .arguments import nearest
from .console import FINE, Console
from .entries import Table, counted, object_of
from .indexes import indexed
from .outputs import Progress
from .records import LEDGER, opened

if TYPE_CHECKING:
    import argparse

    from .arguments import Parser

EXAMPLE = "mcp-envelope ledger query calls.db --since 1h --outcome failed"

_LIMIT: Final = 100
_BLOCK: Final = 100
_NAMED: Final = ("tool", "peer", "outcome", "kind", "instance")
_MOST_NAMES: Final = 5
#: Two outcomes that are easily taken for one.
_UNKNOWNS: Final = {
    UNKNOWN: "the call was admitted, and the record has no end of it",
    "OUTCOME_UNKNOWN": "the call has an end, and nobody knows whether the tool did it",
}


def configure(parser: Parser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("ledger", metavar="URL|FILE", help=LEDGER)
    when = "a time (2026-11-19T20:59:08Z), a date, or how long ago: 90s, 15m, 2h, 3d, 1w"
    parser.add_argument("--since", metavar="T", help=f"only what ended since then: {when}")
    parser.add_argument(
        "--until", metavar="T", help="only what ended until then; a date is its end"
    )
    parser.add_argument("--tool", metavar="X", help="only this tool; * is any text")
    parser.add_argument("--peer", metavar="X", help="only what this peer asked for; * is any text")
    parser.add_argument(
        "--outcome",
        metavar="X",
        help="only with this outcome: ok, an error code, outcome_unknown, or failed for all but "
        "ok; * is any text",
    )
    parser.add_argument(
        "--kind", metavar="K", help="only this kind, like mcp/request:resources/read; * is any text"
    )
    parser.add_argument(
        "--instance", metavar="ID", help="only what this run of a gateway wrote; * is any text"
    )
    parser.add_argument(
        "--event", metavar="E", help=f"lines of this event, not calls: {', '.join(EVENTS)}"
    )
    parser.add_argument("--trace", metavar="ID", help="only this trace, or those that begin so")
    parser.add_argument(
        "--text", metavar="S", help="only with this text in the line or in kept bodies, in any case"
    )
    parser.add_argument(
        "--limit", metavar="N", help=f"show at most so many ({_LIMIT}); 0 is for all"
    )
    parser.add_argument(
        "--oldest-first", action="store_true", help="begin with the oldest, not the newest"
    )
    parser.add_argument(
        "--lines", action="store_true", help="every line, not one for each call, by their numbers"
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    search = _search(arguments)
    with (
        opened(arguments.ledger) as source,
        indexed(source, console) as index,
        _Searching() as searching,
    ):
        found = find(index, search, searching.at)
        if console.json:
            _as_json(found, console)
        else:
            _as_table(found, search, index, searching, console)
    return FINE


class _Searching:
    """How far a search has come that reads lines."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def at(self, place: int, total: int) -> None:
        """So many lines of so many were read."""
        if self._progress is None:
            self._progress = Progress("searching", total)
        self._progress.at(place, place)

    def end(self) -> None:
        """Make room for something else."""
        if self._progress is not None:
            self._progress.end()

    def __enter__(self) -> _Searching:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def _search(arguments: argparse.Namespace) -> Search:
    now = time.time_ns() // 1_000_000
    since = moment(arguments.since, now) if arguments.since is not None else None
    until = moment(arguments.until, now, is_end=True) if arguments.until is not None else None
    if since is not None and until is not None and since > until:
        message = f"--since {arguments.since:.80} is after --until {arguments.until:.80}"
        raise me.UsageError(message, hint="nothing can be between them: exchange them")
    _check_outcome(arguments.outcome)
    return Search(
        since=since,
        until=until,
        **{name: getattr(arguments, name) for name in (*_NAMED, "event", "trace", "text")},
        lines=arguments.lines,
        oldest_first=arguments.oldest_first,
        limit=count_of(arguments.limit, "--limit", _LIMIT),
    )


def _check_outcome(name: str | None) -> None:
    """Raise UsageError for an outcome that no call can have; ``*`` is any text."""
    outcomes = ("ok", FAILED, UNKNOWN, *TABLE)
    if not name or "*" in name or name.lower() in {one.lower() for one in outcomes}:
        return
    near = nearest(name.lower(), [one.lower() for one in outcomes])
    meant = next((one for one in outcomes if one.lower() == near), None)
    known = f"there are ok, {FAILED}, {UNKNOWN}, and the codes of mcp-envelope errors"
    hint = f"did you mean {meant}? {known}" if meant else known
    raise me.UsageError(f"--outcome: no outcome is called {name!r:.80}", hint=hint)


def count_of(text: str | None, option: str, default: int) -> int:
    """How many, as an option says it. UsageError for what is no number."""
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise me.UsageError(f"{option} must be a number, not {text!r:.80}")
    return int(text)


def _as_json(found: Found, console: Console) -> None:
    """One JSON value, written as it is found: there may be more lines than memory holds."""
    between = b'{"entries":['
    for hit in found:
        if object_of(hit.line) is not None:
            console.write(between + hit.line)
            between = b","
    rest = me.dump({"matched": found.matched, "more": found.more})
    console.write((b"" if between == b"," else between) + b"]," + rest[1:] + b"\n")


def _as_table(
    found: Found, search: Search, index: Index, searching: _Searching, console: Console
) -> None:
    table = Table(lines=not search.wants_calls)
    count, outcomes = 0, set()
    while block := list(islice(_readable(found), _BLOCK)):
        searching.end()
        for row in table.rows(block):
            console.say(row)
        outcomes |= {UNKNOWN if is_open else entry.get("outcome") for entry, is_open in block}
        count += len(block)
    searching.end()
    what = "call" if search.wants_calls else "line"
    if count:
        console.say()
    if count and found.more:
        of_all = f" of {found.matched:,}" if found.matched is not None else ""
        first = "oldest" if search.oldest_first else "newest"
        said = f"the {first} {count:,}{of_all} {what}s" if count > 1 else f"1{of_all} {what}s"
        console.say(f"{said}; there are more: --limit 0 shows all")
    elif count:
        console.say(counted(count, what))
    else:
        known = counted(index.lines, "line")
        console.say(f"no {what} is like that among the {known} of this ledger")
    for name, meaning in _UNKNOWNS.items():
        if name in outcomes:
            console.say(f"  {name}: {meaning}")
    for hint in _hints(search, index) if not count else ():
        console.say(hint)


def _readable(found: Found) -> Iterator[tuple[dict[str, Any], bool]]:
    for hit in found:
        entry = object_of(hit.line)
        if entry is not None:
            yield entry, hit.is_open


def _hints(search: Search, index: Index) -> Iterator[str]:
    """Which names there are, where one that was asked for is none."""
    for what in _NAMED:
        name = getattr(search, what)
        if name is None or "*" in name or name.lower() == FAILED:
            continue
        names = names_of(index, what)
        if not any(one.startswith(name) or one.lower() == name.lower() for one in names):
            near = nearest(name, names)
            some = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
            meant = f"did you mean {near}?" if near else f"there are {some}" if some else ""
            yield f"no {what} here is called {name!r}{'; ' * bool(meant)}{meant}"
