"""Reading JSON carefully: the long way of :func:`mcp_envelope.core.document.parse`.

The short way there accepts only texts that print back as they came. Everything else comes
here, to be refused with the place and the reason, or accepted after each check was made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import jiter
import orjson

from .errors import EnvelopeError, Problem, UsageError
from .plain import deeper_than, find_not_finite

MAX_DEPTH: Final = 200
MAX_NUMBER: Final = 1_000
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
            if not 1 <= getattr(self, name) <= most:
                raise UsageError(f"limit {name} is {getattr(self, name)}", hint=f"use 1 to {most}")
        for name in ("request", "result"):
            if getattr(self, name) < 1:
                raise UsageError(f"limit {name} must be at least one byte")


DEFAULT_LIMITS: Final = Limits()


_PLACE = re.compile(r"^(.*) at line (\d+) column (\d+)$", re.DOTALL)
_NUMBER_CHARACTERS = re.compile(rb"[0-9.eE+-]{9}")
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[-0-9][0-9.eE+-]*+', re.DOTALL)


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
    if raw.count(b"[") + raw.count(b"{") > limits.depth and deeper_than(value, limits.depth):
        raise _fault("too-deep", f"nested deeper than {limits.depth} levels")
    try:
        overflowed = orjson.dumps(value).count(b"null") != raw.count(b"null")
    except TypeError:  # an integer beyond 64 bits
        overflowed = True
    if overflowed and (pointer := find_not_finite(value)) is not None:
        raise _fault("number-range", "a number is too large for a double", pointer=pointer)
    return value


def _refuse(raw: bytes, said: str, limits: Limits) -> NoReturn:
    found = _PLACE.match(said)
    what, line, column = (found[1], int(found[2]), int(found[3])) if found else (said, 1, 1)
    place = {"line": line, "column": max(column, 1)}
    if raw[:3] == b"\xef\xbb\xbf":
        raise _fault("encoding", "starts with a byte order mark", hint="save it without", **place)
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\x00" in raw[:4]:
        raise _fault("encoding", "this is UTF-16 or UTF-32", hint="JSON is UTF-8", **place)
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        raise _fault("encoding", "not valid UTF-8", line=line, column=column) from None
    for sign, rule, message, hint in _REASONS:
        if sign in what:
            raise _fault(rule, message.format(depth=limits.depth), hint=hint, **place)
    if what.startswith("Detected duplicate key"):
        name = what.removeprefix("Detected duplicate key ")
        name = name if len(name) <= 62 else name[:60] + "…"
        raise _fault("duplicate-key", f"the key {name} stands twice in one object", **place)
    raise _fault("syntax", f"not JSON: {what}", **place)


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
    stride = max(most // 10, 1)
    if not _NUMBER_CHARACTERS.search(raw[::stride]):
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
    problem = Problem(pointer or "", f"document/{rule}", message, hint)
    return EnvelopeError(
        message, problems=[problem], pointer=pointer, line=line, column=column, hint=hint
    )
