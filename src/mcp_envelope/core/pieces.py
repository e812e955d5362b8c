"""What a ledger consists of as it lies there: lines, and bytes that are none."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import Any, Final, NoReturn

import orjson

from .entry import MOST

#: The fields of a line, in their order.
FIELDS: Final = (
    *("v", "event", "seq", "prev", "time", "instance", "kind", "tool", "definition", "peer"),
    *("grant", "request_id", "client_id", "run_id", "trace_id", "correlation_id", "door"),
    *("dialect", "outcome", "error", "duration_ms", "input", "output", "warnings"),
)
_NAMES: Final = frozenset(FIELDS)
_BEGIN: Final = re.compile(
    rb'\{"v":1,"event":"(admitted|settled|refused|malformed|started|stopped|checkpoint)",'
    rb'"seq":(0|[1-9][0-9]{0,18}),"prev":"([0-9a-f]{64})",'
)
_TORN: Final = re.compile(
    r"torn tail: the ([1-9][0-9]{0,18}) bytes before this line are no line, sha256:([0-9a-f]{64})"
)


class Entry:
    """A line: its bytes without the newline, and what is in it. ``prev`` are hex digits."""

    __slots__ = ("event", "prev", "seq", "text", "value")

    def __init__(
        self, text: bytes, event: bytes, seq: int, prev: bytes, value: dict[str, Any]
    ) -> None:
        self.text = text
        self.event = event
        self.seq = seq
        self.prev = prev
        self.value = value

    @property
    def digest(self) -> bytes:
        """What ``prev`` of the next line has to be."""
        return sha256(self.text).hexdigest().encode()

    @property
    def claim(self) -> tuple[int, str] | None:
        """Number and SHA-256 of the bytes before it that it says are no line."""
        warnings = self.value["warnings"]
        found = _TORN.fullmatch(warnings[0]) if warnings else None
        return (int(found[1]), found[2]) if found else None


def read_entry(piece: bytes) -> Entry | None:
    """The line that a piece is, with its newline; None if it is none."""
    found = _BEGIN.match(piece)
    # What was written as a line ends so: white space behind it would be no line of ours.
    if found is None or piece[-2:] != b"}\n" or len(piece) > MOST + 1:
        return None
    text = piece[:-1]
    value: object = None
    try:
        value = orjson.loads(text)
        # What comes out as it was has each name once, and no half of a surrogate pair.
        is_plain = orjson.dumps(value) == text
    except (ValueError, TypeError):
        is_plain = False
    if not is_plain:
        value = _loads_slowly(text)
    if type(value) is not dict or not (tuple(value) == FIELDS or value.keys() >= _NAMES):
        return None
    warnings = value["warnings"]
    if type(warnings) is not list or (warnings and {*map(type, warnings)} != {str}):
        return None
    return Entry(text, found[1], int(found[2]), found[3], value)


def _loads_slowly(text: bytes) -> object:
    # orjson refuses numbers that other readers take, and takes objects in which a name stands
    # twice: readers would not agree on what such a line says.
    try:
        value = json.loads(
            text.decode(), object_pairs_hook=_object, parse_constant=_refuse, parse_int=float
        )
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(members)
    return made if len(made) == len(members) else _refuse("a name stands twice")


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)
