"""JSON laid out over lines for people, without changing a character of its values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_INDENT: Final = "  "
_PIECE: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_CLOSED_BY: Final = {"{": "}", "[": "]"}


def laid_out(text: str) -> Iterator[str]:
    """The lines of a JSON text: a member or an item each. Numbers stay as they are written."""
    depth, line = 0, ""
    before = ""
    for piece in _PIECE.findall(text):
        if piece in _CLOSED_BY.values():
            depth -= 1
            if _CLOSED_BY.get(before) != piece:
                yield line
                line = _INDENT * depth
            line += piece
        elif before in _CLOSED_BY or before == ",":
            yield line
            line = _INDENT * depth + piece
            depth += piece in _CLOSED_BY
        else:
            line += piece
            depth += piece in _CLOSED_BY
        if piece == ":":
            line += " "
        before = piece
    if line:
        yield line
