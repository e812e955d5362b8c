"""The published schema of the settings: loaded once, compiled once, and walked along a path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from mcp_envelope.core.document import Document, parse
from mcp_envelope.core.schema import SchemaCheck, compile_schema

from .settings_mistakes import KeyPath

NAME: Final = "settings.schema.json"
_PLACE: Final = Path(__file__).with_name(NAME)
#: How the documentation calls what the operator names.
_PLACEHOLDERS: Final = {
    "upstreams": "NAME",
    "tools": "TOOL",
    "env": "VARIABLE",
    "headers": "HEADER",
}


@dataclass(frozen=True, slots=True)
class Key:
    """A key that may be set. ``path`` has placeholders (NAME, TOOL) for the operator's names."""

    path: tuple[str, ...]
    schema: Mapping[str, Any]
    reloads: bool


@cache
def document() -> Document:
    """The schema, with its exact bytes."""
    return parse(_PLACE.read_bytes())


@cache
def compiled() -> SchemaCheck:
    """The schema, ready to check settings."""
    return compile_schema(document().value, name="settings")


def resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part of the schema with what it refers to; what stands beside a reference wins."""
    reference = schema.get("$ref")
    if reference is None:
        return schema
    target = resolved(document().value["$defs"][reference.removeprefix("#/$defs/")])
    return {**target, **{name: part for name, part in schema.items() if name != "$ref"}}


def below(schema: Mapping[str, Any], step: str | int) -> Mapping[str, Any] | None:
    """The part of the schema for a member or an item; None if there can be none."""
    if isinstance(step, int):
        found = schema.get("items")
    else:
        found = schema.get("properties", {}).get(step, schema.get("additionalProperties"))
    return resolved(found) if isinstance(found, dict) else None


def part_for(path: KeyPath) -> Mapping[str, Any] | None:
    """The part of the schema for a place; None if there is no such place."""
    found: Mapping[str, Any] | None = document().value
    for step in path:
        found = below(found, step) if found is not None else None
    return found


def every_key() -> Iterator[Key]:
    """Every key that may be set, in the order of the schema."""
    yield from _keys((), document().value, False)


def _keys(above: tuple[str, ...], schema: Mapping[str, Any], reloads: bool) -> Iterator[Key]:
    for name, raw in schema.get("properties", {}).items():
        part, path = resolved(raw), (*above, name)
        changes = reloads or bool(part.get("x-reload"))
        yield Key(path, part, changes)
        open_to = part.get("additionalProperties")
        if isinstance(open_to, dict):
            inner, path = resolved(open_to), (*path, _PLACEHOLDERS[name])
            yield Key(path, inner, changes)
            if name in ("upstreams", "tools"):
                yield from _keys(path, inner, changes)
        else:
            yield from _keys(path, part, changes)
