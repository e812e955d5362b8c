"""Documents made from our published schemas: right ones at random, wrong ones systematically.

:func:`instances` is a hypothesis strategy for documents that a schema accepts, :func:`mutants`
takes such a document and breaks one rule of the schema at a time. Both know the keywords that
our schemas use and no others (``test_schemas.py`` holds them to that), and both look only at the
schema: no validator decides what is right here, so that validators can be held against it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

Schema = Mapping[str, Any]

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "src" / "mcp_envelope" / "dialects" / "schemas"
PATHS: Final[dict[str, Path]] = {
    json.loads(path.read_text(encoding="utf-8"))["$id"]: path
    for path in sorted(FOLDER.glob("*/*.json"))
}
SCHEMAS: Final[dict[str, Schema]] = {
    identifier: json.loads(path.read_text(encoding="utf-8")) for identifier, path in PATHS.items()
}

TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")
_PRESENT: Final = object()  # a member that will be there, of a value not yet drawn


# -- reading a schema --------------------------------------------------------------------------


def resolve(reference: str) -> Schema:
    """The schema that an absolute reference of ours names; KeyError if there is none."""
    identifier, _, pointer = reference.partition("#")
    found: Any = SCHEMAS[identifier]
    for step in pointer.split("/")[1:]:
        found = found[step.replace("~1", "/").replace("~0", "~")]
    return dict(found)


def json_type(value: object) -> str:
    """The narrowest JSON Schema type of a value; ``1.0`` is an integer."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "integer" if value == int(value) else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def search(pattern: str, text: str) -> bool:
    """Whether ``text`` holds a match as ECMA-262 sees it: ``$`` is the very end."""
    return re.search(re.sub(r"(?<!\\)\$$", r"\\Z", pattern), text) is not None


def holds(condition: Schema, value: Any) -> bool:
    """Whether ``value`` meets a condition, of the few keywords that our ``if`` and ``not`` use."""
    unknown = set(condition) - {
        "title", "description", "type", "const", "enum", "pattern", "not", "required", "properties",
    }  # fmt: skip
    assert not unknown, f"conditions with {unknown} are beyond this generator"
    return (
        ("type" not in condition or _is_of(value, _listed(condition["type"])))
        and ("const" not in condition or value == condition["const"])
        and ("enum" not in condition or value in condition["enum"])
        and ("pattern" not in condition or not isinstance(value, str)
             or search(condition["pattern"], value))
        and ("not" not in condition or not holds(condition["not"], value))
        and (not isinstance(value, dict) or (
            set(condition.get("required", ())) <= set(value)
            and all(holds(sub, value[name]) for name, sub in condition.get("properties", {}).items()
                    if name in value)))
    )  # fmt: skip


def _listed(types: str | Sequence[str]) -> tuple[str, ...]:
    return (types,) if isinstance(types, str) else tuple(types)


def _is_of(value: object, types: Sequence[str]) -> bool:
    kind = json_type(value)
    return kind in types or (kind == "integer" and "number" in types)


def allowed_types(parts: Sequence[Schema]) -> tuple[str, ...]:
    """The types that every part allows."""
    allowed = set(TYPES)
    for part in parts:
        if "type" in part:
            listed = set(_listed(part["type"]))
            allowed &= listed | ({"integer"} if "number" in listed else set())
    return tuple(sorted(allowed))


def spread(schemas: Sequence[Schema]) -> list[Schema]:
    """The schemas with all that ``$ref`` and ``allOf`` add, side by side."""
    found: list[Schema] = []
    pending = list(schemas)
    while pending:
        schema = pending.pop(0)
        found.append(schema)
        if "$ref" in schema:
            pending.append(resolve(schema["$ref"]))
        pending += schema.get("allOf", ())
    return found


def is_choice_of_members(branches: Sequence[Schema]) -> bool:
    """Whether an ``anyOf`` or ``oneOf`` says no more than which members are there."""
    return all(set(branch) == {"required"} for branch in branches)


def is_forbidden(part: Schema) -> bool:
    """Whether nothing satisfies the part: it excludes a schema that asks for nothing."""
    return "not" in part and set(part["not"]) <= {"title", "description"}


def member_parts(parts: Sequence[Schema], name: str) -> list[Schema]:
    """What the parts of an object's schema say of one of its members."""
    found = []
    for part in parts:
        if name in part.get("properties", {}):
            found.append(part["properties"][name])
        elif isinstance(part.get("additionalProperties"), dict):
            found.append(part["additionalProperties"])
    return found


# -- right documents ---------------------------------------------------------------------------

TEXT: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON: Final[SearchStrategy[Any]] = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


@st.composite
def _timestamps(draw: DrawFn) -> str:
    """RFC 3339 date-times as other programs write them."""
    hours, minutes = draw(st.integers(-23, 23)), draw(st.integers(0, 59))
    zone = timezone(timedelta(hours=hours, minutes=minutes if hours >= 0 else -minutes))
    moment = draw(st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30)))  # noqa: DTZ001
    text = moment.replace(tzinfo=draw(st.sampled_from([zone, timezone.utc]))).isoformat()  # noqa: UP017
    if text.endswith("+00:00"):
        text = text[:-6] + draw(st.sampled_from(["Z", "z", "+00:00", "-00:00"]))
    return text.replace("T", draw(st.sampled_from("Tt")))


@st.composite
def kinds(draw: DrawFn) -> str:
    """Well-formed mcpx kinds."""
    methods = [
        "tools/call", "tools/list", "resources/read", "prompts/get", "completion/complete",
        "notifications/progress", "logging/setLevel", "x y/z", "a",
    ]  # fmt: skip
    alone = ["chat", "system/welcome", "system/presence", "system/error"]
    if draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(alone))
    head = draw(st.sampled_from(["request", "response", "proposal"]))
    seen = st.characters(categories=["L", "M", "N", "P", "S"], max_codepoint=0x2FFF)
    context = st.text(seen, min_size=1, max_size=9) | st.sampled_from(["file:///a:b", "a b", "*"])
    tail = draw(st.just("") | context.map(":{}".format))
    return f"mcp/{head}:{draw(st.sampled_from(methods))}{tail}"


def _strings(parts: Sequence[Schema]) -> SearchStrategy[str]:
    """Strings that meet every part's pattern, length and ``not``."""
    least = max(part.get("minLength", 0) for part in parts)
    most = min(part.get("maxLength", least + 80) for part in parts)
    patterns = [part["pattern"] for part in parts if "pattern" in part]
    text: SearchStrategy[str]
    if not patterns:
        edges = st.sampled_from([least, most])
        text = st.text(st.characters(exclude_categories=["Cs"]), min_size=least, max_size=least + 9)
        text |= st.builds(lambda char, n: char * n, st.sampled_from("x\U0001f642"), edges)
    elif "system/(?:" in patterns[0]:
        text = kinds()
    else:
        bare = patterns[0].removeprefix("^").removesuffix("$")
        bare = re.sub(r"\]\+$", f"]{{{least or 1},{most}}}", bare)
        text = st.from_regex(bare, fullmatch=True)
        if "23:59:60" in bare:
            text |= _timestamps()
    refused = [part["not"] for part in parts if "not" in part]
    return text.filter(
        lambda drawn: (
            least <= len(drawn) <= most
            and all(search(pattern, drawn) for pattern in patterns)
            and not any(holds(condition, drawn) for condition in refused)
        )
    )


def _numbers(parts: Sequence[Schema], kind: str) -> SearchStrategy[int | float]:
    least = max((part["minimum"] for part in parts if "minimum" in part), default=None)
    most = min((part["maximum"] for part in parts if "maximum" in part), default=None)
    whole = st.integers(least, most)
    if kind == "integer":
        small = st.integers(least if least is not None else -9, most if most is not None else 99)
        return whole | small.map(float)  # 1.0 is an integer, too
    return whole | st.floats(least, most, allow_nan=False, allow_infinity=False)


def _array(draw: DrawFn, parts: Sequence[Schema]) -> list[Any]:
    items = [part["items"] for part in parts if "items" in part]
    least = max([part.get("minItems", 0) for part in parts])
    drawn = [_value(draw, items) for _ in range(draw(st.integers(least, 2 + least)))]
    drawn += [part["contains"]["const"] for part in parts if "contains" in part]
    if any(part.get("uniqueItems") for part in parts):
        drawn = list({json.dumps(item, sort_keys=True): item for item in drawn}.values())
    return drawn


@dataclass
class _Choice:
    """What is settled of an object before its members are drawn."""

    members: dict[str, Any]
    required: set[str]
    forbidden: set[str]


def _choose_members(draw: DrawFn, parts: Sequence[Schema], choice: _Choice) -> None:
    """Settle which of the members are there that ``anyOf`` and ``oneOf`` choose between."""
    for part in parts:
        for keyword in ("anyOf", "oneOf"):
            branches = part.get(keyword, ())
            if branches and is_choice_of_members(branches):
                chosen = draw(st.sampled_from(branches))["required"]
                choice.required.update(chosen)
                if keyword == "oneOf":
                    others = {name for branch in branches for name in branch["required"]}
                    choice.forbidden.update(others - set(chosen))


def _decide(draw: DrawFn, part: Schema, parts: Sequence[Schema], choice: _Choice) -> Schema:
    """Draw what a condition asks for, and give the schema that then applies."""
    condition = part["if"]
    for name in condition["required"]:
        if name in choice.members or name in choice.forbidden:
            continue
        needed = name in choice.required or any(name in p.get("required", ()) for p in parts)
        asked = condition.get("properties", {}).get(name)
        if not needed and not draw(st.booleans()):
            choice.forbidden.add(name)
        elif asked is None:
            choice.members[name] = _PRESENT
        else:
            wanted = [asked["const"]] if "const" in asked else asked.get("enum", [])
            if wanted and draw(st.integers(0, 2)):
                choice.members[name] = draw(st.sampled_from(wanted))
            else:
                choice.members[name] = _value(draw, member_parts(parts, name))
    applies = holds(condition, choice.members)
    return dict(part.get("then" if applies else "else", {}))


def _object(draw: DrawFn, parts: list[Schema]) -> dict[str, Any]:
    parts = list(parts)
    choice = _Choice({}, set(), set())
    _choose_members(draw, parts, choice)
    decided = 0
    while decided < len(parts):  # what a condition adds may hold conditions itself
        if "if" in parts[decided]:
            added = spread([_decide(draw, parts[decided], parts, choice)])
            _choose_members(draw, added, choice)
            parts += added
        decided += 1
    required = choice.required.union(*(part.get("required", ()) for part in parts))
    names = {name for part in parts for name in part.get("properties", {})} | required
    drawn: dict[str, Any] = {}
    for name in sorted(names - choice.forbidden):
        of_member = member_parts(parts, name)
        value = choice.members.get(name, _PRESENT)
        if value is not _PRESENT:
            drawn[name] = value
        elif not any(is_forbidden(part) for part in of_member):
            if name in required or name in choice.members or draw(st.booleans()):
                drawn[name] = _value(draw, of_member)
    if not any(part.get("additionalProperties") is False for part in parts):
        for name in draw(st.lists(TEXT.filter(lambda name: name not in names), max_size=2)):
            drawn[name] = _value(draw, member_parts(parts, name))
    return drawn


def _value(draw: DrawFn, schemas: Sequence[Schema]) -> Any:
    parts = spread(schemas)
    for part in list(parts):
        branches = part.get("anyOf", ())
        if branches and not is_choice_of_members(branches):
            parts += spread([draw(st.sampled_from(branches))])
    constants = [[part["const"]] if "const" in part else part["enum"]
                 for part in parts if "const" in part or "enum" in part]  # fmt: skip
    if constants:
        return draw(st.sampled_from([v for v in constants[0] if all(v in c for c in constants)]))
    types = allowed_types(parts)
    if types == tuple(sorted(TYPES)) and not any("properties" in part for part in parts):
        return draw(JSON)
    kind = draw(st.sampled_from(types))
    if kind == "object":
        return _object(draw, parts)
    if kind == "array":
        return _array(draw, parts)
    if kind == "string":
        return draw(_strings(parts))
    if kind in ("integer", "number"):
        return draw(_numbers(parts, kind))
    return draw(st.booleans()) if kind == "boolean" else None


@st.composite
def instances(draw: DrawFn, schema: Schema) -> Any:
    """Documents that ``schema`` accepts."""
    return _value(draw, [schema])
