r"""Regular expressions as texts: what they cost, and how to say them so that the engine knows.

Replaced are those that ECMA-262 allows and the engine does not:

``\0``, ``[^]``, a pair of surrogate escapes, and a hyphen after a class (``[\w-.]``, which only
the older, lenient grammar allows, and which is common all the same).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

_PAIR: Final = r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
_TOKEN: Final = re.compile(
    rf"{_PAIR}|(?P<nul>\\0(?![0-9]))|(?P<hyphen>\\[dDsSwW]-(?!\]))|(?P<any>\[\^\])|\\.|(?P<edge>[\[\]])",
    re.DOTALL,
)


_LOOK: Final = ("(?=", "(?<=")
_GROUP_TOKEN: Final = re.compile(
    r"\\(?P<back>[1-9k])|\\.|\[\^?\]?(?:\\.|[^\]\\])*+\]|(?P<edge>[()])|(?P<many>[*+{])", re.DOTALL
)


@dataclass(slots=True)
class _Group:
    """A group of a pattern: within what it stands, and what stands within it."""

    around: tuple[_Group, ...]
    looks: bool
    repeated: bool = False
    long: bool = False

    @property
    def rescans(self) -> bool:
        """Whether this is a look-around that may read far, again and again."""
        return self.looks and self.long and any(g.repeated for g in (self, *self.around))


def rescans(pattern: str) -> int:
    """How many times over a text may be read again at each of its characters.

    A look-around that succeeds within a repetition may read on to the end of the text each time,
    and one within it again; an engine that counts backtracks sees nothing of it. (Negative ones
    fail or make their body fail, and that counts.)
    """
    groups: list[_Group] = []
    around: tuple[_Group, ...] = ()
    for token in _GROUP_TOKEN.finditer(pattern):
        if token["edge"] == "(":
            groups.append(_Group(around, pattern.startswith(_LOOK, token.start())))
            around += (groups[-1],)
        elif token["edge"] and around:
            around[-1].repeated = pattern[token.end() : token.end() + 1] in ("*", "+", "{")
            around = around[:-1]
        elif token["back"] or token["many"]:
            for group in around:
                group.long = True
    return max((sum(g.rescans for g in (each, *each.around)) for each in groups), default=0)


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
