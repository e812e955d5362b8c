"""Plain Python values as JSON: dict, list, tuple, str, int, float, bool and None, nothing else.

Subclasses of these count as these, and members of an Enum as their values. No function here
recurses over the caller's data, so neither depth nor a list that holds itself can exhaust the
stack.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Callable, Iterator
from enum import Enum
from math import isfinite
from typing import Any, Final
from uuid import UUID

import jiter
import orjson

from .errors import EnvelopeError, Problem
from .pointer import pointer_of

MAX_DEPTH: Final = 200
MAX_NUMBER: Final = 1_000
_OPTIONS: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)
_UUID = re.compile(rb'"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"')
# How marshal writes NaN and the infinities: a type, which may be marked, and eight bytes.
_NOT_FINITE: Final = re.compile(rb"[g\xe7].{6}[\xf0-\xff][\x7f\xff]", re.DOTALL)

Path = tuple[str | int, ...]


def _spare_levels() -> int:
    """How many levels orjson can nest around MAX_DEPTH levels, if any; 0 if past counting."""
    value: list[Any] = []
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    for spare in range(4 * MAX_DEPTH):
        value = [value]
        try:
            orjson.dumps(value)
        except TypeError:
            return spare
    return 0


_SPARE: Final = _spare_levels()


def load_plain(raw: bytes) -> Any:
    """The value of a text that is known to be strict JSON."""
    return jiter.from_json(raw, allow_inf_nan=False, cache_mode="keys")


def bounded_text(value: Any, default: Callable[[object], Any] | None = None) -> bytes:
    """What orjson writes for a value; TypeError if that may be deeper than MAX_DEPTH.

    orjson counts levels anyway, so the value is put so deep that its limit becomes ours:
    cheaper by far than to look for the depth of a value or of a text. (Older versions do not
    count an innermost empty container; with these, some values at the limit are doubted.)
    """
    if _SPARE < 1:
        raw = orjson.dumps(value, default, _OPTIONS)
        if _is_too_deep(raw):
            raise TypeError("too deep")
        return raw
    for _ in range(_SPARE):
        value = (value,)
    return orjson.dumps(value, default, _OPTIONS)[_SPARE:-_SPARE]


def dump_plain(
    value: object, splice: Callable[[object], Any], unfold: Callable[[object], Any]
) -> bytes:
    """The JSON text of a plain value that may hold other objects.

    ``splice`` turns these into fragments of text, ``unfold`` into plain values. Raises
    EnvelopeError, with a pointer, for whatever is not JSON.
    """
    try:
        raw = orjson.dumps(value, splice, _OPTIONS)
    except TypeError:
        raw = orjson.dumps(_spelled(value, splice), splice, _OPTIONS)
    check_printed(value, raw, unfold)
    return raw


def check_printed(value: object, raw: bytes, unfold: Callable[[object], Any]) -> None:
    """Raise EnvelopeError if orjson has written something that is not JSON as if it were.

    It writes NaN and the infinities as null without a word, UUIDs as strings, and goes deeper
    than we do. Each costly look is taken only if the text shows that there may be a reason.
    """
    if raw.rfind(b"null") >= 0 and not _only_finite(value):
        pointer = find_not_finite(value)
        if pointer is not None:
            raise not_json(pointer, "the number is not finite")
    if 0x2D in raw and raw.count(b"-") >= 4 and _UUID.search(raw):
        for path, part in walk(value):
            if isinstance(part, UUID):
                raise not_json(pointer_of(path), "UUID has no JSON form")
    if len(raw) > 2 * MAX_DEPTH:
        try:
            bounded_text(value, unfold)
        except TypeError:  # perhaps only for an integer beyond 64 bits
            if _is_too_deep(raw):
                reason = f"nested deeper than {MAX_DEPTH} levels"
                raise not_json("", reason) from None


def _is_too_deep(raw: bytes) -> bool:
    try:
        return deeper_than(load_plain(raw), MAX_DEPTH)
    except ValueError:  # deeper than even jiter goes
        return True


def not_json(pointer: str, reason: str) -> EnvelopeError:
    """The error for a Python value that has no JSON text."""
    message = f"this value cannot be written as JSON: {reason}"
    return EnvelopeError(
        message, pointer=pointer, problems=[Problem(pointer, "document/not-json", message)]
    )


def same_value(left: Any, right: Any) -> bool:
    """Whether two plain values are the same JSON value: ``1`` is ``1.0`` but not ``true``."""
    pending = [(left, right)]
    while pending:
        one, other = pending.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            if one.keys() != other.keys():
                return False
            pending += [(part, other[name]) for name, part in one.items()]
        elif isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
            if len(one) != len(other):
                return False
            pending += zip(one, other, strict=True)
        elif isinstance(one, bool) or isinstance(other, bool):
            if one is not other:
                return False
        elif one != other:
            return False
    return True


def deeper_than(value: object, most: int) -> bool:
    """Whether a plain value has more than ``most`` levels of arrays and objects."""
    level = [value] if type(value) is dict or type(value) is list else []
    for _ in range(most):
        if not level:
            return False
        level = [
            part
            for container in level
            for part in (container.values() if type(container) is dict else container)
            if type(part) is dict or type(part) is list
        ]
    return bool(level)


def _only_finite(value: Any) -> bool:
    """Whether all floats are finite; False also where that cannot be told quickly."""
    try:
        # By far the fastest way to see every float of a plain value; it raises for other types.
        written = marshal.dumps(value)
    except ValueError:
        return False
    # The last byte of a double whose exponent says that it is none.
    if b"\x7f" not in written and b"\xff" not in written:
        return True
    # Elsewhere these bytes are rare:
    # looking at each place is then much faster than the pattern, which tries every byte.
    for last in (b"\x7f", b"\xff"):
        if written.count(last) > 9 + len(written) // 256:
            return _NOT_FINITE.search(written) is None
        place = written.find(last)
        while place >= 0:
            if _NOT_FINITE.match(written, place - 8 if place > 8 else 0):
                return False
            place = written.find(last, place + 1)
    return True


def find_not_finite(value: object) -> str | None:
    """A pointer to a NaN or an infinity in the value, or None."""
    for path, part in walk(value):
        if isinstance(part, float) and not isfinite(part):
            return pointer_of(path)
    return None


def walk(value: object) -> Iterator[tuple[Path, object]]:
    """Every part of a value with its path, the value itself first, at most 200 levels down."""
    pending: list[tuple[Path, object]] = [((), value)]
    while pending:
        path, part = pending.pop()
        if isinstance(part, Enum):
            part = part.value
        yield path, part
        if isinstance(part, dict):
            pending += [((*path, str(name)), item) for name, item in part.items()]
        elif isinstance(part, (list, tuple)):
            pending += [((*path, index), item) for index, item in enumerate(part)]
        if len(path) > MAX_DEPTH:
            raise not_json("", f"nested deeper than {MAX_DEPTH} levels, or it holds itself")


def _spelled(value: object, splice: Callable[[object], Any]) -> object:
    """A copy that orjson can write: huge integers as text. Raises for what is not JSON."""
    for path, part in walk(value):
        if isinstance(part, dict):
            for key in part:
                if not isinstance(key, str):
                    reason = f"a key is {type(key).__name__}, and must be a string"
                    raise not_json(pointer_of(path), reason)
                _check_text(key, path)
        elif isinstance(part, str):
            _check_text(part, path)
        elif isinstance(part, int):
            # Only what may have so many digits is spelled to be counted.
            if part.bit_length() > 3_300 and (
                part.bit_length() > 3_330 or len(str(int(part))) > MAX_NUMBER
            ):
                reason = f"an integer has more than {MAX_NUMBER:,} characters"
                raise not_json(pointer_of(path), reason)
        elif not (part is None or isinstance(part, (list, tuple, float))):
            try:
                splice(part)
            except TypeError:
                reason = f"{type(part).__name__} has no JSON form"
                raise not_json(pointer_of(path), reason) from None
    return _with_long_integers(value)


def _check_text(text: str, path: Path) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise not_json(pointer_of(path), "a string holds half of a surrogate pair") from None


def _with_long_integers(value: object) -> object:
    root = [value]
    pending: list[Any] = [root]
    while pending:
        container = pending.pop()
        for place in container if type(container) is dict else range(len(container)):
            container[place] = part = _base_value(container[place])
            if type(part) is dict or type(part) is list:
                pending.append(part)
    return root[0]


def _base_value(value: Any) -> Any:
    """What orjson can write in place of a part, containers being copied."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, dict):
        return {str.__str__(name): part for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        plain = int.__int__(value)
        in_range = -(2**63) <= plain < 2**64
        return plain if in_range else orjson.Fragment(str(plain).encode())
    if isinstance(value, float):
        return float.__float__(value)
    return str.__str__(value) if isinstance(value, str) else value
