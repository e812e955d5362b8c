"""Taking secrets out of values before anything is digested, written or kept.

A :class:`Redactor` finds them by the names of members, by what texts look like, and at places
that an operator names. It never changes what it is given, and costs next to nothing where there
is nothing to find: one linear search over the canonical form, which is made anyway.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal

from . import secret_texts
from .commands import words_without
from .credentials import Secrecy, folded, secrecy_of, signs_of
from .echoes import MOST, secrets_in, spellings, without_echoes
from .harmless import is_phrase, says_nothing
from .inner_json import read, written
from .named_places import Node, Nodes, below, ends, trie_of
from .pointer import pointer_of
from .schema_engine import search_for
from .secret_texts import REDACTED, without_known, without_named
from .shapes import SAMPLES, is_schema, labelled

__all__ = ["REDACTED", "Redacted", "Redactor"]

Side = Literal["input", "output"]

#: Canonical forms in which there may be something, and that are longer, go as a whole.
_LARGEST: Final = 1024 * 1024
_DEEPEST: Final = 200
#: Texts that are JSON texts that hold JSON texts and so on are opened so often.
_NESTED: Final = 4
#: Where something was taken out, what stood beside it may come to light.
_ROUNDS: Final = 6
_LONG: Final = 64 * 1024
_AT_ONCE: Final = 50
#: So many places are named.
_NAMED: Final = 20
_LONGEST_STEP: Final = 80
_LONGEST_FORM: Final = 200
_SHORTEST_CODE: Final = 512
_ENCODED: Final = re.compile(r"[A-Za-z0-9+/\r\n]++=*+\s*+")
_TORN: Final = re.compile("[\ud800-\udfff]")
_CONTENT: Final = "structuredContent"


@dataclass(frozen=True, slots=True)
class Redacted:
    """A value without its secrets, and the places where they were (RFC 6901, the first few).

    ``more`` counts the places that are not named. ``secrets`` are texts that were taken out.
    """

    value: Any
    places: tuple[str, ...]
    more: int = 0
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        named = ", ".join(place or "the whole" for place in self.places)
        return f"{named} and {self.more} more" if self.more else named


@dataclass(frozen=True)
class Redactor:
    """What is redacted, ready to be applied. Make one for each set of rules and keep it.

    ``credentials`` is whether to look for what looks like a credential, by name or by itself.
    ``keys`` are further names of members, case and ``_-. `` aside; ``pointers`` are places from
    ``/input`` or ``/output`` on, in which ``*`` is any member or item. What is named for
    ``/output/structuredContent`` counts in text blocks that repeat it as JSON, too.
    """

    credentials: bool = True
    keys: tuple[str, ...] = ()
    pointers: tuple[str, ...] = ()
    _finds: Callable[[object], bool] = field(init=False, repr=False, compare=False)
    _own: frozenset[str] = field(init=False, repr=False, compare=False)
    _trie: Mapping[str, Node] = field(init=False, repr=False, compare=False)
    _short: Callable[[str], str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_own", frozenset(map(folded, self.keys)))
        object.__setattr__(self, "_finds", _search(self.credentials, tuple(sorted(self._own))))
        object.__setattr__(self, "_trie", trie_of(self.pointers))
        object.__setattr__(self, "_short", lru_cache(maxsize=1024)(self._line))

    def redacted(
        self, value: Any, side: Side, form: bytes, told: tuple[str, ...] = ()
    ) -> Redacted | None:
        """The value without its secrets, None if there are none; ``form`` is its canonical form.

        ``told`` are secrets that were taken out elsewhere. They go from texts here as well, as
        do those that are found by names and places.
        """
        nodes = self._trie.get(side)
        text = form.decode()
        echoes = told != () and any(each in text for each in spellings(told))
        if not echoes and nodes is None and not self._finds(text):
            return None
        if len(form) > _LARGEST:
            return Redacted(REDACTED, ("",))
        walk = _Walk(self, self._finds, side, nodes)
        found = walk.part(value, (nodes,) if nodes is not None else ())
        secrets = tuple(walk.secrets[:MOST])
        if secrets or echoes:
            found = without_echoes(found, spellings((*secrets, *told)), walk.note)
        if found is value:
            return None
        return Redacted(found, tuple(walk.places), walk.count - len(walk.places), secrets)

    def line(self, text: str) -> str:
        """A text of a ledger line without what looks like a credential in it."""
        return self._short(text) if len(text) <= _LONGEST_FORM else self._line(text)

    def place(self, side: Side, steps: Iterable[str]) -> str:
        """A pointer into a value as it may be written down: not below what is redacted there."""
        root = self._trie.get(side)
        nodes: Nodes = (root,) if root is not None else ()
        shown: list[str] = []
        for step in steps:
            nodes = below(nodes, step)
            shown.append(self.step(step))
            if ends(nodes) or self.secrecy(step):
                break
        return pointer_of(shown)

    def step(self, name: str) -> str:
        """The name of a member as it may be written down."""
        return str(_short(self.line(name)))

    def secrecy(self, name: str) -> Secrecy | None:
        """What of a value of that name is a secret."""
        if self.is_own(name):
            return "any"
        return secrecy_of(name) if self.credentials else None

    def is_own(self, name: str) -> bool:
        """Whether the operator named it."""
        return bool(self._own) and folded(name) in self._own

    def text(self, text: str) -> str:
        """A text without its secrets, as far as texts tell."""
        for _ in range(_ROUNDS if len(text) <= _LONG else 1):
            found = without_known(text) if self.credentials else text
            found = without_named(found, self.secrecy)
            if found == text:
                break
            text = found
        return text

    def _line(self, text: str) -> str:
        try:
            found = self._finds(text)
        except UnicodeEncodeError:
            text = _TORN.sub("\ufffd", text)
            found = self._finds(text)
        return self.text(text) if found else text


@lru_cache(maxsize=64)
def _search(credentials: bool, own: tuple[str, ...]) -> Callable[[object], bool]:
    patterns = [secret_texts.SIGNS] if credentials else []
    # A pattern has a largest size, so many names are looked for in turns.
    patterns += [
        signs_of(own[begin : begin + _AT_ONCE]) + r"|\\u00[2-7]"
        for begin in range(0, len(own), _AT_ONCE)
    ]
    if len(patterns) == 2:
        patterns = ["|".join(patterns)]
    searches = [search_for(f"(?i){pattern}") for pattern in patterns]
    if len(searches) == 1:
        return searches[0]
    return lambda text: any(search(text) for search in searches)


class _Walk:
    """One way through one value. Parts without secrets are handed back as they are."""

    def __init__(
        self,
        rules: Redactor,
        finds: Callable[[object], bool],
        side: Side,
        root: Node | None,
    ) -> None:
        self._rules = rules
        self._finds = finds
        self._path: list[str | int] = []
        self._nested = 0
        self._level = 0
        self._describes = False
        repeated = root.get(_CONTENT) if root is not None and side == "output" else None
        self._repeated: Nodes = (repeated,) if repeated is not None else ()
        self.places: list[str] = []
        self.count = 0
        self.secrets: list[str] = []

    def part(self, value: Any, nodes: Nodes) -> Any:
        """A part of the value as it may be kept; the very same if there is nothing in it."""
        if nodes and ends(nodes):
            return self._gone(value, "any", is_named=True)
        kind = type(value)
        if kind is str:
            return self._text(value, nodes)
        if kind is dict:
            return self._deeper(self._members, value, nodes)
        if kind is list:
            return self._deeper(self._items, value, nodes)
        return value

    def _deeper(self, how: Callable[[Any, Nodes], Any], value: Any, nodes: Nodes) -> Any:
        if self._level > _DEEPEST:  # counted through texts that are JSON: it is our stack
            return self._gone(value, "any")
        self._level += 1
        found = how(value, nodes)
        self._level -= 1
        return found

    def _members(self, value: dict[str, Any], nodes: Nodes) -> Any:
        labels = labelled(value, self._rules.secrecy)
        holder = self._path[-1] if self._path else None
        changed: dict[str, Any] | None = None
        for name, part in value.items():
            shown = self._rules.line(name)
            if shown != name:
                shown = _free(shown, value, changed or {})
            self._path.append(shown)
            inner = below(nodes, name) if nodes else nodes
            found = self._member(name, part, labels, holder)
            if found is part:
                describes, self._describes = self._describes, self._tells_of(name, part, holder)
                found = self.part(part, inner)
                self._describes = describes
            if shown != name:
                self.note(self._path)
            self._path.pop()
            if changed is None and (found is not part or shown != name):
                changed = dict(_before(name, value))
            if changed is not None:
                changed[shown] = found
        return value if changed is None else changed

    def _member(
        self, name: str, part: Any, labels: dict[str, Secrecy], holder: str | int | None
    ) -> Any:
        """What stands in the place of a member by its name; the very same if it is no secret."""
        if self._describes and name in SAMPLES:
            return self._gone(part, "any")
        secrecy = self._rules.secrecy(name) or labels.get(name)
        is_own = self._rules.is_own(name)
        if secrecy is None or (not is_own and is_schema(holder, part)):
            return part
        return self._gone(part, secrecy, is_named=is_own)

    def _tells_of(self, name: str, part: Any, holder: str | int | None) -> bool:
        """Whether a member stands in the schema of a credential."""
        return self._describes or (
            is_schema(holder, part) and self._rules.secrecy(name) is not None
        )

    def _items(self, value: list[Any], nodes: Nodes) -> Any:
        changed: list[Any] | None = None
        option: Secrecy | None = None
        spoken = words_without(value, REDACTED) if self._rules.credentials else {}
        for index, part in enumerate(value):
            self._path.append(index)
            inner = below(nodes, str(index)) if nodes else nodes
            found = self._gone(part, option) if option and type(part) is str else part
            if index in spoken and found is part:
                found = self._said(part, spoken[index])
            if found is part:
                found = self.part(part, inner)
            self._path.pop()
            # In a command as a list the word after an option is its value.
            is_option = type(part) is str and part[:1] == "-" and len(part) <= _LONGEST_FORM
            option = self._rules.secrecy(part) if is_option else None
            if found is not part:
                changed = list(value) if changed is None else changed
                changed[index] = found
        return value if changed is None else changed

    def _said(self, word: str, kept: str) -> str:
        """What is left of a word of a command that is a secret, or that ends with one."""
        if len(self.secrets) < MOST:
            self.secrets += secrets_in(word[len(kept) - len(REDACTED) :])
        self.note(self._path)
        return kept

    def _gone(self, value: Any, secrecy: Secrecy, *, is_named: bool = False) -> Any:
        """What stands in the place of a secret; the very same if it is none."""
        if value is None or isinstance(value, bool) or value in ("", REDACTED) or value in ([], {}):
            return value
        if type(value) is str and not is_named and says_nothing(value):
            return value
        is_number = isinstance(value, (int, float))
        if secrecy == "text" and is_number:
            return value
        if secrecy == "phrase" and not (
            is_phrase(value) if type(value) is str else isinstance(value, list) and len(value) > 5
        ):
            return value
        if secrecy == "digits":
            text = str(value) if is_number else value
            if not (isinstance(text, str) and text.isdecimal() and 4 <= len(text) <= 12):
                return value
        if len(self.secrets) < MOST:
            self.secrets += secrets_in(value, is_named=is_named)
        self.note(self._path)
        return REDACTED

    def note(self, path: list[str | int]) -> None:
        """Remember a place, and each only once as far as they are named."""
        place = pointer_of(map(_short, path))
        if place in self.places:
            return
        self.count += 1
        if len(self.places) < _NAMED:
            self.places.append(place)

    def _text(self, text: str, nodes: Nodes) -> str:
        if self._repeated and not self._nested and _is_text_block(self._path):
            nodes = (*nodes, *self._repeated)
        if not nodes and (len(text) < 4 or not self._may_hold(text)):
            return text
        if len(text) > _SHORTEST_CODE and _ENCODED.fullmatch(text):
            return text  # a picture, say: what looks like a secret in it does so by chance
        found = self._inside(text, nodes)
        if found is None:
            found = self._rules.text(text)
        if found == text:
            return text
        self.note(self._path)
        return found

    def _may_hold(self, text: str) -> bool:
        try:
            return self._finds(text)
        except UnicodeEncodeError:  # half of a surrogate pair, from a JSON text in a text
            return True

    def _inside(self, text: str, nodes: Nodes) -> str | None:
        """A text that is a JSON text without its secrets; None if it is none."""
        if self._nested >= _NESTED or text.lstrip()[:1] not in ("{", "[", '"'):
            return None
        inner = read(text)
        if inner is None:
            return None
        told, self._nested = (self.places, self.count, self._path), self._nested + 1
        self.places, self.count, self._path = [], 0, []
        found = self.part(inner, nodes)
        (self.places, self.count, self._path), self._nested = told, self._nested - 1
        return text if found is inner else written(found)


def _is_text_block(path: list[str | int]) -> bool:
    return len(path) == 3 and path[0] == "content" and path[2] == "text"


def _before(name: str, members: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for one, part in members.items():
        if one == name:
            return
        yield one, part


def _short(step: str | int) -> str | int:
    if isinstance(step, int) or len(step) <= _LONGEST_STEP:
        return step
    return step[:_LONGEST_STEP] + "…"


def _free(name: str, *taken: Mapping[str, Any]) -> str:
    number, free = 1, name
    while any(free in each for each in taken):
        number += 1
        free = f"{name} {number}"
    return free
