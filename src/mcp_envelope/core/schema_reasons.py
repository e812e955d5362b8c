"""Why a value does not satisfy a schema: the places, the rules, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from . import schema_members as members
from . import schema_words as words
from .errors import Problem
from .schema_cuts import CUT
from .schema_map import Node
from .schema_search import Checks, Found, Refusal, Search

_ALTERNATIVES: Final = 50
_UNFIT: Final = 100
_SHARE: Final = 4


def explain(checks: Checks, value: Any, limit: int) -> list[Problem]:
    """Up to ``limit`` problems of a value that the schema refuses; at least one."""
    with checks.engine.metered(_SHARE) as meter:
        search = Search(checks, meter, limit)
        problems: list[Problem] = []
        pending = [search.start(value)]
        while pending and len(problems) < limit:
            refusal = pending.pop()
            found = _expand(search, refusal) if search.pay(refusal) else []
            found = found or [_unexplained(search, refusal)]
            problems += [each for each in found if isinstance(each, Problem)]
            pending += [each for each in reversed(found) if isinstance(each, Refusal)]
            if search.is_over:
                break
        return list(dict.fromkeys(problems))[:limit]


def _expand(search: Search, refusal: Refusal) -> list[Problem | Refusal]:
    """What is wrong right here, and the parts that are refused."""
    schema = refusal.node.schema
    alone = refusal.node.legacy and "$ref" in schema
    found: list[Problem | Refusal] = []
    for keyword in ("$ref",) if alone else list(schema):
        handler = _HANDLERS.get(keyword)
        if handler is not None:
            found += islice(handler(search, refusal, keyword), search.limit)
    if not found and not alone:
        found += islice(members.unevaluated(search, refusal), search.limit)
    return found


def _unexplained(search: Search, refusal: Refusal) -> Problem:
    text = "this does not satisfy the schema"
    if search.is_over:
        text += "; looking closer would take too long"
    return search.problem(refusal, text, words.purpose(refusal.node.schema), ())


def _assertion(search: Search, refusal: Refusal, keyword: str) -> Found:
    node, value = refusal.node, refusal.value
    stated = node.schema[keyword]
    if isinstance(stated, bool) and keyword.startswith("exclusive"):
        return  # draft 4: said with minimum or maximum
    verdict = search.accepts_keyword(node, keyword, value)
    if verdict is None:
        message = "checking this text against the schema's pattern would take too long"
        hint = "send a shorter text; or mend the schema: write the pattern without look-around"
        yield search.problem(refusal, message, hint, (keyword,))
    elif not verdict:
        said = keyword
        if node.schema.get("exclusive" + keyword.capitalize()) is True:
            said = "exclusive" + keyword.capitalize()
        secret = words.is_secret(refusal.path)
        message = words.sentence(said, stated, value, secret=secret)
        yield search.problem(refusal, message, words.hint(keyword, node.schema, value), (keyword,))


def _reference(search: Search, refusal: Refusal, keyword: str) -> Found:
    keyword = "$ref" if keyword == CUT else keyword
    for target in refusal.node.targets.get(keyword, ()):
        if target is False:
            yield search.problem(refusal, "nothing may stand here", "leave it out", (keyword,))
        elif type(target) is int:
            node = search.checks.schemas.nodes[target]
            if search.verdict(search.checks.of(node), refusal.value) is not True:
                yield replace(refusal, node=node)
                return


def _all_of(search: Search, refusal: Refusal, keyword: str) -> Found:
    for index in range(len(refusal.node.schema[keyword])):
        yield from search.below(refusal, (keyword, index), refusal.value)


def _any_of(search: Search, refusal: Refusal, keyword: str) -> Found:
    options = refusal.node.schema[keyword]
    accepted = [i for i, o in enumerate(options) if search.accepts(o, refusal.value) is True]
    if len(accepted) == 1 or (accepted and keyword == "anyOf"):
        return
    if accepted:
        fits = ", ".join(str(index) for index in accepted[:6])
        message = f"fits alternatives {fits} (counted from 0), and must fit exactly one"
        yield search.problem(refusal, message, "leave out what belongs to the others", (keyword,))
        return
    closest = _closest(search, refusal, keyword)
    if closest is not None:
        yield closest
        return
    allowed = "; ".join(words.described(option) for option in options[:6])
    message = f"fits none of the {len(options)} alternatives"
    yield search.problem(refusal, message, f"allowed are: {allowed}", (keyword,))


def _closest(search: Search, refusal: Refusal, keyword: str) -> Refusal | None:
    """The refusal by the one alternative that was evidently meant, if there is one."""
    options = refusal.node.schema[keyword]
    refused = [
        found
        for index in range(min(len(options), _ALTERNATIVES))
        for found in search.below(refusal, (keyword, index), refusal.value)
        if isinstance(found, Refusal)
    ]
    scored = sorted(((_misfit(search, f), f) for f in refused), key=lambda pair: pair[0])
    if not scored or scored[0][0] >= _UNFIT:
        return None
    if len(scored) > 1 and scored[1][0] == scored[0][0]:
        return None
    note = f"this is the closest of {len(options)} alternatives" if len(options) > 1 else ""
    return replace(scored[0][1], note=note)


def _misfit(search: Search, refusal: Refusal) -> int:
    """How little a value looks like what an alternative is for."""
    node, value = _resolved(search, refusal.node), refusal.value
    score = 0
    for keyword in ("type", "const", "enum"):
        if keyword in node.schema and not search.accepts_keyword(node, keyword, value):
            score += _UNFIT
    if not isinstance(value, dict):
        return score
    score += min(9, sum(name not in value for name in node.schema.get("required", ())))
    properties = node.schema.get("properties", {})
    for name in value.keys() & properties.keys():
        part = properties[name]
        if isinstance(part, dict) and ("const" in part or "enum" in part):
            score += -10 if search.accepts(part, value[name]) else 10
    return score


def _resolved(search: Search, node: Node) -> Node:
    for _ in range(10):
        target = next((t for t in node.targets.get("$ref", ()) if type(t) is int), None)
        if target is None or "type" in node.schema:
            break
        node = search.checks.schemas.nodes[target]
    return node


def _not(search: Search, refusal: Refusal, keyword: str) -> Found:
    part = refusal.node.schema[keyword]
    verdict = search.accepts(part, refusal.value)
    if verdict is None:
        yield from search.below(refusal, (keyword,), refusal.value)
    elif verdict:
        what = words.described(part)
        message = "must not be what the schema excludes here"
        if what != words.OTHER:
            message = f"must not be {what}"
        yield search.problem(refusal, message, words.purpose(part), (keyword,))


def _if(search: Search, refusal: Refusal, keyword: str) -> Found:
    schema = refusal.node.schema
    verdict = search.accepts(schema[keyword], refusal.value)
    if verdict is None:
        yield from search.below(refusal, (keyword,), refusal.value)
        return
    branch = "then" if verdict else "else"
    if branch in schema:
        yield from search.below(refusal, (branch,), refusal.value)


def _dependents(search: Search, refusal: Refusal, keyword: str) -> Found:
    value = refusal.value
    if not isinstance(value, dict):
        return
    for name, part in refusal.node.schema[keyword].items():
        if name not in value:
            continue
        if not isinstance(part, list):
            yield from search.below(refusal, (keyword, name), value)
            continue
        for other in part:
            if other not in value:
                message = f"the member {words.quoted(other)} is missing"
                hint = f"it goes with {words.quoted(name)}: add it, or leave both out"
                path = (*refusal.path, other)
                yield search.problem(refusal, message, hint, (keyword, name), path)


_HANDLERS: Final[Mapping[str, Callable[[Search, Refusal, str], Found]]] = {
    **dict.fromkeys(words.ASSERTIONS, _assertion),
    **members.HANDLERS,
    **dict.fromkeys(("$ref", "$dynamicRef", "$recursiveRef", CUT), _reference),
    **dict.fromkeys(("anyOf", "oneOf"), _any_of),
    **dict.fromkeys(("dependentSchemas", "dependentRequired", "dependencies"), _dependents),
    "allOf": _all_of,
    "not": _not,
    "if": _if,
}
