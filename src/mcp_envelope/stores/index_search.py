"""Finding lines and calls by an index: which rows fit a search, and reading their lines."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from mcp_envelope.core.ports import LedgerError, Source
from mcp_envelope.core.search import (
    Search,
    bodies_in,
    kind_matcher,
    matcher,
    outcome_matcher,
    text_finder,
)

from .index import Index, Progress
from .index_file import DAMAGE, is_busy
from .index_schema import ADMITTED, EVENT_NUMBERS, INSTANCE, OK, OUTCOME, PEER, STARTED, short
from .jsonl_bodies import digests_with

#: The most rows of an index that are counted to see how selective a filter is.
_SAMPLE: Final = 20_000
#: The most numbers of one filter for which their rows are merged in the order of time.
_ARMS: Final = 50
_ROWS: Final = 500
_AFTER_ALL: Final = "\U0010ffff"
_INDEXES: Final = {
    "subject": "calls_subject",
    "peer": "calls_peer",
    "outcome": "calls_outcome",
}


_NAMES: Final = {
    "tool": "SELECT DISTINCT tool FROM subjects WHERE tool <> ''",
    "kind": "SELECT DISTINCT kind FROM subjects WHERE kind <> ''",
    "peer": f"SELECT name FROM names WHERE field = {PEER}",
    "outcome": f"SELECT name FROM names WHERE field = {OUTCOME}",
    "instance": f"SELECT name FROM names WHERE field = {INSTANCE}",
}
_NEWEST_RUN: Final = f"SELECT max(place) FROM others WHERE event = {STARTED} AND event > {ADMITTED}"
T = TypeVar("T")


class Hit(NamedTuple):
    """A line that was found. ``is_open``: it begins a call of whose end nothing is known."""

    place: int
    line: bytes
    is_open: bool


class Found:
    """What a search finds: the lines up to its limit, in its order, read as they are asked for.

    ``matched`` is how many there are altogether; None where the search for a text ended at the
    limit, and before it has ended. ``more`` is whether there are others than these.
    """

    def __init__(self, matched: int | None = None, *, more: bool = False) -> None:
        self.matched = matched
        self.more = more
        self.hits: Iterator[Hit] = iter(())

    def __iter__(self) -> Iterator[Hit]:
        return self.hits


class _Row(NamedTuple):
    place: int
    is_open: bool


@dataclass(slots=True)
class _Where:
    """The conditions of a search as SQL: which numbers each column may have, and when."""

    search: Search
    numbers: dict[str, list[int]] = field(default_factory=dict)

    def clause(self, driver: str | None = None) -> str:
        """The conditions; only that on ``driver``, if one is named, may choose an index."""
        parts = []
        for column, numbers in self.numbers.items():
            mark = "" if driver in (None, column) else "+"
            parts.append(f"{mark}{column} IN ({','.join(map(str, numbers))})")
        return " AND ".join([*parts, *self._other(driver)]) or "1"

    def arm(self, driver: str, number: int) -> str:
        """The conditions for one number of the driving column."""
        others = _Where(self.search, {c: n for c, n in self.numbers.items() if c != driver})
        return f"{driver} = {number} AND {others.clause(driver)}"

    def _other(self, driver: str | None) -> Iterator[str]:
        if driver == "outcome":
            yield f"outcome <> {OK}"  # what its index is restricted to
        if self.search.event is not None:
            number = EVENT_NUMBERS[self.search.event]
            yield f"event = {number}"
            if number > ADMITTED:
                yield f"event > {ADMITTED}"  # what the index of the others is restricted to
        mark = "+" if driver == "place" else ""
        if self.search.since is not None:
            yield f"{mark}time >= {int(self.search.since)}"
        if self.search.until is not None:
            yield f"{mark}time <= {int(self.search.until)}"


def find(index: Index, search: Search, progress: Progress | None = None) -> Found:
    """Search what the index knows; follow first. ``progress`` is told of lines that were read.

    LedgerError, as the hits are read, where the ledger cannot be read. An index that shows to
    be damaged meanwhile is made anew.
    """
    found = Found()
    found.hits = _hits(index, search, found, progress)
    return found


def _hits(index: Index, search: Search, found: Found, progress: Progress | None) -> Iterator[Hit]:
    given = 0
    for is_last in (False, True):
        try:
            for hit in islice(_tried(index, search, found, progress), given, None):
                given += 1
                yield hit
        except DAMAGE as error:
            if is_last or is_busy(error):
                raise LedgerError(f"the index cannot be searched: {error}") from None
            index.renew()
            index.follow()
        else:
            return


def _tried(index: Index, search: Search, found: Found, progress: Progress | None) -> Iterator[Hit]:
    where = _where_of(index.db, search)
    if where is None:
        found.matched = 0
        return
    if search.text is not None or search.trace is not None:
        yield from _scanned(index, where, found, progress)
        return
    statement, total = _statement(index.db, where)
    found.matched, found.more = total, bool(search.limit) and total > search.limit
    for row in _rows(index.db, statement, search.limit):
        hit = _read(index.source, row)
        if hit is not None:
            yield hit


def _sure(index: Index, ask: Callable[[], T]) -> T:
    """An answer of the index, which is made anew if it shows to be damaged."""
    try:
        return ask()
    except DAMAGE as error:
        if is_busy(error):
            raise LedgerError(f"the index cannot be searched: {error}") from None
    index.renew()
    index.follow()
    return ask()


def names_of(index: Index, what: str) -> list[str]:
    """All names of a kind of name that the index knows: ``tool``, ``kind``, ``peer`` and so on."""
    statement = _NAMES[what]
    return _sure(index, lambda: sorted(row[0] for row in index.db.execute(statement)))


def by_id(index: Index, text: str, most: int = 20) -> dict[str, list[int]]:
    """The calls whose id is this, or else begins so: their ids, and the places of their lines."""
    return _sure(index, lambda: _by_id(index, text, most))


def has_run_since(index: Index, place: int) -> bool:
    """Whether a run of a gateway began behind a line: then the one that wrote it has ended."""
    (last,) = _sure(index, lambda: index.db.execute(_NEWEST_RUN).fetchone())
    return last is not None and last > place


def _by_id(index: Index, text: str, most: int) -> dict[str, list[int]]:
    exact = _calls(index, "id = ?", (short(text),), lambda found: found == text, most)
    if exact:
        return exact
    begin = text[:6]
    between = (begin, begin + _AFTER_ALL)
    return _calls(index, "id >= ? AND id < ?", between, lambda found: found.startswith(text), most)


def _calls(
    index: Index,
    clause: str,
    values: tuple[str, ...],
    is_meant: Callable[[str], bool],
    most: int,
) -> dict[str, list[int]]:
    rows = index.db.execute(
        f"SELECT i.place, c.begun FROM ids i JOIN calls c USING (place) WHERE {clause}", values
    )
    found: dict[str, list[int]] = {}
    for place, begun in rows:
        hit = _read(index.source, _Row(place, is_open=False))
        name = _object(hit.line).get("request_id") if hit is not None else None
        if isinstance(name, str) and is_meant(name):
            if name not in found and len(found) == most:
                break
            places = found.setdefault(name, [])
            places += [one for one in (begun, place) if one is not None and one not in places]
    return {name: sorted(places) for name, places in found.items()}


def _where_of(db: sqlite3.Connection, search: Search) -> _Where | None:
    """The names of a search as numbers; None if there are none such, so that nothing fits."""
    where = _Where(search)
    if search.tool is not None or search.kind is not None:
        of_tool = matcher(search.tool) if search.tool is not None else _anything
        of_kind = kind_matcher(search.kind) if search.kind is not None else _anything
        where.numbers["subject"] = [
            number
            for number, kind, tool in db.execute("SELECT id, kind, tool FROM subjects")
            if of_tool(tool) and of_kind(kind)
            if not (search.tool and not tool) and not (search.kind and not kind)
        ]
    named = (
        ("peer", PEER, search.peer, matcher),
        ("outcome", OUTCOME, search.outcome, outcome_matcher),
        ("instance", INSTANCE, search.instance, matcher),
    )
    for column, number, pattern, made in named:
        if pattern is not None:
            fits = made(pattern)
            rows = db.execute("SELECT id, name FROM names WHERE field = ?", (number,))
            where.numbers[column] = [id for id, name in rows if fits(name)]
    return where if all(where.numbers.values()) else None


def _anything(_: str) -> bool:
    return True


def _statement(db: sqlite3.Connection, where: _Where) -> tuple[str, int]:
    """What selects the rows of a search in its order, and how many there are."""
    order = "ASC" if where.search.oldest_first else "DESC"
    if not where.search.wants_calls:
        clause = where.clause()
        arms = [
            f"SELECT place, event, {number} FROM {table} WHERE {clause}"
            for number, table in ((1, "calls"), (0, "others"))
        ]
        counts = (f"SELECT count(*) FROM {table} WHERE {clause}" for table in ("calls", "others"))
        total = sum(db.execute(count).fetchone()[0] for count in counts)
        return f"{' UNION ALL '.join(arms)} ORDER BY place {order}", total
    driver, total = _driver(db, where)
    columns = "place, event, 1, time"
    if driver is None:
        clause = where.clause("time")
        selected = f"SELECT {columns} FROM calls INDEXED BY calls_time WHERE {clause}"
    elif len(where.numbers[driver]) <= _ARMS:
        selected = " UNION ALL ".join(
            f"SELECT {columns} FROM calls INDEXED BY {_INDEXES[driver]} "
            f"WHERE {where.arm(driver, number)}"
            for number in where.numbers[driver]
        )
    else:
        selected = f"SELECT {columns} FROM calls WHERE {where.clause(driver)}"
    return f"{selected} ORDER BY time {order}, place {order}", total


def _driver(db: sqlite3.Connection, where: _Where) -> tuple[str | None, int]:
    """The column whose index leaves the least to look at, None for time; and the count of all."""
    sizes: dict[str, int] = {}
    for column in _INDEXES:
        numbers = where.numbers.get(column)
        if numbers is None or (column == "outcome" and OK in numbers):
            continue
        alone = _Where(where.search, {column: numbers})
        sizes[column] = db.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM calls WHERE {alone.clause(column)} "
            f"LIMIT {_SAMPLE})"
        ).fetchone()[0]
    usable = [c for c, n in sizes.items() if n < _SAMPLE or len(where.numbers[c]) <= _ARMS]
    driver = min(usable, key=lambda column: sizes[column], default=None)
    if driver is not None and sizes[driver] < _SAMPLE and len(where.numbers) == 1:
        return driver, sizes[driver]
    clause = where.clause(driver) if driver is not None else where.clause("time")
    if not where.numbers and where.search.since is None and where.search.until is None:
        clause = "1"
    return driver, db.execute(f"SELECT count(*) FROM calls WHERE {clause}").fetchone()[0]


def _rows(db: sqlite3.Connection, statement: str, limit: int) -> Iterator[_Row]:
    cursor = db.execute(f"{statement} LIMIT {limit}" if limit else statement)
    while rows := cursor.fetchmany(_ROWS):
        for place, event, is_call, *_ in rows:
            yield _Row(place, bool(is_call) and event == ADMITTED)


def _scanned(index: Index, where: _Where, found: Found, progress: Progress | None) -> Iterator[Hit]:
    """Look into the lines that the other conditions leave, in order, until there are enough."""
    search = where.search
    if search.trace is not None:
        statement, total = _traced(index.db, where)
    else:
        statement, total = _statement(index.db, where)
    fits = _line_test(index.source, search)
    matched = 0
    for seen, row in enumerate(_rows(index.db, statement, 0), 1):
        if progress is not None and seen % _ROWS == 0:
            progress(seen, total)
        hit = _read(index.source, row)
        if hit is None or not fits(hit.line):
            continue
        matched += 1
        if not search.limit or matched <= search.limit:
            yield hit
            continue
        found.more = True
        if search.text is not None:
            return  # who knows how many more
    found.matched = matched


def _traced(db: sqlite3.Connection, where: _Where) -> tuple[str, int]:
    begin = (where.search.trace or "")[:6]
    db.execute("DELETE FROM traced")
    total = db.execute(
        "INSERT INTO traced SELECT place FROM traces WHERE id >= ? AND id < ?",
        (begin, begin + _AFTER_ALL),
    ).rowcount
    order = "ASC" if where.search.oldest_first else "DESC"
    tables = (("1", "calls"), ("0", "others"))
    arms = [
        f"SELECT place, event, {number}, time FROM {table} "
        f"WHERE place IN (SELECT place FROM traced) AND {where.clause('place')}"
        for number, table in tables[: 1 if where.search.wants_calls else 2]
    ]
    by = "time {0}, place {0}" if where.search.wants_calls else "place {0}"
    return f"{' UNION ALL '.join(arms)} ORDER BY {by.format(order)}", total


def _line_test(source: Source, search: Search) -> Callable[[bytes], bool]:
    """Whether a line has the trace and the text that are looked for."""
    has_text = text_finder(search.text) if search.text is not None else None
    has_body = _body_test(source, has_text) if has_text is not None else None

    def fits(line: bytes) -> bool:
        if search.trace is not None:
            trace = _object(line).get("trace_id")
            if not (isinstance(trace, str) and trace.startswith(search.trace)):
                return False
        if has_text is None or has_body is None or has_text(line):
            return True
        return any(has_body(digest) for _, digest in bodies_in(_object(line)))

    return fits


def _body_test(source: Source, has_text: Callable[[bytes], bool]) -> Callable[[str], bool]:
    """Whether what was kept under a digest has the text."""
    scheme, _, place = source.url.partition(":")
    if scheme == "jsonl":
        # Each look at a file of bodies reads it from its beginning: better once for all.
        digests = frozenset(digests_with(Path(place), has_text))
        return digests.__contains__

    def has(digest: str) -> bool:
        body = source.body(digest)
        return body is not None and has_text(body)

    return has


def _read(source: Source, row: _Row) -> Hit | None:
    """The line of a row; None if it is gone meanwhile."""
    try:
        return Hit(row.place, source.at(row.place), row.is_open)
    except LedgerError:
        return None


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
