"""JSON texts in texts: read and written again."""

from __future__ import annotations

import json
from typing import Any

import orjson


def read(text: str) -> Any:
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


def written(value: Any) -> str:
    """The JSON text of a value."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value, separators=(",", ":"))
