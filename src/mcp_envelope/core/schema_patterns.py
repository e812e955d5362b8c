r"""Patterns that ECMA-262 allows and the engine does not, written in a way that both know.

``\0``, ``[^]``, a pair of surrogate escapes, and a hyphen after a class (``[\w-.]``, which only
the older, lenient grammar allows, and which is common all the same).
"""

from __future__ import annotations

import re
from typing import Any, Final

_PAIR: Final = r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
_TOKEN: Final = re.compile(
    rf"{_PAIR}|(?P<nul>\\0(?![0-9]))|(?P<hyphen>\\[dDsSwW]-(?!\]))|(?P<any>\[\^\])|\\.|(?P<edge>[\[\]])",
    re.DOTALL,
)


def respelled(pattern: str) -> str:
    """The pattern in other words, or the same if there are none."""
    in_class = False

    def spell(found: re.Match[str]) -> str:
        nonlocal in_class
        if found["edge"]:
            in_class = found["edge"] == "["
        elif found["nul"]:
            return r"\x00"
        elif found["hyphen"] and in_class:
            return found["hyphen"][:-1] + r"\-"
        elif found["any"] and not in_class:
            return r"[\s\S]"
        elif found[1]:
            high, low = int(found[1], 16), int(found[2], 16)
            return rf"\u{{{0x10000 + (high - 0xD800) * 0x400 + (low - 0xDC00):X}}}"
        return found[0]

    return _TOKEN.sub(spell, pattern)


def respell(schema: dict[str, Any], words: dict[str, str]) -> None:
    """Replace patterns in one subschema."""
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and pattern in words:
        schema["pattern"] = words[pattern]
    keys = schema.get("patternProperties")
    if isinstance(keys, dict) and not words.keys().isdisjoint(keys):
        schema["patternProperties"] = {words.get(key, key): part for key, part in keys.items()}
