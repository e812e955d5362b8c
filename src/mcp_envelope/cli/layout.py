"""JSON laid out over lines for people, without changing a character of its values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_INDENT: Final = "  "
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_CLOSED_BY: Final = {"{": "}", "[": "]"}


def laid_out(text: str) -> Iterator[str]:
    """The lines of a JSON text: a member or an item each. Numbers stay as they are written."""
    depth, line = 0, ""
    before = ""
    for token in _TOKEN.findall(text):
        if token in _CLOSED_BY.values():
            depth -= 1
            if _CLOSED_BY.get(before) != token:
                yield line
                line = _INDENT * depth
            line += token
        elif before in _CLOSED_BY or before == ",":
            yield line
            line = _INDENT * depth + token
            depth += token in _CLOSED_BY
        else:
            line += token
            depth += token in _CLOSED_BY
        if token == ":":
            line += " "
        before = token
    if line:
        yield line
