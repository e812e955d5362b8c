"""Objects whose members say what other members of them are: labels, schemas, manifests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .credentials import Secrecy, words

_LABELS: Final = (
    *("name", "key", "header", "field", "id", "label"),
    *("Name", "Key", "Id", "Label"),
)
_VALUES: Final = words("value values Value Values")
# What a form's field holds; of a tool that has a name these are its arguments.
_INPUTS: Final = words("input Input defaultValue")
_SCHEMAS_STAND_IN: Final = words("properties patternProperties $defs definitions schemas")
_TYPES: Final = words("string number integer boolean object array null")
_KEYWORDS: Final = words(
    "type $ref anyOf oneOf allOf not if then else items prefixItems properties required enum const "
    "default example examples title description format pattern minLength maxLength minimum maximum "
    "minItems maxItems uniqueItems additionalProperties nullable readOnly writeOnly deprecated "
    "$comment $id $defs definitions contentEncoding contentMediaType"
)
#: Members of a schema that are values, and not said of them.
SAMPLES: Final = words("default const example examples enum")


def labelled(members: dict[str, Any], rule: Callable[[str], Secrecy | None]) -> dict[str, Secrecy]:
    """Which members are secrets because of what stands beside them."""
    found: dict[str, Secrecy] = {}
    for label in _LABELS:
        said = members.get(label)
        if type(said) is not str:
            continue
        secrecy = rule(said)
        if secrecy is not None:
            found.update(dict.fromkeys(_VALUES & members.keys(), secrecy))
            if label not in ("name", "Name"):
                found.update(dict.fromkeys(_INPUTS & members.keys(), secrecy))
    if members.get("kind") == "Secret" and "apiVersion" in members:
        found.update(dict.fromkeys(("data", "stringData"), "any"))
    return found


def is_schema(holder: object, value: Any) -> bool:
    """Whether it describes a value and is none; ``holder`` is the name of what it stands in."""
    if holder not in _SCHEMAS_STAND_IN or type(value) is not dict:
        return False
    if not value.keys() <= _KEYWORDS:
        return False
    kind = value.get("type")
    if kind is None:
        return any(type(value.get(one)) is list for one in ("anyOf", "oneOf", "allOf")) or (
            type(value.get("$ref")) is str
        )
    kinds = kind if type(kind) is list else [kind]
    return all(type(one) is str and one in _TYPES for one in kinds)
