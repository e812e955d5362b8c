"""Globs: many patterns with ``*`` in them over one text, without trying each of them.

A ``*`` is any run of characters, also none; nothing else is special. The globs are sorted by the
literal text before their first ``*``, those that begin alike by the text behind their last one,
those that end alike too by a rare pair of letters between. Nothing backtracks: once both ends are
fixed, the leftmost place of each piece between them is always a right one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, pairwise
from typing import NamedTuple, Protocol


class Globs:
    """Globs with a label each, compiled once. Each holds at least one ``*`` and no ``**``."""

    __slots__ = ("_starts",)

    def __init__(self, labels: Mapping[str, str]) -> None:
        leads: dict[str, list[_Glob]] = defaultdict(list)
        for glob, label in labels.items():
            lead, *middle, tail = glob.split("*")
            turned = tuple(piece[::-1] for piece in reversed(middle))
            leads[lead].append(_Glob(label, tail[::-1], turned))
        self._starts = _ByStart({lead: _Tails(globs) for lead, globs in leads.items()})

    def find(self, text: str) -> str | None:
        """The label of a glob that matches ``text``, always the same one; ``None`` without one."""
        return self._starts.find(text)


class _Glob(NamedTuple):
    """A glob without its leading literal, turned round: the last letter comes first."""

    label: str
    tail: str
    pieces: tuple[str, ...]


class _Finder(Protocol):
    def find(self, text: str) -> str | None: ...


class _ByStart:
    """Finders by the literal that a text must begin with; asked with what stands behind it.

    In sorted order the greatest literal not above a text is the only candidate beside the
    literals that it begins with itself, so each knows the longest of those: its parent.
    """

    __slots__ = ("_finders", "_literals", "_parents")

    def __init__(self, finders: Mapping[str, _Finder]) -> None:
        self._literals = sorted(finders)
        self._finders = [finders[literal] for literal in self._literals]
        self._parents: list[int] = []
        open_ones: list[int] = []
        for at, literal in enumerate(self._literals):
            while open_ones and not literal.startswith(self._literals[open_ones[-1]]):
                open_ones.pop()
            self._parents.append(open_ones[-1] if open_ones else -1)
            open_ones.append(at)

    def find(self, text: str) -> str | None:
        at = bisect_right(self._literals, text) - 1
        while at >= 0:
            literal = self._literals[at]
            if text.startswith(literal):
                found = self._finders[at].find(text[len(literal) :])
                if found is not None:
                    return found
            at = self._parents[at]
        return None


class _Tails:
    """Globs that begin alike, by the literal behind their last ``*``."""

    __slots__ = ("_ends", "_whole")

    def __init__(self, globs: Sequence[_Glob]) -> None:
        self._whole = next(
            (each.label for each in globs if not each.tail and not each.pieces), None
        )
        tails: dict[str, list[_Glob]] = defaultdict(list)
        for each in globs:
            tails[each.tail].append(each)
        self._ends = _ByStart({tail: _Middles(alike) for tail, alike in tails.items()})

    def find(self, text: str) -> str | None:
        return self._whole if self._whole is not None else self._ends.find(text[::-1])


class _Middles:
    """Globs that begin and end alike, by the pieces between.

    The longest piece of a glob stands for it. Of its pairs of letters the rarest among all globs
    leads to it, so that a text is asked once for its pairs and not once for every glob.
    """

    __slots__ = ("_by_pair", "_letters", "_of_letters", "_pairs", "_whole")

    def __init__(self, globs: Sequence[_Glob]) -> None:
        self._whole = next((each.label for each in globs if not each.pieces), None)
        longest = {each: max(each.pieces, key=len) for each in globs if each.pieces}
        counts = Counter(pair for piece in longest.values() for pair in set(pairwise(piece)))
        self._by_pair: dict[tuple[str, str], list[_Glob]] = defaultdict(list)
        letters: list[tuple[str, _Glob]] = []
        for each, piece in longest.items():
            if len(piece) == 1:
                letters.append((piece, each))
            else:
                rarest = min(pairwise(piece), key=lambda pair: (counts[pair], pair))
                self._by_pair[rarest].append(each)
        self._pairs = frozenset(self._by_pair)
        self._letters = tuple(letter for letter, _ in letters)
        self._of_letters = tuple(each for _, each in letters)

    def find(self, text: str) -> str | None:
        if self._whole is not None:
            return self._whole
        likely: list[_Glob] = []
        for pair in self._pairs.intersection(pairwise(text)):
            likely += self._by_pair[pair]
        if self._letters:
            likely += compress(self._of_letters, map(text.__contains__, self._letters))
        return min([each.label for each in likely if _in_order(each.pieces, text)], default=None)


def _in_order(pieces: Iterable[str], text: str) -> bool:
    """Whether ``text`` holds the pieces one behind the other; each is taken where it first fits."""
    at = 0
    for piece in pieces:
        found = text.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return True
