"""Ledger lines for people: a row of a table each, safe on terminals."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from mcp_envelope.core.search import UNKNOWN

from .console import shown

#: The fewest characters of an id that are shown.
SHORT: Final = 8
_WIDEST: Final = 44
_TIME: Final = 24
_GAP: Final = "  "
_WIDE: Final = frozenset("WF")

_HEAD: Final = ("TIME", "OUTCOME", "MS", "WHAT", "PEER", "ID", "")
_HEAD_OF_LINES: Final = ("SEQ", "EVENT", *_HEAD)
_TO_THE_RIGHT: Final = frozenset({"MS", "SEQ"})
_REQUEST: Final = "mcp/request:"


def object_of(line: bytes) -> dict[str, Any] | None:
    """A line as plain values; None if it is no JSON object, and so no line of a ledger."""
    try:
        value = orjson.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


class Table:
    """Rows under a head, aligned. Widths grow with what comes; ``lines`` adds number and event."""

    def __init__(self, *, lines: bool) -> None:
        self._lines = lines
        self._head = _HEAD_OF_LINES if lines else _HEAD
        self._wide = [len(name) for name in self._head]
        self._is_begun = False

    def rows(self, found: Sequence[tuple[Mapping[str, Any], bool]]) -> Iterator[str]:
        """The texts of lines, each with whether it is all that is known of a call."""
        ids = _short_ids([entry for entry, _ in found])
        cells = [self._cells(entry, is_open, ids) for entry, is_open in found]
        if not self._is_begun:
            self._is_begun = True
            cells.insert(0, self._head)
        for row in cells:
            self._wide = [max(w, _width(cell)) for w, cell in zip(self._wide, row, strict=True)]
        for row in cells:
            yield self._aligned(row)

    def _cells(
        self, entry: Mapping[str, Any], is_open: bool, ids: Mapping[str, str]
    ) -> tuple[str, ...]:
        outcome = UNKNOWN if is_open else entry.get("outcome")
        name = entry.get("request_id")
        error = entry.get("error")
        cells = (
            _cell(entry.get("time"), _TIME),
            _cell(outcome),
            milliseconds_of(entry.get("duration_ms")),
            _cell(what_of(entry)),
            _cell(entry.get("peer")),
            ids.get(name, "") if isinstance(name, str) else _cell(entry.get("seq")),
            shown(str(error.get("message", ""))) if isinstance(error, dict) else "",
        )
        first = (_cell(entry.get("seq")), _cell(entry.get("event")))
        return (*first, *cells) if self._lines else cells

    def _aligned(self, row: Sequence[str]) -> str:
        parts = []
        for name, cell, wide in zip(self._head, row, self._wide, strict=True):
            space = " " * (wide - _width(cell))
            parts.append(space + cell if name in _TO_THE_RIGHT else cell + space)
        return _GAP.join(parts).rstrip()


def what_of(entry: Mapping[str, Any]) -> str:
    """What a line is about, in short: the tool, else the kind, else the event itself."""
    tool, kind = entry.get("tool"), entry.get("kind")
    if isinstance(tool, str):
        return tool
    if isinstance(kind, str):
        return kind.removeprefix(_REQUEST)
    return "-" if entry.get("request_id") is not None else str(entry.get("event", "-"))


def milliseconds_of(value: object) -> str:
    """A duration in few characters."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"


def counted(count: int, what: str) -> str:
    """``1 line``, ``25,312 lines``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _short_ids(entries: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The beginnings of ids that tell those apart that are shown together."""
    names = {one for entry in entries if isinstance(one := entry.get("request_id"), str)}
    for size in (SHORT, 2 * SHORT):
        if len({name[:size] for name in names}) == len(names):
            return {name: shown(name[:size]) for name in names}
    return {name: shown(name) for name in names}


def _cell(value: object, most: int = _WIDEST) -> str:
    if value is None:
        return "-"
    text = shown(str(value))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in _WIDE)
        for c in text
    )
