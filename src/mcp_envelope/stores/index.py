"""A search index over a ledger, in a file beside it: ``PATH.index``.

It is derived from the ledger and holds nothing of its own: it may be deleted at any time. It is
made anew where SQLite finds it damaged, or where the ledger no longer has the last line that it
knows. Nothing else is compared: what somebody writes into it, or takes out, is believed, so it is
no evidence of what the ledger holds. Several processes may follow one ledger at once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from mcp_envelope.core.ports import LedgerError, Placed, Source

from .index_file import DAMAGE, IndexFile, busy, has_no_place, is_busy, is_interrupted
from .index_schema import FORGET, FROM_LEDGER, FROM_RAW, PART, TAKE_IN

#: The most lines, and about the most bytes, that are taken in at a time beside other work.
LINES: Final = 20_000
BYTES: Final = 16 << 20
#: The most lines at a time where there is nothing else to do.
MANY: Final = 50_000

#: Told how much of a ledger was taken in so far, and of how much, in the unit of places.
Progress = Callable[[int, int], None]

# Where deleting removed lines was cut short they are there and do not count.
_BOUNDS: Final = """SELECT
    max(coalesce((SELECT min(seq) FROM ledger.lines), 0),
        coalesce((SELECT CAST(value AS INTEGER) FROM ledger.facts WHERE name = 'removed'), 0)),
    coalesce((SELECT max(seq) FROM ledger.lines) + 1, 0)"""
_LINE: Final = "SELECT CAST(line AS BLOB) FROM ledger.lines WHERE seq = ?"
_FILES: Final = frozenset({"jsonl", "sqlite"})


class _State(NamedTuple):
    """How far an index has come: where it goes on, and the last line that it knows."""

    place: int = 0
    first: int = 0
    last: int = -1
    digest: str = ""
    lines: int = 0
    damaged: int = 0


class _StaleError(Exception):
    """The index is that of another ledger, or of one that was cut short."""


def path_beside(source: Source) -> Path | None:
    """Where the index of a ledger lies: beside the file itself, whatever links lead to it."""
    scheme, _, place = source.url.partition(":")
    if scheme not in _FILES or not place:
        return None
    real = Path(place).resolve()
    return real.with_name(f"{real.name}.index")


class Index:
    """The index of the ledger that ``source`` reads. One thread at a time may use it.

    Where nothing can be written beside the ledger it is a temporary one (``is_temporary``), or
    LedgerError is raised if ``temporary`` forbids that.
    """

    def __init__(self, source: Source, path: Path | None = None, *, temporary: bool = True) -> None:
        self.source = source
        next(source.after(0), None)  # beside what is no ledger nothing is made
        self._file = IndexFile(path or path_beside(source), temporary=temporary)
        self._attached = False
        self._attach()

    @property
    def db(self) -> sqlite3.Connection:
        """The connection to it, for searching."""
        return self._file.db

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._file.path

    @property
    def is_temporary(self) -> bool:
        """Whether it will be gone when it is closed; ``reason`` then says why."""
        return self._file.is_temporary

    @property
    def reason(self) -> str:
        """Why it is a temporary one."""
        return self._file.reason

    @property
    def lines(self) -> int:
        """How many lines it knows."""
        return self._state().lines

    @property
    def damaged(self) -> int:
        """How many of these are no lines of a ledger, and so are not found."""
        return self._state().damaged

    @property
    def parts(self) -> range:
        """The numbers of the parts that ids are kept in."""
        return range(self.lines // PART + 1)

    def close(self) -> None:
        """Let go of it."""
        self._file.close()

    def interrupt(self) -> None:
        """End what another thread does with it, with an error there."""
        self._file.db.interrupt()

    def follow(self, progress: Progress | None = None) -> int:
        """Take in whatever is new; how many lines that were.

        LedgerError where the ledger cannot be read, or the index not be written anywhere.
        """
        total = 0
        while True:
            taken = self.turn(MANY)
            if not taken:
                return total
            total += taken
            if progress is not None:
                progress(self._state().place, self.source.size)

    def turn(self, most: int = LINES) -> int:
        """Take in some of what is new; how many lines that were, 0 if nothing is."""
        if not self._file.is_there():
            self._file.reopen()
            self._attach()
        for _ in range(3):
            try:
                return self._turn(most)
            except _StaleError:
                self.renew()
            except DAMAGE as error:
                if is_busy(error):
                    raise busy(self.path) from None
                if is_interrupted(error):
                    raise
                if has_no_place(error):
                    self._file.give_way(str(error))
                    self._attach()
                else:
                    self.renew()
        raise LedgerError(f"no index can be made of {self.source.url}", hint="verify the ledger")

    def renew(self) -> None:
        """Throw away what is there and begin anew."""
        self._file.renew()
        self._attach()

    def _attach(self) -> None:
        """Let SQLite read the ledger itself, where that is a database it can open."""
        scheme, _, place = self.source.url.partition(":")
        self._attached = False
        if scheme != "sqlite":
            return
        try:
            self.db.execute("ATTACH ? AS ledger", (f"{Path(place).absolute().as_uri()}?mode=ro",))
            self.db.execute(_BOUNDS).fetchone()
        except DAMAGE:
            return  # the source says what is wrong with it, or reads it all the same
        self._attached = True

    def _state(self) -> _State:
        rows: dict[str, Any] = dict(self.db.execute("SELECT name, value FROM state").fetchall())
        return _State(**{name: rows[name] for name in _State._fields if name in rows})

    def _turn(self, most: int) -> int:
        state = self._state()
        return self._turn_attached(state, most) if self._attached else self._turn_read(state, most)

    def _turn_attached(self, state: _State, most: int) -> int:
        first, end = self.db.execute(_BOUNDS).fetchone()
        if end == state.place and first == state.first:
            return 0
        with self._writing() as db:
            state = self._state()
            self._check(state, self._attached_line)
            if first > state.first:
                for statement in FORGET:
                    db.execute(statement, (first,))
                state = state._replace(first=first, place=max(state.place, first))
            stop = min(end, state.place + most)
            if stop > state.place:
                db.execute(FROM_LEDGER, (state.place, stop))
                return self._take_in(state, stop, *self._last_attached())
            self._note(state)
        return 0

    def _attached_line(self, place: int) -> bytes | None:
        row = self.db.execute(_LINE, (place,)).fetchone()
        return bytes(row[0]) if row is not None else None

    def _last_attached(self) -> tuple[int, bytes]:
        (last,) = self.db.execute("SELECT max(place) FROM batch").fetchone()
        return last, self._attached_line(last) or b""

    def _turn_read(self, state: _State, most: int) -> int:
        chunk = list(self._chunk(state.place, most))
        if not chunk:
            self._check(state, self._read_line)
            return 0
        with self._writing() as db:
            if self._state() != state:
                return len(chunk)  # somebody else was faster: look again
            self._check(state, self._read_line)
            db.executemany(
                "INSERT OR IGNORE INTO raw VALUES(?, ?)", [(p.place, p.line) for p in chunk]
            )
            db.execute(FROM_RAW)
            end = chunk[-1]
            return self._take_in(state, end.after, end.place, end.line)

    def _chunk(self, place: int, most: int) -> Iterator[Placed]:
        size = 0
        for count, placed in enumerate(self.source.after(place), 1):
            yield placed
            size += len(placed.line)
            if count == most or size > BYTES:
                return

    def _read_line(self, place: int) -> bytes | None:
        try:
            return self.source.at(place)
        except LedgerError:
            return None

    def _check(self, state: _State, line_at: Callable[[int], bytes | None]) -> None:
        """See that the ledger still has the last line that we know.

        If nobody altered ledger or index it has all before it, too; that is for ``verify``.
        """
        if state.last >= 0:
            text = line_at(state.last)
            if text is None or sha256(text).hexdigest() != state.digest:
                raise _StaleError

    def _take_in(self, state: _State, place: int, last: int, text: bytes) -> int:
        db = self.db
        count, events = db.execute("SELECT count(*), count(event) FROM batch").fetchone()
        part = {"part": state.lines // PART}
        for statement in TAKE_IN:
            db.execute(statement, part)
        self._note(
            state._replace(
                place=place,
                last=last,
                digest=sha256(text).hexdigest(),
                lines=state.lines + count,
                damaged=state.damaged + count - events,
            )
        )
        return int(count)

    def _note(self, state: _State) -> None:
        self.db.executemany("REPLACE INTO state VALUES(?, ?)", state._asdict().items())

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        db = self.db
        db.execute("BEGIN IMMEDIATE")
        try:
            yield db
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")
