"""Secrets that are said again: what was taken out of one place may stand in others, unnamed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

import orjson

from .secret_texts import REDACTED

#: So many secrets of a value are looked for elsewhere.
MOST: Final = 32
_SHORTEST: Final = 6
_SHORTEST_NAMED: Final = 4
#: Letters only, as words are: so many of them are no word that others would say by chance.
_NO_WORD: Final = 16
_LONGEST: Final = 4096
_DEEPEST: Final = 200
_GAPS: Final = re.compile(r"[ _.-]")
_TORN: Final = re.compile("[\ud800-\udfff]")
#: What URLs hold unescaped (RFC 3986, 2.3).
_UNRESERVED: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"


def secrets_in(value: Any, *, is_named: bool = False) -> list[str]:
    """The texts and numbers in what was taken out, as far as nobody would say them by chance.

    ``is_named`` is whether an operator named it: then words and short ones count, too.
    """
    found: list[str] = []
    pending = [value]
    while pending and len(found) < MOST:
        part = pending.pop()
        if isinstance(part, dict):
            pending += part.values()
        elif isinstance(part, list):
            pending += part
        elif isinstance(part, (str, int, float)) and not isinstance(part, bool):
            text = part if isinstance(part, str) else repr(part)
            if _is_telling(text, is_named=is_named):
                found.append(text)
    return found


def spellings(secrets: Iterable[str]) -> tuple[str, ...]:
    """How secrets may be written in texts: plainly, in JSON, in URLs; the longest first."""
    found: set[str] = set()
    for secret in secrets:
        in_json = orjson.dumps(secret).decode()[1:-1]
        found |= {
            secret,
            in_json,
            _in_url(secret, _UNRESERVED),
            _in_url(secret, _UNRESERVED + b"/"),
        }
    return tuple(sorted(found, key=lambda text: (-len(text), text)))


def _in_url(text: str, safe: bytes) -> str:
    return "".join(chr(byte) if byte in safe else f"%{byte:02X}" for byte in text.encode())


def without_echoes(
    value: Any, spelled: tuple[str, ...], note: Callable[[list[str | int]], None]
) -> Any:
    """The value with what is spelled out of its texts; the very same if it is nowhere.

    ``note`` is told of each place.
    """
    return _without(value, spelled, note, [])


def _without(
    value: Any,
    spelled: tuple[str, ...],
    note: Callable[[list[str | int]], None],
    path: list[str | int],
) -> Any:
    if type(value) is str:
        text = value
        for each in spelled:
            if each in text:
                text = text.replace(each, REDACTED)
        if text == value:
            return value
        note(path)
        return text
    if (type(value) is not dict and type(value) is not list) or len(path) > _DEEPEST:
        return value
    parts = value.items() if type(value) is dict else enumerate(value)
    changed: Any = None
    for place, part in parts:
        path.append(place)
        found = _without(part, spelled, note, path)
        path.pop()
        if found is not part:
            changed = value.copy() if changed is None else changed
            changed[place] = found
    return value if changed is None else changed


def _is_telling(text: str, *, is_named: bool) -> bool:
    shortest = _SHORTEST_NAMED if is_named else _SHORTEST
    if not shortest <= len(text) <= _LONGEST or text == REDACTED:
        return False
    if _TORN.search(text):  # no value that is digested holds it
        return False
    return is_named or len(text) >= _NO_WORD or not _is_wordy(text)


def _is_wordy(text: str) -> bool:
    """Whether it has only words as sentences have them, like ``required`` or ``See docs``."""
    return all(
        one.isalpha() and (one.islower() or one.isupper() or one.istitle())
        for one in _GAPS.split(text.strip())
    )
