"""Numbers as ECMAScript prints them, which is how RFC 8785, section 3.2.2.3 wants them.

Every JSON library finds the same shortest digits for a double; what differs is where they
change to an exponent and whether ``1.0`` keeps its point. So a text that orjson has written
needs another look only at the few numbers for which the two differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import jiter
import orjson

# Between 1e-5 and 1e16 orjson writes as ECMAScript does, but for the ".0" of whole numbers;
# outside it uses exponents, with a plus sign in newer versions and without in older ones.
_PROBES: Final = (1.0, -0.0, 0.5, 123.25, 1e-5, 1e-6, 1.5e-7, 1e15, 9007199254740993.0)
_KNOWN: Final = orjson.dumps(_PROBES) == (
    b"[1.0,-0.0,0.5,123.25,0.00001,1e-6,1.5e-7,1000000000000000.0,9007199254740992.0]"
)
_PLUS: Final = {b"[1e+16,1.5e+300]": True, b"[1e16,1.5e300]": False}.get(
    orjson.dumps((1e16, 1.5e300))
)

# A number in an array or object ends before one of , ] }. Within strings the same characters
# may stand; that is looked into only where one of these is found at all.
_WHOLE = re.compile(rb"\.0[,\]}]")
_SMALL = re.compile(rb"e-[0-9]{1,3}[,\]}]")
_LARGE = re.compile(rb"e\+[0-9]{1,3}[,\]}]" if _PLUS else rb"e[0-9]{1,3}[,\]}]")
_LARGE_SIGN: Final = ord("+" if _PLUS else "e")

_find_whole = _WHOLE.search
_find_small = _SMALL.search
_find_large = _LARGE.search


def ecmascript(value: float) -> str:
    """A finite double as ECMAScript's ``String(value)``: ``1``, ``1e+21``, ``0.000001``."""
    text = repr(value)
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        whole = text.removesuffix(".0")
        return "0" if whole == "-0" else whole
    sign = "-" if mantissa[0] == "-" else ""
    digits = mantissa.lstrip("-").replace(".", "")
    point = int(exponent) + 1  # where the decimal point stands, counted from the first digit
    if 0 < point <= 21:  # repr turns to exponents at 1e16, so no digits are left of it
        return sign + digits.ljust(point, "0")
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+d}"


def respelled(text: bytes) -> bytes:
    """An array or object as orjson wrote it, with its floats spelled as ECMAScript does."""
    if not _KNOWN or _PLUS is None:
        return _reprinted(text)
    # The first test of each pair only makes the common case cheap.
    if 0x2E in text and _find_whole(text):
        text = _reprinted(text) if b'\\"' in text else _without_point_zero(text)
    if 0x2D in text and _find_small(text):
        text = _reprinted(text) if b'\\"' in text else _without_exponents(text, _SMALL)
    if _LARGE_SIGN in text and _find_large(text):
        text = _reprinted(text) if b'\\"' in text else _without_exponents(text, _LARGE)
    return text


def _outside_strings(text: bytes, pattern: re.Pattern[bytes]) -> Iterable[tuple[int, int]]:
    # Without escaped quotes, a place is within a string if an odd number of quotes precedes.
    quotes = counted = 0
    for found in pattern.finditer(text):
        start = found.start()
        quotes += text.count(b'"', counted, start)
        counted = start
        if not quotes & 1:
            yield start, found.end() - 1


def _without_point_zero(text: bytes) -> bytes:
    pieces = []
    done = 0
    for start, end in _outside_strings(text, _WHOLE):
        if text[start - 2 : start] == b"-0":
            pieces += (text[done : start - 2], b"0")
        else:
            pieces.append(text[done:start])
        done = end
    pieces.append(text[done:])
    return b"".join(pieces)


def _without_exponents(text: bytes, pattern: re.Pattern[bytes]) -> bytes:
    pieces = []
    done = 0
    for start, end in _outside_strings(text, pattern):
        before = text[max(start - 24, 0) : start]  # a mantissa has at most 19 characters
        start -= len(before) - len(before.rstrip(b"-.0123456789"))
        pieces += (text[done:start], ecmascript(float(text[start:end])).encode())
        done = end
    pieces.append(text[done:])
    return b"".join(pieces)


def _reprinted(text: bytes) -> bytes:
    return orjson.dumps(jiter.from_json(text, float_mode="lossless-float"), default=_printed)


def _printed(number: Any) -> orjson.Fragment:
    return orjson.Fragment(ecmascript(float(number)).encode())
