"""Wrong documents, made from right ones by breaking one rule of the schema at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from tests.dialects.strategies import (
    TYPES,
    Schema,
    allowed_types,
    holds,
    is_choice_of_members,
    is_forbidden,
    json_type,
    member_parts,
    search,
    spread,
)

_SAMPLES: Final[dict[str, Any]] = {
    "null": None, "boolean": True, "integer": 7, "number": 0.5,
    "string": "text", "array": [], "object": {},
}  # fmt: skip


class Mutant(NamedTuple):
    """A document that breaks ``keyword`` at ``pointer``, and must be refused."""

    pointer: str
    keyword: str
    document: Any


class _Found(NamedTuple):
    """A wrong value for one place, before it is put there."""

    pointer: str
    keyword: str
    value: Any


_Founds = Iterator[_Found]


def mutants(instance: Any, schema: Schema) -> Iterator[Mutant]:
    """Every document that breaks one rule which ``schema`` has for ``instance``."""
    for found in _at(instance, [schema]):
        yield Mutant(*found)


def applicable(schemas: Sequence[Schema], value: Any) -> tuple[list[Schema], frozenset[str]]:
    """The schemas that ``value`` must meet, and the types by which another branch would let it in.

    ``value`` is a right one: its conditions decide between ``then`` and ``else``, its type between
    the branches of an ``anyOf``.
    """
    parts = spread(schemas)
    spare: set[str] = set()
    done = 0
    while done < len(parts):
        part = parts[done]
        if "if" in part:
            parts += spread([part.get("then" if holds(part["if"], value) else "else", {})])
        branches = part.get("anyOf", ())
        if branches and not is_choice_of_members(branches):
            types = [allowed_types(spread([branch])) for branch in branches]
            taken = next(n for n, allowed in enumerate(types) if json_type(value) in allowed)
            parts += spread([branches[taken]])
            spare |= {name for n, allowed in enumerate(types) if n != taken for name in allowed}
        done += 1
    return parts, frozenset(spare)


def _at(value: Any, schemas: Sequence[Schema], spare: frozenset[str] = frozenset()) -> _Founds:
    parts, more = applicable(schemas, value)
    yield from _other_types(parts, spare | more)
    for part in parts:
        yield from _other_constants(part)
        if isinstance(value, str):
            yield from _other_strings(part, value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield from _other_numbers(part)
        elif isinstance(value, list):
            yield from _other_lists(part, value)
        elif isinstance(value, dict):
            yield from _other_members(part, value)
    if isinstance(value, dict):
        yield from _deeper_in_object(parts, value)
    elif isinstance(value, list):
        yield from _deeper_in_array(parts, value)


def _deeper_in_object(parts: Sequence[Schema], value: dict[str, Any]) -> _Founds:
    for name, member in value.items():
        of_member = member_parts(parts, name)
        for found in _at(member, of_member) if of_member else ():
            yield _inside(found, name, {**value, name: found.value})


def _deeper_in_array(parts: Sequence[Schema], value: list[Any]) -> _Founds:
    items = [part["items"] for part in parts if "items" in part]
    for index, item in enumerate(value[:2] if items else ()):
        for found in _at(item, items):
            changed = [*value[:index], found.value, *value[index + 1 :]]
            yield _inside(found, str(index), changed)


def _inside(found: _Found, step: str, value: Any) -> _Found:
    escaped = step.replace("~", "~0").replace("/", "~1")
    return _Found(f"/{escaped}{found.pointer}", found.keyword, value)


def _other_types(parts: Sequence[Schema], spare: frozenset[str]) -> _Founds:
    for name in sorted(set(TYPES) - set(allowed_types(parts)) - spare):
        yield _Found("", "type", _SAMPLES[name])


def _other_constants(part: Schema) -> _Founds:
    right = [part["const"]] if "const" in part else part.get("enum", [])
    if right:
        near = [*(text + "x" for text in right), f"{right[0]}\n", right[0].upper() + " "]
        for wrong in (*near, "", 0, None, [right[0]]):
            yield _Found("", "const" if "const" in part else "enum", wrong)


def _other_strings(part: Schema, value: str) -> _Founds:
    if part.get("minLength", 0):
        yield _Found("", "minLength", value[: part["minLength"] - 1])
    if "maxLength" in part:
        padded = value + (value[-1:] or "x") * (part["maxLength"] + 1 - len(value))
        yield _Found("", "maxLength", padded)
    spoilt = [
        value + "\n", value + "\r", value + "\r\n", "\n" + value, value + " ", " " + value,
        value + "\u2028", value + "\u200b", value + "\u0000", value + "\uff11", value + "\u0661",
        value + "-", "." + value, value + "\U0001f642", value * 2 + "!", "",
    ]  # fmt: skip
    for wrong in spoilt:
        if "pattern" in part and not search(part["pattern"], wrong):
            yield _Found("", "pattern", wrong)
        if part.get("not") and holds(part["not"], wrong):
            yield _Found("", "not", wrong)


def _other_numbers(part: Schema) -> _Founds:
    if "minimum" in part:
        for wrong in (part["minimum"] - 1, float(part["minimum"] - 1), -(10**30)):
            yield _Found("", "minimum", wrong)
    if "maximum" in part:
        for wrong in (part["maximum"] + 1, float(part["maximum"] + 1), 10**30):
            yield _Found("", "maximum", wrong)


def _other_lists(part: Schema, value: list[Any]) -> _Founds:
    if part.get("minItems", 0):
        yield _Found("", "minItems", value[: part["minItems"] - 1])
    if part.get("uniqueItems") and value:
        yield _Found("", "uniqueItems", [*value, value[0]])
    if "contains" in part:
        wanted = part["contains"]["const"]
        yield _Found("", "contains", [item for item in value if item != wanted])


def _other_members(part: Schema, value: dict[str, Any]) -> _Founds:
    for name in part.get("required", ()):
        yield _Found("", "required", _without(value, [name]))
    for name, schema in part.get("properties", {}).items():
        if is_forbidden(schema):
            for present in (None, "text"):
                yield _Found(f"/{name}", "not", {**value, name: present})
    extra = part.get("additionalProperties")
    if extra is False:
        for name in ("surplus", "", "$schema", "Schema_version"):
            yield _Found(f"/{name}", "additionalProperties", {**value, name: None})
    elif isinstance(extra, dict):
        for found in _at("text", [extra]):
            yield _inside(found, "surplus", {**value, "surplus": found.value})
    for keyword in ("anyOf", "oneOf"):
        yield from _other_choices(keyword, part.get(keyword, ()), value)


def _other_choices(keyword: str, branches: Sequence[Schema], value: dict[str, Any]) -> _Founds:
    if branches and is_choice_of_members(branches):
        names = [name for branch in branches for name in branch["required"]]
        yield _Found("", keyword, _without(value, names))
        if keyword == "oneOf":
            error = {"code": 1, "message": "m"}
            yield _Found("", keyword, {**value, **dict.fromkeys(names, error)})


def _without(value: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: member for name, member in value.items() if name not in names}
