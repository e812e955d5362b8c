"""Reading JSON carefully: the long way of :func:`mcp_envelope.core.document.parse`.

The short way there accepts only texts that print back as they came. Everything else comes
here, to be refused with the place and the reason, or accepted after each check was made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NoReturn

import jiter

from .errors import EnvelopeError, Problem, UsageError
from .plain import MAX_DEPTH, MAX_NUMBER, bounded_text, deeper_than, find_not_finite

_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a document may be. Depth and number length can only be lowered."""

    depth: int = MAX_DEPTH
    number: int = MAX_NUMBER
    request: int = 4 * _MIB
    result: int = 64 * _MIB

    def __post_init__(self) -> None:
        for name, most in (("depth", MAX_DEPTH), ("number", MAX_NUMBER)):
            if type(getattr(self, name)) is not int:
                raise UsageError(f"limit {name} is no integer")
            if not 1 <= getattr(self, name) <= most:
                raise UsageError(f"limit {name} is {getattr(self, name)}", hint=f"use 1 to {most}")
        for name in ("request", "result"):
            if type(getattr(self, name)) is not int or getattr(self, name) < 1:
                raise UsageError(f"limit {name} must be at least one byte")


DEFAULT_LIMITS: Final = Limits()


_PLACE = re.compile(r"^(.*) at line (\d+) column (\d+)$", re.DOTALL)
_NUMBER_CHARACTERS = re.compile(rb"[0-9.eE+-]{9}")
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[-0-9][0-9.eE+-]*+', re.DOTALL)


def allow_short_way(limits: Limits) -> bool:
    """Whether what prints back as it came is within the limits, but for its size."""
    # orjson writes no number with more than 24 characters.
    return limits.depth == MAX_DEPTH and limits.number >= 24


def parse_carefully(raw: bytes, limits: Limits) -> Any:
    """The plain value of a JSON text that keeps all the rules, or an EnvelopeError."""
    try:
        value = jiter.from_json(
            raw, allow_inf_nan=False, catch_duplicate_keys=True, cache_mode="keys"
        )
    except ValueError as error:
        _refuse(raw, str(error), limits)
    if len(raw) > limits.number:
        _check_number_lengths(raw, limits.number)
    try:
        # A number that is too large for a double prints as null.
        doubtful = bounded_text(value).count(b"null") != raw.count(b"null")
    except TypeError:  # too deep, or an integer beyond 64 bits
        doubtful = True
    if (doubtful or limits.depth < MAX_DEPTH) and deeper_than(value, limits.depth):
        raise _fault("too-deep", f"nested deeper than {limits.depth} levels")
    if doubtful and (pointer := find_not_finite(value)) is not None:
        raise _fault("number-range", "a number is too large for a double", pointer=pointer)
    return value


def _refuse(raw: bytes, said: str, limits: Limits) -> NoReturn:
    found = _PLACE.match(said)
    what, line, column = (found[1], int(found[2]), int(found[3])) if found else (said, 1, 1)
    fault = partial(_fault, line=line, column=max(column, 1))
    if raw[:3] == b"\xef\xbb\xbf":
        raise fault("encoding", "starts with a byte order mark", hint="save it without")
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\x00" in raw[:2]:
        raise fault("encoding", "this is UTF-16 or UTF-32", hint="JSON is UTF-8")
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        raise _fault("encoding", "not valid UTF-8", line=line, column=column) from None
    if what.startswith("Detected duplicate key"):
        name = what.removeprefix("Detected duplicate key ")
        name = name if len(name) <= 62 else name[:60] + "…"
        raise fault("duplicate-key", f"the key {name} stands twice in one object")
    for sign, rule, message, hint in _REASONS:
        if sign in what:
            raise fault(rule, message.format(depth=limits.depth), hint=hint)
    raise fault("syntax", f"not JSON: {what}")


_REASONS: Final = (
    ("recursion limit", "too-deep", "nested deeper than {depth} levels", ""),
    ("hex escape", "surrogate", "an escape is half of a surrogate pair", "pair it or drop it"),
    ("surrogate", "surrogate", "an escape is half of a surrogate pair", "pair it or drop it"),
    ("number out of range", "number-length", "a number is too long", ""),
    ("trailing characters", "syntax", "something follows the end of the document", ""),
    ("trailing comma", "syntax", "a comma before the closing bracket", "remove it"),
    ("key must be a string", "syntax", "a key must be a string in double quotes", ""),
    ("EOF while", "syntax", "the document ends too early", "was it cut off?"),
    (
        "expected value",
        "syntax",
        "no JSON value begins here",
        "JSON knows no NaN, Infinity, comments or single quotes",
    ),
)


def _check_number_lengths(raw: bytes, most: int) -> None:
    # A number this long covers several points of a coarse grid; only if a run of grid points
    # could belong to a number is it worth looking at every token.
    if most >= 10 and not _NUMBER_CHARACTERS.search(raw[:: most // 10]):
        return
    for token in _TOKEN.finditer(raw):
        if token.end() - token.start() > most and raw[token.start()] != 0x22:
            start = token.start()
            raise _fault(
                "number-length",
                f"a number has more than {most:,} characters",
                line=raw.count(b"\n", 0, start) + 1,
                column=start - raw.rfind(b"\n", 0, start),
            )


def _fault(
    rule: str,
    message: str,
    *,
    hint: str = "",
    pointer: str | None = None,
    line: int | None = None,
    column: int | None = None,
) -> EnvelopeError:
    place = f" at line {line}, column {column}" if line is not None else ""
    problem = Problem(pointer or "", f"document/{rule}", message + place, hint)
    return EnvelopeError(
        message, problems=[problem], pointer=pointer, line=line, column=column, hint=hint
    )
