"""Where the members of a JSON text begin and end.

Payloads travel as the bytes they came in, so that ``1.0`` stays ``1.0`` and an escape stays
an escape. These functions cut a text that is *already known to be valid JSON* into the
texts of its members, or put another text in place of one; on anything else their result means
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_SPACE = re.compile(rb"[ \t\r\n]*+")
_KEY = re.compile(rb"[ \t\r\n]*+(" + _STRING + rb")[ \t\r\n]*+:[ \t\r\n]*+", re.DOTALL)
_SCALAR = re.compile(_STRING + rb"|[^ \t\r\n,\]}]++", re.DOTALL)
_PLAIN_RUN = re.compile(rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+", re.DOTALL)
_OPENING = b"[{"


def members(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the texts of each key (quotes and escapes as they are) and its value, in order."""
    position = _skip_space(text, 0) + 1
    while (key := _KEY.match(text, position)) is not None:
        end = _end_of_value(text, key.end())
        yield key[1], text[key.end() : end]
        position = _skip_space(text, end) + 1  # past the comma or the closing brace


def find(text: bytes, name: str, start: int = 0) -> int | None:
    """Where the value of a member begins, in the object that begins at ``start``."""
    position = _skip_space(text, start) + 1
    wanted = orjson.dumps(name)
    while (key := _KEY.match(text, position)) is not None:
        if key[1] == wanted or (b"\\" in key[1] and orjson.loads(key[1]) == name):
            return key.end()
        position = _skip_space(text, _end_of_value(text, key.end())) + 1
    return None


def member(text: bytes, name: str) -> bytes | None:
    """The text of the value of one member of an object, None where it has none of that name."""
    start = find(text, name)
    return text[start : _end_of_value(text, start)] if start is not None else None


def put(text: bytes, path: Sequence[str], value: bytes, known: Any = None) -> bytes:
    """The text with the member that ``path`` leads to set to ``value``, all else as it was.

    Members that are not there are made, at the beginning of their object. What the path leads
    through must be objects. ``known`` may be what the text says, read before: then what is not
    there need not be searched for.
    """
    place = 0
    for depth, name in enumerate(path):
        found = find(text, name, place) if known is None or name in known else None
        known = known[name] if known is not None and found is not None else None
        if found is None:
            return _insert(text, place, path[depth:], value)
        place = found
    return text[:place] + value + text[_end_of_value(text, place) :]


def _insert(text: bytes, place: int, path: Sequence[str], value: bytes) -> bytes:
    opening = _skip_space(text, place) + 1
    for name in reversed(path[1:]):
        value = b"{" + orjson.dumps(name) + b":" + value + b"}"
    comma = b"" if text[_skip_space(text, opening)] == 0x7D else b","  # "}"
    return text[:opening] + orjson.dumps(path[0]) + b":" + value + comma + text[opening:]


def elements(text: bytes) -> Iterator[bytes]:
    """Yield the text of each element of an array, in order."""
    position = _skip_space(text, _skip_space(text, 0) + 1)
    while position < len(text) and text[position] != 0x5D:  # "]"
        end = _end_of_value(text, position)
        yield text[position:end]
        position = _skip_space(text, end)
        if text[position] == 0x2C:  # ","
            position = _skip_space(text, position + 1)


def _skip_space(text: bytes, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _end_of_value(text: bytes, start: int) -> int:
    if text[start] not in _OPENING:
        scalar = _SCALAR.match(text, start)
        return scalar.end() if scalar else start
    depth = 1
    position = start + 1
    while depth:
        run = _PLAIN_RUN.match(text, position)
        position = run.end() if run else position
        depth += 1 if text[position] in _OPENING else -1
        position += 1
    return position
