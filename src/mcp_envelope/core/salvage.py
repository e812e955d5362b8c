"""Which request a spoilt message is about, so that whoever waits for an answer gets one.

What is read here is never believed to say anything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

Id = str | int | float

#: How much of a message that is too long is looked at, from either end.
KEPT: Final = 64 * 1024
_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_KEY: Final = re.compile(rb"[ \t\r\n,{]*+(" + _STRING + rb")[ \t\r\n]*+:[ \t\r\n]*+", re.DOTALL)
_SCALAR: Final = re.compile(
    _STRING + rb"|-?[0-9][0-9.eE+-]*+(?=[ \t\r\n,}])|true|false|null", re.DOTALL
)
_LAST_ID: Final = re.compile(
    rb',\s*+"id"\s*+:\s*+('
    + _STRING
    + rb'|-?[0-9]++)\s*+(?:,\s*+"jsonrpc"\s*+:\s*+"2\.0"\s*+)?}\s*+\Z',
    re.DOTALL,
)


class _Pairs(list[tuple[str, Any]]):
    """The members of an object, repeated ones as well."""


def asked(message: bytes) -> Id | None:
    """The id of a spoilt request: read leniently, so NaN and repeated keys are fine.

    None where two ids are given: nobody knows which one is meant.
    """
    text = message.decode("utf-8", "replace").lstrip("\ufeff")
    try:
        value = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return asked_in(message[:KEPT])
    if not isinstance(value, _Pairs):
        return None
    names = [name for name, _ in value]
    if "method" not in names or "result" in names or "error" in names or names.count("id") != 1:
        return None
    return _usable(value[names.index("id")][1])


def answered(line: bytes) -> Id | None:
    """The id that a spoilt line answers: read leniently, so NaN and repeated keys are fine."""
    try:
        value = json.loads(line.decode("utf-8", "replace").lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return answered_in(line[:KEPT], line[-KEPT:])
    if not isinstance(value, dict) or "method" in value:
        return None
    answers = "result" in value or "error" in value or value.get("jsonrpc") == "2.0"
    return _usable(value.get("id")) if answers else None


def asked_in(head: bytes) -> Id | None:
    """The same for what is no JSON: outermost members are looked at, up to the first nested one."""
    found = dict(_outermost(head))
    if b'"method"' not in found or b'"result"' in found or b'"error"' in found:
        return None
    return _scalar(found[b'"id"']) if b'"id"' in found else None


def answered_in(head: bytes, tail: bytes) -> Id | None:
    """The same for what is no JSON, or only the ends of it: outermost members are looked at."""
    members = dict(_outermost(head))
    if b'"method"' in members:
        return None
    answers = b'"result"' in members or b'"error"' in members
    found = _scalar(members.get(b'"id"', b""))
    if answers and found is None and (last := _LAST_ID.search(tail)) is not None:
        found = _scalar(last[1])
    return found if answers else None


def _outermost(head: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The outermost members, up to the first that is no scalar (given without a value)."""
    position = 0 if head.lstrip().startswith(b"{") else len(head)
    while (key := _KEY.match(head, position)) is not None:
        value = _SCALAR.match(head, key.end())
        yield key[1], value[0] if value is not None else b""
        if value is None:
            return
        position = value.end()


def _scalar(text: bytes) -> Id | None:
    try:
        return _usable(json.loads(text))
    except ValueError:
        return None


def _usable(value: Any) -> Id | None:
    if isinstance(value, float):
        return value if value.is_integer() else None
    return value if isinstance(value, (str, int)) and not isinstance(value, bool) else None
