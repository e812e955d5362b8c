"""Finding lines and calls by an index: which rows fit a search, and reading their lines."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from mcp_envelope.core.ports import LedgerError, Source
from mcp_envelope.core.search import (
    Search,
    bodies_in,
    text_finder,
)

from .index import Index, Progress
from .index_file import DAMAGE, is_busy
from .index_schema import ADMITTED, INSTANCE, OUTCOME, PEER, STARTED, short
from .index_where import Where, statement_of, where_of
from .jsonl_bodies import digests_with

_ROWS: Final = 500
_AFTER_ALL: Final = "\U0010ffff"
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
    where = where_of(index.db, search)
    if where is None:
        found.matched = 0
        return
    if search.text is not None or search.trace is not None:
        yield from _scanned(index, where, found, progress)
        return
    statement, total = statement_of(index.db, where)
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
    begin = text[:6]
    asked: tuple[tuple[str, tuple[str, ...], Callable[[str], bool]], ...] = (
        ("id = ?", (short(text),), lambda found: found == text),
        ("id >= ? AND id < ?", (begin, begin + _AFTER_ALL), lambda found: found.startswith(text)),
    )
    for clause, values, is_meant in asked:
        found: dict[str, list[int]] = {}
        for name, places in _calls(index, clause, values):
            if is_meant(name) and (name in found or len(found) < most):
                known = found.setdefault(name, [])
                known += [place for place in places if place not in known]
            if len(found) == most:
                break
        if found:
            return {name: sorted(places) for name, places in found.items()}
    return {}


def _calls(
    index: Index, clause: str, values: tuple[str, ...]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The ids of calls, in full, with the places of some of their lines."""
    for part in index.parts:
        rows = index.db.execute(
            "SELECT i.place, c.begun FROM ids i JOIN calls c USING (place) "
            f"WHERE part = ? AND {clause}",
            (part, *values),
        )
        for place, begun in rows:
            hit = _read(index.source, _Row(place, is_open=False))
            name = _object(hit.line).get("request_id") if hit is not None else None
            if isinstance(name, str):
                yield name, tuple(one for one in (begun, place) if one is not None)


def _rows(db: sqlite3.Connection, statement: str, limit: int) -> Iterator[_Row]:
    cursor = db.execute(f"{statement} LIMIT {limit}" if limit else statement)
    while rows := cursor.fetchmany(_ROWS):
        for place, event, is_call, *_ in rows:
            yield _Row(place, bool(is_call) and event == ADMITTED)


def _scanned(index: Index, where: Where, found: Found, progress: Progress | None) -> Iterator[Hit]:
    """Look into the lines that the other conditions leave, in order, until there are enough."""
    search = where.search
    if search.trace is not None:
        statement, total = _traced(index, where)
    else:
        statement, total = statement_of(index.db, where)
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


def _traced(index: Index, where: Where) -> tuple[str, int]:
    begin = (where.search.trace or "")[:6]
    index.db.execute("DELETE FROM traced")
    for part in index.parts:
        index.db.execute(
            "INSERT INTO traced SELECT place FROM traces WHERE part = ? AND id >= ? AND id < ?",
            (part, begin, begin + _AFTER_ALL),
        )
    total = index.db.execute("SELECT count(*) FROM traced").fetchone()[0]
    order = "ASC" if where.search.oldest_first else "DESC"
    arms = [
        f"SELECT place, event, {number}, time FROM {table} "
        f"WHERE place IN (SELECT place FROM traced) AND {where.clause('place')}"
        for table, number in where.tables
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
        try:
            body = source.body(digest)
        except LedgerError:  # it is not what was kept
            return False
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
