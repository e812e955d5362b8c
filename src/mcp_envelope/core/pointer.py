"""RFC 6901 pointers: the addresses that every message of ours uses for a place in a document."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_POINTER: Final = re.compile(r"(?:/(?:[^~/]|~[01])*)*", re.DOTALL)


def pointer_of(steps: Iterable[str | int]) -> str:
    """The pointer of a path of member names and indexes."""
    return "".join("/" + str(s).replace("~", "~0").replace("/", "~1") for s in steps)


def steps_of(pointer: str) -> list[str]:
    """The path that a pointer spells; indexes stay text."""
    return [s.replace("~1", "/").replace("~0", "~") for s in pointer.split("/")[1:]]


def is_pointer(text: str) -> bool:
    """Whether a text is a pointer: empty, or steps that begin with ``/`` and escape ``~``."""
    return _POINTER.fullmatch(text) is not None


def is_index(step: str) -> bool:
    """Whether a step can address an array element (no sign, no leading zero)."""
    return step.isascii() and step.isdigit() and (step == "0" or step[0] != "0")
