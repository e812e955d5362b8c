"""Which of several URI templates a URI was made from. Nothing here is I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_VARIABLE: Final = re.compile(r"\{[^{}]*\}")


def best_template(uri: str, templates: Iterable[tuple[str, str]]) -> str | None:
    """The server whose template fits best; of equals the first, None if none fits.

    A template fits if the URI begins like it; better if all that is fixed in it is there; of
    such, the longer the beginning the better, then the more that is fixed.
    """
    best: tuple[bool, int, int] | None = None
    owner = None
    for template, server in templates:
        fixed = _VARIABLE.split(template)
        if len(fixed) < 2 or not uri.startswith(fixed[0]):
            continue
        score = (_holds(uri, fixed), len(fixed[0]), sum(map(len, fixed)))
        if best is None or score > best:
            best, owner = score, server
    return owner


def _holds(uri: str, fixed: list[str]) -> bool:
    """Whether the fixed parts stand in a URI one after the other, the last at its end."""
    place = len(fixed[0])
    for part in fixed[1:-1]:
        found = uri.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return uri.endswith(fixed[-1]) and len(uri) - len(fixed[-1]) >= place
