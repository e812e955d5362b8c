"""Taking secrets out of values before anything is digested, written or kept.

A :class:`Redactor` finds them by the names of members, by what texts look like, and at places
that an operator names. It never changes what it is given, and costs next to nothing where there
is nothing to find: one linear search over the canonical form, which is made anyway.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal

import orjson

from . import secret_texts
from .credentials import Secrecy, folded, secrecy_of, signs_of
from .echoes import MOST, secrets_in, spellings, without_echoes
from .pointer import pointer_of, steps_of
from .schema_engine import search_for
from .secret_texts import REDACTED, without_known, without_named

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
_LABELS: Final = ("name", "key", "header", "field", "Name", "Key")
_VALUES: Final = ("value", "values", "Value", "Values")
_CONTENT: Final = "structuredContent"

#: Steps of an operator's pointers, below which others stand; None ends one.
_Node = dict[str | None, Any]
_Nodes = tuple[_Node, ...]


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
    _trie: Mapping[str, _Node] = field(init=False, repr=False, compare=False)
    _short: Callable[[str], str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_own", frozenset(map(folded, self.keys)))
        object.__setattr__(self, "_finds", _search(self.credentials, tuple(sorted(self._own))))
        object.__setattr__(self, "_trie", _trie_of(self.pointers))
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
        nodes: _Nodes = (root,) if root is not None else ()
        shown: list[str] = []
        for step in steps:
            nodes = _below(nodes, step)
            shown.append(self.step(step))
            if _ends(nodes) or self.secrecy(step):
                break
        return pointer_of(shown)

    def step(self, name: str) -> str:
        """The name of a member as it may be written down."""
        return str(_short(self.line(name)))

    def secrecy(self, name: str) -> Secrecy | None:
        """What of a value of that name is a secret."""
        if self._own and folded(name) in self._own:
            return "any"
        return secrecy_of(name) if self.credentials else None

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


def _trie_of(pointers: tuple[str, ...]) -> dict[str, _Node]:
    root: _Node = {}
    for pointer in pointers:
        here = root
        for step in steps_of(pointer):
            here = here.setdefault(step, {})
        here[None] = True
    return {side: node for side, node in root.items() if side is not None}


def _below(nodes: _Nodes, step: str) -> _Nodes:
    return tuple(node[one] for node in nodes for one in (step, "*") if one in node)


def _ends(nodes: _Nodes) -> bool:
    return any(None in node for node in nodes)


class _Walk:
    """One way through one value. Parts without secrets are handed back as they are."""

    def __init__(
        self,
        rules: Redactor,
        finds: Callable[[object], bool],
        side: Side,
        root: _Node | None,
    ) -> None:
        self._rules = rules
        self._finds = finds
        self._path: list[str | int] = []
        self._nested = 0
        self._level = 0
        repeated = root.get(_CONTENT) if root is not None and side == "output" else None
        self._repeated: _Nodes = (repeated,) if repeated is not None else ()
        self.places: list[str] = []
        self.count = 0
        self.secrets: list[str] = []

    def part(self, value: Any, nodes: _Nodes) -> Any:
        """A part of the value as it may be kept; the very same if there is nothing in it."""
        if nodes and _ends(nodes):
            return self._gone(value, "any")
        kind = type(value)
        if kind is str:
            return self._text(value, nodes)
        if kind is dict:
            return self._deeper(self._members, value, nodes)
        if kind is list:
            return self._deeper(self._items, value, nodes)
        return value

    def _deeper(self, how: Callable[[Any, _Nodes], Any], value: Any, nodes: _Nodes) -> Any:
        if self._level > _DEEPEST:  # counted through texts that are JSON: it is our stack
            return self._gone(value, "any")
        self._level += 1
        found = how(value, nodes)
        self._level -= 1
        return found

    def _members(self, value: dict[str, Any], nodes: _Nodes) -> Any:
        said = next((one for one in _LABELS if type(value.get(one)) is str), None)
        label = self._rules.secrecy(value[said]) if said is not None else None
        changed: dict[str, Any] | None = None
        for name, part in value.items():
            shown = self._rules.line(name)
            if shown != name:
                shown = _free(shown, value, changed or {})
            self._path.append(shown)
            secrecy = self._rules.secrecy(name) or (label if name in _VALUES else None)
            inner = _below(nodes, name) if nodes else nodes
            found = self._gone(part, secrecy) if secrecy else part
            if found is part:
                found = self.part(part, inner)
            if shown != name:
                self.note(self._path)
            self._path.pop()
            if changed is None and (found is not part or shown != name):
                changed = dict(_before(name, value))
            if changed is not None:
                changed[shown] = found
        return value if changed is None else changed

    def _items(self, value: list[Any], nodes: _Nodes) -> Any:
        changed: list[Any] | None = None
        option: Secrecy | None = None
        for index, part in enumerate(value):
            self._path.append(index)
            inner = _below(nodes, str(index)) if nodes else nodes
            found = self._gone(part, option) if option and type(part) is str else part
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

    def _gone(self, value: Any, secrecy: Secrecy) -> Any:
        """What stands in the place of a secret; the very same if it is none."""
        if value is None or isinstance(value, bool) or value in ("", REDACTED) or value in ([], {}):
            return value
        is_number = isinstance(value, (int, float))
        if secrecy == "text" and is_number:
            return value
        if secrecy == "digits":
            text = str(value) if is_number else value
            if not (isinstance(text, str) and text.isdecimal() and 4 <= len(text) <= 12):
                return value
        if len(self.secrets) < MOST:
            self.secrets += secrets_in(value)
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

    def _text(self, text: str, nodes: _Nodes) -> str:
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

    def _inside(self, text: str, nodes: _Nodes) -> str | None:
        """A text that is a JSON text without its secrets; None if it is none."""
        if self._nested >= _NESTED or text.lstrip()[:1] not in ("{", "[", '"'):
            return None
        inner = _read(text)
        if inner is None:
            return None
        told, self._nested = (self.places, self.count, self._path), self._nested + 1
        self.places, self.count, self._path = [], 0, []
        found = self.part(inner, nodes)
        (self.places, self.count, self._path), self._nested = told, self._nested - 1
        return text if found is inner else _written(found)


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


def _read(text: str) -> Any:
    """The value of a JSON text; None also where readers may not agree on it."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_int=_number)
    except (ValueError, RecursionError):
        return None


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        raise ValueError("a key is there twice")
    return found


def _number(text: str) -> int | float:
    return int(text) if len(text) < 400 else float(text)


def _written(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value, separators=(",", ":"))
