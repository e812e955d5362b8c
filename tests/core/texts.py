"""JSON texts as nobody writes them: odd white space, odd escapes, odd numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

SPACE = st.sampled_from(["", "", "", " ", "  ", "\n", "\t", "\r\n", " \n\t "])
# No lone surrogates, which JSON text cannot hold.
CHARACTERS = st.one_of(
    st.sampled_from([*'abc"\\/,:[]{}\n\t\b\f\r\0\x7f é€\ue000\ufb33\uffff😂𝄞', "null", ".0,"]),
    st.characters(exclude_categories=["Cs"]),
)
# A number or literal that is a valid JSON text by itself and within the limits.
SCALARS = st.one_of(
    st.sampled_from(["null", "true", "false", "0", "-0", "-0.0", "1.0", "1e2", "1E+2", "1e-7"]),
    st.sampled_from(["1e16", "1e21", "0.000001", "1E300", "5e-324"]),
    st.sampled_from(["9007199254740993", "18446744073709551616", "-10000000000000000000001"]),
    st.integers(-(2**70), 2**70).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"-?(0|[1-9][0-9]{0,12})(\.[0-9]{1,12})?([eE][+-]?[0-9]{1,2})?", fullmatch=True),
)


def _spellings(character: str) -> list[str]:
    found = [f"\\u{unit:04x}" for unit in _units(character)]
    spellings = ["".join(found), "".join(found).upper().replace("\\U", "\\u")]
    short = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\n": "\\n", "\t": "\\t", "\b": "\\b"}
    if character in short:
        spellings.append(short[character])
    if character not in '"\\' and character >= " ":
        spellings += [character] * 4
    return spellings


def _units(character: str) -> list[int]:
    raw = character.encode("utf-16-be")
    return [int.from_bytes(raw[i : i + 2], "big") for i in range(0, len(raw), 2)]


@st.composite
def strings(draw: st.DrawFn) -> str:
    """A string with its quotes, each character spelled in one of the possible ways."""
    pieces = draw(st.lists(CHARACTERS, max_size=6))
    return '"' + "".join(draw(st.sampled_from(_spellings(c))) for p in pieces for c in p) + '"'


@st.composite
def _arrays(draw: st.DrawFn, items: st.SearchStrategy[str]) -> str:
    parts = [f"{draw(SPACE)}{part}{draw(SPACE)}" for part in draw(st.lists(items, max_size=5))]
    return f"[{','.join(parts) or draw(SPACE)}]"


@st.composite
def _objects(draw: st.DrawFn, items: st.SearchStrategy[str]) -> str:
    names = draw(st.lists(strings(), max_size=5, unique_by=_decoded))
    parts = [
        f"{draw(SPACE)}{name}{draw(SPACE)}:{draw(SPACE)}{draw(items)}{draw(SPACE)}"
        for name in names
    ]
    return f"{{{','.join(parts) or draw(SPACE)}}}"


_decoded: Callable[[str], Any] = json.loads


def _containers(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(_arrays(items), _objects(items))


@st.composite
def json_texts(draw: st.DrawFn) -> bytes:
    """A valid JSON text without duplicate keys."""
    inner = st.recursive(st.one_of(SCALARS, strings()), _containers, max_leaves=12)
    return f"{draw(SPACE)}{draw(inner)}{draw(SPACE)}".encode()


def json_values(*, floats: bool = True, beyond_double: bool = False) -> st.SearchStrategy[Any]:
    """Plain values; integers within ±(2^53-1) unless asked otherwise."""
    most = 2**80 if beyond_double else 2**53 - 1
    words = st.lists(CHARACTERS, max_size=5).map("".join)
    leaves: st.SearchStrategy[Any] = st.one_of(
        st.none(), st.booleans(), st.integers(-most, most), words
    )
    if floats:
        leaves |= st.floats(allow_nan=False, allow_infinity=False)
        leaves |= st.floats(-1000, 1000).map(lambda x: float(round(x)))
    return st.recursive(
        leaves,
        lambda part: st.lists(part, max_size=5) | st.dictionaries(words, part, max_size=5),
        max_leaves=15,
    )
