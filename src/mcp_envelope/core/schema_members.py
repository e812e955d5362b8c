"""Which members and items of a value a schema refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from . import schema_words as words
from .schema_map import Node
from .schema_search import Found, Refusal, Search

_LISTED: Final = 12


def _required(search: Search, refusal: Refusal, keyword: str) -> Found:
    value, schema = refusal.value, refusal.node.schema
    if not isinstance(value, dict):
        return
    known = schema.get("properties", {})
    strangers = [name for name in value if name not in known]
    for name in schema[keyword]:
        if name not in value:
            near = words.nearest(name, strangers)
            hint = f"did you mean it by {words.quoted(near)}?" if near else "add it"
            purpose = words.purpose(known.get(name)) if near is None else ""
            yield search.problem(
                refusal,
                f"the member {words.quoted(name)} is missing",
                f"{hint}: {purpose}" if purpose else hint,
                (keyword,),
                (*refusal.path, name),
            )


def _properties(search: Search, refusal: Refusal, keyword: str) -> Found:
    value = refusal.value
    if isinstance(value, dict):
        for name in refusal.node.schema[keyword]:
            if name in value:
                yield from search.below(refusal, (keyword, name), value[name], name)


def _pattern_properties(search: Search, refusal: Refusal, keyword: str) -> Found:
    value, engine = refusal.value, search.checks.engine
    if isinstance(value, dict):
        for pattern in refusal.node.schema[keyword]:
            for name, part in value.items():
                if engine.matches(pattern, name):
                    yield from search.below(refusal, (keyword, pattern), part, name)


def _additional_properties(search: Search, refusal: Refusal, keyword: str) -> Found:
    value, schema = refusal.value, refusal.node.schema
    if not isinstance(value, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    matches = search.checks.engine.matches
    for name, part in value.items():
        if name not in known and not any(matches(pattern, name) for pattern in patterns):
            if schema[keyword] is False:
                yield from _unexpected(search, refusal, keyword, name, list(known))
            else:
                yield from search.below(refusal, (keyword,), part, name)


def _unexpected(
    search: Search, refusal: Refusal, keyword: str, name: str, known: list[str]
) -> Found:
    near = words.nearest(name, [other for other in known if other not in refusal.value])
    hint = f"did you mean {words.quoted(near)}?" if near else "leave it out"
    if near is None and 0 < len(known) <= _LISTED:
        hint += f"; known here: {words.listed(known, _LISTED)}"
    path = (*refusal.path, name)
    message = f"unexpected member {words.quoted(name)}"
    yield search.problem(refusal, message, hint, (keyword,), path)


def _property_names(search: Search, refusal: Refusal, keyword: str) -> Found:
    value = refusal.value
    if not isinstance(value, dict):
        return
    part = refusal.node.schema[keyword]
    for name in value:
        if part is False:
            yield from _unexpected(search, refusal, keyword, name, [])
        elif search.accepts(part, name) is not True:
            node = search.checks.schemas.node_of(part)
            if node is not None:
                yield Refusal(node, name, (*refusal.path, name), True, refusal.note)


def _items(search: Search, refusal: Refusal, keyword: str) -> Found:
    value, schema = refusal.value, refusal.node.schema
    if not isinstance(value, (list, tuple)):
        return
    part = schema[keyword]
    if isinstance(part, list):
        for index in range(min(len(part), len(value))):
            yield from search.below(refusal, (keyword, index), value[index], index)
        return
    before = schema.get("prefixItems" if keyword == "items" else "items", [])
    if keyword == "additionalItems" and not isinstance(before, list):
        return
    for index in range(len(before), len(value)):
        yield from search.below(refusal, (keyword,), value[index], index)


def _contains(search: Search, refusal: Refusal, keyword: str) -> Found:
    value, node = refusal.value, refusal.node
    if search.accepts_keyword(node, keyword, value) is True:
        return
    part = node.schema[keyword]
    count = sum(search.accepts(part, item) is True for item in value)
    least, most = node.schema.get("minContains", 1), node.schema.get("maxContains")
    bound = f"at least {least}" if count < least or most is None else f"at most {most}"
    what = words.described(part)
    message = f"must hold {bound} of this: {what}; and holds {count}"
    yield search.problem(refusal, message, words.purpose(part), (keyword,))


def unevaluated(search: Search, refusal: Refusal) -> Found:
    """Members or items that nothing in the subschema looks at, though something must.

    To be asked last: only if all else is satisfied are these keywords the reason.
    """
    value, schema = refusal.value, refusal.node.schema
    if isinstance(value, dict) and "unevaluatedProperties" in schema:
        keyword, matches = "unevaluatedProperties", search.checks.engine.matches
        known, patterns = _looked_at(search, refusal.node)
        for name, part in value.items():
            if name in known or any(matches(pattern, name) for pattern in patterns):
                continue
            if schema[keyword] is False:
                yield from _unexpected(search, refusal, keyword, name, list(known))
            else:
                yield from search.below(refusal, (keyword,), part, name)
    if isinstance(value, (list, tuple)) and "unevaluatedItems" in schema:
        message = "holds items that nothing in the schema allows"
        yield search.problem(refusal, message, "leave them out", ("unevaluatedItems",))


def _looked_at(search: Search, node: Node) -> tuple[dict[str, None], list[str]]:
    """The member names and patterns that anything applied in place knows."""
    names: dict[str, None] = {}
    patterns: list[str] = []
    pending, done = [node.index], {node.index}
    while pending:
        here = search.checks.schemas.nodes[pending.pop()]
        names |= dict.fromkeys(_members(here.schema.get("properties")))
        patterns += _members(here.schema.get("patternProperties"))
        fresh = [target for target in here.in_place if target not in done]
        done.update(fresh)
        pending += fresh
    return names, patterns


def _members(schema: Any) -> list[str]:
    return list(schema) if isinstance(schema, dict) else []


HANDLERS: Final[Mapping[str, Callable[[Search, Refusal, str], Found]]] = {
    "required": _required,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "propertyNames": _property_names,
    "prefixItems": _items,
    "items": _items,
    "additionalItems": _items,
    "contains": _contains,
}
