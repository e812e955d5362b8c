"""The headers that say over HTTP what stands in a request's body, from 2026-07-28 on.

They are for those on the way who do not read bodies. Who does read them holds one against the
other (:func:`mismatch`), or else a message could be routed as one thing and run as another.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from .frame import Frame

VERSION: Final = "mcp-protocol-version"
METHOD: Final = "mcp-method"
NAME: Final = "mcp-name"
PARAM: Final = "mcp-param-"

_NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_ANNOTATION: Final = "x-mcp-header"
_KINDS: Final = ("string", "integer", "boolean")
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PLAIN: Final = re.compile(r"[\x20-\x7e]*")
_WRAPPED: Final = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_DECIMAL: Final = re.compile(r"(-?[0-9]+)(?:\.0+)?")

# Where a schema may hold further schemas (JSON Schema 2020-12), but for `properties`, the only
# place through which an annotated property may be reached.
_ONE: Final = frozenset(
    [
        "items",
        "contains",
        "unevaluatedItems",
        "additionalProperties",
        "propertyNames",
        "unevaluatedProperties",
        "not",
        "if",
        "then",
        "else",
        "contentSchema",
    ]
)
_SEVERAL: Final = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_NAMED: Final = frozenset(("patternProperties", "dependentSchemas", "$defs", "definitions"))

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Param:
    """A parameter that is repeated in a header: where it stands, the header, and its type."""

    path: _Path
    header: str
    kind: str


def encode_value(text: str) -> str:
    """The text as a header's value: as it is where that is safe, else wrapped in base64."""
    plain = _PLAIN.fullmatch(text) is not None and text == text.strip(" ")
    if plain and _WRAPPED.fullmatch(text) is None:
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode('ascii')}?="


def decode_value(text: str) -> str | None:
    """What a header's value stands for; None if it is wrapped, and not as it should be."""
    wrapped = _WRAPPED.fullmatch(text)
    if wrapped is None:
        return text
    try:
        raw = base64.b64decode(wrapped[1], validate=True)
        # Only the spelling that an encoder writes counts, or one value would have several.
        canonical = base64.b64encode(raw).decode("ascii") == wrapped[1]
        return raw.decode() if canonical else None
    except (binascii.Error, ValueError):
        return None


def name_of(frame: Frame) -> str | None:
    """What ``mcp-name`` says of a request: the tool, prompt, resource or task that it is about."""
    key = _NAMED_BY.get(frame.method)
    if key is None:
        if not frame.method.startswith("tasks/"):
            return None
        key = "taskId"
    found = frame.params.get(key)
    return found if isinstance(found, str) else None


def standard_headers(frame: Frame, revision: str) -> dict[str, str]:
    """The headers of a message that is sent over HTTP, but for those of its parameters."""
    head = {VERSION: revision}
    if frame.shape != "response":
        head[METHOD] = encode_value(frame.method)
        name = name_of(frame)
        if name is not None:
            head[NAME] = encode_value(name)
    return head


def param_headers(schema: object, arguments: Mapping[str, Any]) -> dict[str, str]:
    """The headers that a tool's input schema asks for, in lower case; null counts as absent."""
    found: dict[str, str] = {}
    for param in _params(schema) or ():
        text = _text(_value_at(arguments, param.path))
        if text is not None:
            found[PARAM + param.header.lower()] = encode_value(text)
    return found


def mismatch(
    frame: Frame, head: Mapping[str, str], input_schema: object | None = None
) -> str | None:
    """What in the headers of a 2026-07-28 request disagrees with its body; None if nothing does.

    Names in ``head`` are in lower case; a header that came twice has its values joined by
    ``", "`` and so agrees with nothing. ``input_schema`` is that of the tool that is called.
    """
    if frame.shape != "request":
        return None  # what headers other messages have is not laid down
    version = frame.revision
    if version is not None and head.get(VERSION) != version:
        return _differs(head, VERSION, "the protocol version in _meta")
    if head.get(METHOD) != frame.method:
        return _differs(head, METHOD, "the method")
    name = name_of(frame)
    # Clients that do not know of tasks' names are about; what they do not say is not wrong.
    asked = NAME in head or not frame.method.startswith("tasks/")
    if name is not None and asked and decode_value(head.get(NAME, "")) != name:
        return _differs(head, NAME, "the name")
    if input_schema is None or frame.method != "tools/call":
        return None
    arguments = frame.params.get("arguments")
    if arguments is not None and not isinstance(arguments, Mapping):
        return None
    for param in _params(input_schema) or ():
        flaw = _param_flaw(param, _value_at(arguments or {}, param.path), head)
        if flaw is not None:
            return flaw
    return None


def schema_flaw(schema: object) -> str | None:
    """Why the annotations of an input schema cannot be used, so that none of them is."""
    found = _read(schema)
    return found if isinstance(found, str) else None


def _differs(head: Mapping[str, str], name: str, what: str) -> str:
    if name not in head:
        return f"the header {name} is missing"
    return f"the header {name} does not say the same as {what} in the body"


def _param_flaw(param: _Param, value: object, head: Mapping[str, str]) -> str | None:
    name = PARAM + param.header.lower()
    place = ".".join(param.path)
    expected = _text(value)
    given = head.get(name)
    if given is None:
        if expected is None:
            return None
        return f"the header {name} is missing, but there is an argument {place!r}"
    if value is None:
        return f"there is a header {name}, but no argument {place!r}"
    decoded = decode_value(given)
    if decoded is None:
        return f"the header {name} is wrapped in base64 that cannot be read"
    if expected is None or not _agrees(param, value, expected, decoded):
        return f"the header {name} does not say the same as the argument {place!r}"
    return None


def _agrees(param: _Param, value: object, expected: str, given: str) -> bool:
    number = _DECIMAL.fullmatch(given) if param.kind == "integer" else None
    if number is not None and isinstance(value, (int, float)) and not isinstance(value, bool):
        digits = number[1]
        # Longer numbers than Python converts are compared as they are written.
        return int(digits) == value if len(digits) < 4_000 else given == expected
    return given == expected


def _text(value: object) -> str | None:
    """A scalar as it stands in a header; None for what cannot."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, (str, int, float)):
        return None
    try:
        return str(value)
    except ValueError:  # more digits than Python prints
        return None


def _value_at(arguments: object, path: _Path) -> object:
    for key in path:
        arguments = arguments.get(key) if isinstance(arguments, Mapping) else None
    return arguments


def _params(schema: object) -> list[_Param] | None:
    found = _read(schema)
    return None if isinstance(found, str) else found


def _read(schema: object) -> list[_Param] | str:
    """The annotated parameters; or, if one of them breaks the rules, how it does."""
    found: dict[str, _Param] = {}
    for path, part in _positions(schema):
        if _ANNOTATION not in part:
            continue
        if not path:
            return f"{_ANNOTATION} stands where it is not reached by properties alone"
        place = ".".join(path)
        header, kind = part[_ANNOTATION], part.get("type")
        if not isinstance(header, str) or _TOKEN.fullmatch(header) is None:
            return f"{_ANNOTATION} of {place!r} is no name for a header"
        if kind not in _KINDS:
            return f"{_ANNOTATION} of {place!r} wants a string, integer or boolean"
        if header.lower() in found:
            return f"{_ANNOTATION} of {place!r} is used twice"
        found[header.lower()] = _Param(path, header, kind)
    return list(found.values())


def _positions(schema: object) -> Iterator[tuple[_Path | None, Mapping[str, Any]]]:
    """Each schema within a schema, with the path of properties to it, None if there is none."""
    pending: list[tuple[_Path | None, object]] = [((), schema)]
    while pending:
        path, part = pending.pop()
        if not isinstance(part, Mapping):
            continue
        yield path, part
        for word, inner in part.items():
            if word == "properties" and isinstance(inner, Mapping):
                pending += [
                    (None if path is None else (*path, name), sub) for name, sub in inner.items()
                ]
            elif word in _ONE:
                pending.append((None, inner))
            elif word in _SEVERAL and isinstance(inner, list):
                pending += [(None, sub) for sub in inner]
            elif word in _NAMED and isinstance(inner, Mapping):
                pending += [(None, sub) for sub in inner.values()]
