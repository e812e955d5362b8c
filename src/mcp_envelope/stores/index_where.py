"""The conditions of a search as SQL, and which index of the tables to go by."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from mcp_envelope.core.search import Search, kind_matcher, matcher, outcome_matcher

from .index_schema import ADMITTED, EVENT_NUMBERS, INSTANCE, OK, OUTCOME, PEER

#: The most rows of an index that are counted to see how selective a filter is.
_SAMPLE: Final = 20_000
#: The most numbers of one filter for which their rows are merged in the order of time.
_ARMS: Final = 50
_ENDS: Final = frozenset({"settled", "refused", "malformed"})
_INDEXES: Final = {
    "subject": "calls_subject",
    "peer": "calls_peer",
    "outcome": "calls_outcome",
}


@dataclass(slots=True)
class Where:
    """The conditions of a search as SQL: which numbers each column may have, and when."""

    search: Search
    numbers: dict[str, list[int]] = field(default_factory=dict)

    @property
    def tables(self) -> tuple[tuple[str, int], ...]:
        """The tables in which there may be such rows, and whether these are calls."""
        calls, others = ("calls", 1), ("others", 0)
        event = self.search.event
        if event in _ENDS or self.search.wants_calls:
            return (calls,)
        return (calls, others) if event in (None, "admitted") else (others,)

    def clause(self, driver: str | None = None) -> str:
        """The conditions; only that on ``driver``, if one is named, may choose an index."""
        parts = []
        for column, numbers in self.numbers.items():
            mark = "" if driver in (None, column) else "+"
            parts.append(f"{mark}{column} IN ({','.join(map(str, numbers))})")
        return " AND ".join([*parts, *self._other(driver)]) or "1"

    def arm(self, driver: str, number: int) -> str:
        """The conditions for one number of the driving column."""
        others = Where(self.search, {c: n for c, n in self.numbers.items() if c != driver})
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


def where_of(db: sqlite3.Connection, search: Search) -> Where | None:
    """The names of a search as numbers; None if there are none such, so that nothing fits."""
    where = Where(search)
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


def statement_of(db: sqlite3.Connection, where: Where) -> tuple[str, int]:
    """What selects the rows of a search in its order, and how many there are."""
    order = "ASC" if where.search.oldest_first else "DESC"
    if not where.search.wants_calls:
        clause, tables = where.clause(), where.tables
        arms = [f"SELECT place, event, {n} FROM {table} WHERE {clause}" for table, n in tables]
        counts = (f"SELECT count(*) FROM {table} WHERE {clause}" for table, _ in tables)
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


def _driver(db: sqlite3.Connection, where: Where) -> tuple[str | None, int]:
    """The column whose index leaves the least to look at, None for time; and the count of all."""
    sizes: dict[str, int] = {}
    for column in _INDEXES:
        numbers = where.numbers.get(column)
        if numbers is None or (column == "outcome" and OK in numbers):
            continue
        alone = Where(where.search, {column: numbers})
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
