"""Numbers as ECMAScript prints them, which is how RFC 8785, section 3.2.2.3 wants them.

Every JSON library finds the same shortest digits for a double; what differs is where they
change to an exponent and whether ``1.0`` keeps its point. So a text that orjson has written
needs another look only at the few numbers for which the two differ.
"""

from __future__ import annotations

import re
from typing import Any, Final

import jiter
import orjson

# How orjson spells: whole numbers with ".0", exponents below 1e-5 (ECMAScript: below 1e-6) and
# from 1e16 on (ECMAScript: from 1e21 on), these with a plus sign in newer versions only.
_SPELLING: Final = orjson.dumps((1.0, -0.0, 0.5, 123.25, 1e15, 1e-5, 1e-6, 1.5e-7, 1e16, 1.5e300))
_COMMON: Final = b"[1.0,-0.0,0.5,123.25,1000000000000000.0,0.00001,1e-6,1.5e-7,"
_PLUS: Final = _SPELLING == _COMMON + b"1e+16,1.5e+300]"
KNOWN: Final = _PLUS or _SPELLING == _COMMON + b"1e16,1.5e300]"

# The spellings that differ. In an array or object a number ends before one of , ] }. Within
# strings the same characters may stand; that is looked into only where they are found at all.
_WHOLE = re.compile(rb"\.0[,\]}]")
_SMALL = re.compile(rb"e-6[,\]}]")
_LARGE = re.compile(rb"e\+(?:1[6-9]|20)[,\]}]" if _PLUS else rb"e[1-9][0-9]{1,2}[,\]}]")
#: Which character to look for; "e" finds far too much, but is never wrong.
LARGE_SIGN: Final = ord("+" if _PLUS else "e")


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
    """A text as orjson wrote it, with its floats spelled as ECMAScript does.

    If orjson's spelling is KNOWN, a text with neither ``.0`` nor ``e-6`` nor LARGE_SIGN is
    right as it is.
    """
    if text[-1] not in b"]}":
        is_float = text[-1] in b"0123456789" and (0x2E in text or 0x65 in text)
        return ecmascript(float(text)).encode() if is_float else text
    if not KNOWN:
        return _reprinted(text)
    spelled: bytes | None = text
    # The first test of each pair only makes the common case cheap.
    if 0x2E in text:
        spelled = _respelled(text, _WHOLE)
    if spelled and 0x2D in text and text.rfind(b"e-6") >= 0:
        spelled = _respelled(spelled, _SMALL)
    if spelled and LARGE_SIGN in text:
        spelled = _respelled(spelled, _LARGE)
    return spelled or _reprinted(text)


def _respelled(text: bytes, spelling: re.Pattern[bytes]) -> bytes | None:
    """The text with one kind of numbers replaced; None if strings with escapes hinder that."""
    pieces: list[bytes] = []
    done = place = 0  # a place that is within no string
    escapes = False
    while (found := spelling.search(text, place)) is not None:
        start, end = found.span()
        if not place and 0x5C in text:
            # Escaped quotes are not counted; but where a backslash may itself be escaped, one
            # cannot tell these by looking back.
            escapes = True
            if b"\\\\" in text:
                return None
        # Within a string if an odd number of quotes precedes.
        quotes = text.count(b'"', place, start)
        if escapes:
            quotes -= text.count(b'\\"', place, start)
        if quotes & 1:
            if escapes:
                return None
            place = text.index(b'"', end) + 1
            continue
        if spelling is _WHOLE and (text[start - 1] != 0x30 or text[start - 2] != 0x2D):
            pieces.append(text[done:start])
        else:
            before = text[max(start - 24, 0) : start]  # a mantissa has at most 19 characters
            first = start - len(before) + len(before.rstrip(b"-.0123456789"))
            pieces += (text[done:first], ecmascript(float(text[first : end - 1])).encode())
        done = place = end - 1
    if not done:
        return text
    pieces.append(text[done:])
    return b"".join(pieces)


def _reprinted(text: bytes) -> bytes:
    return orjson.dumps(jiter.from_json(text, float_mode="lossless-float"), default=_printed)


def _printed(number: Any) -> orjson.Fragment:
    return orjson.Fragment(ecmascript(float(number)).encode())
