"""What to say of a value that a keyword refuses: short, in plain words, and discreet.

Values are described rather than repeated, and what stands under a name like ``token`` is never
shown at all: these sentences go into logs and answers.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from .schema_cuts import CUT

OTHER: Final = "another shape"
_LONGEST: Final = 60
_SECRET: Final = re.compile(
    r"token|secret|passw|passphrase|credential|cookie|private.?key|api.?key|bearer|session"
    r"|(?:^|[^a-z])auth|(?:^|[^a-z])(?:pwd|pin|key)(?:$|[^a-z])",
    re.IGNORECASE,
)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ARTICLES: Final = {
    "array": "an array",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}


def is_secret(path: Iterable[str | int]) -> bool:
    """Whether a value at this path may be a credential."""
    return any(isinstance(s, str) and _SECRET.search(_CAMEL.sub("_", s)) for s in path)


def kind(value: object) -> str:
    """What a value is, without showing it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "an array"
    if isinstance(value, str):
        return "a string"
    return "an integer" if isinstance(value, int) else "a number"


def shown(value: object, *, secret: bool = False) -> str:
    """A value as a sentence may show it: short, on one line, and only if it is no secret."""
    if secret and not (value is None or isinstance(value, bool)):
        return f"this {kind(value).split(' ', 1)[1]}"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if value.bit_length() <= 128 else "so large an integer"
    if isinstance(value, float):
        return repr(value)
    return kind(value)


def quoted(text: str, longest: int = _LONGEST) -> str:
    """A text in quotes, on one line and cut."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return json.dumps(cut, ensure_ascii=False)


def listed(values: Sequence[object], most: int = 6) -> str:
    """Some values, and how many more there are."""
    more = f" and {len(values) - most} more" if len(values) > most else ""
    return ", ".join(shown(value) for value in values[:most]) + more


def nearest(given: object, known: Iterable[object]) -> str | None:
    """The known name that a given one was probably meant to be."""
    names = [name for name in known if isinstance(name, str)][:1_000]
    if not isinstance(given, str) or len(given) > 200:
        return None
    by_case = {name.casefold().replace("_", "").replace("-", ""): name for name in names}
    plain = given.casefold().replace("_", "").replace("-", "")
    if plain in by_case:
        return by_case[plain]
    found = difflib.get_close_matches(given, names, n=1, cutoff=0.7)
    return found[0] if found else None


def purpose(schema: object) -> str:
    """What the schema's author says that a value is for: the first sentence."""
    text = schema.get("description") if isinstance(schema, dict) else None
    if not isinstance(text, str):
        return ""
    first = re.split(r"(?<=[.!?])\s|\n", text.strip(), maxsplit=1)[0]
    return first if len(first) <= 2 * _LONGEST else first[: 2 * _LONGEST - 1] + "…"


def described(schema: object) -> str:
    """One alternative of several, in a few words."""
    if not isinstance(schema, dict):
        return "anything" if schema is True else "nothing"
    for keyword in ("const", "enum"):
        if keyword in schema:
            options = schema[keyword] if keyword == "enum" else [schema[keyword]]
            return listed(options, 3)
    title = schema.get("title")
    if isinstance(title, str) and title:
        return title[:_LONGEST]
    words = _types(schema["type"]) if "type" in schema else ""
    required = schema.get("required")
    if isinstance(required, list) and required:
        words = f"{words or 'an object'} with {listed(required, 3)}"
    reference = schema[CUT][1] if CUT in schema else schema.get("$ref")
    if not words and isinstance(reference, str):
        return reference.rsplit("/", 1)[-1][:_LONGEST]
    return words or OTHER


def sentence(keyword: str, stated: Any, value: Any, *, secret: bool) -> str:
    """Why a keyword that states this refuses a value."""
    return _SENTENCES[keyword](stated, value, shown(value, secret=secret))


def hint(keyword: str, schema: Mapping[str, Any], value: Any) -> str:
    """What to do about it."""
    if keyword in ("enum", "const"):
        options = schema["enum"] if keyword == "enum" else [schema["const"]]
        near = nearest(value, options)
        if near is not None:
            return f"did you mean {quoted(near)}?"
    if keyword == "type" and isinstance(value, str):
        return _unquote(schema["type"], value) or purpose(schema)
    return purpose(schema)


def _unquote(types: object, text: str) -> str:
    wanted = {types} if isinstance(types, str) else set(types if isinstance(types, list) else ())
    if wanted & {"integer", "number"} and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text[:_LONGEST]):
        return "write it without quotes"
    if "boolean" in wanted and text in ("true", "false"):
        return "write it without quotes"
    if wanted & {"object", "array"} and text[:1] in ("{", "["):
        return "send the JSON itself, not a string that holds JSON"
    return ""


def _types(types: object) -> str:
    names = [types] if isinstance(types, str) else types if isinstance(types, list) else []
    words = [_ARTICLES.get(str(name), str(name)) for name in names]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _type(types: Any, value: Any, text: str) -> str:
    exact = isinstance(value, (int, float)) and not isinstance(value, bool)
    return f"must be {_types(types)}, not {text if exact else kind(value)}"


def _length(least: bool, what: str) -> Callable[[Any, Any, str], str]:
    def say(count: Any, value: Any, text: str) -> str:
        if least and count == 1:
            return "must not be empty"
        return f"must have at {'least' if least else 'most'} {count} {what}, and has {len(value)}"

    return say


def _bound(words: str) -> Callable[[Any, Any, str], str]:
    return lambda limit, value, text: f"must be {words} {shown(limit)}, not {text}"


_SENTENCES: Final[Mapping[str, Callable[[Any, Any, str], str]]] = {
    "type": _type,
    "enum": lambda options, value, text: f"must be one of {listed(options)}, not {text}",
    "const": lambda expected, value, text: f"must be {shown(expected)}, not {text}",
    "pattern": lambda pattern, value, text: f"{text} does not match {quoted(pattern, 100)}",
    "format": lambda name, value, text: f"{text} is no valid {quoted(str(name))}",
    "multipleOf": _bound("a multiple of"),
    "minimum": _bound("at least"),
    "maximum": _bound("at most"),
    "exclusiveMinimum": _bound("more than"),
    "exclusiveMaximum": _bound("less than"),
    "minLength": _length(True, "characters"),
    "maxLength": _length(False, "characters"),
    "minItems": _length(True, "items"),
    "maxItems": _length(False, "items"),
    "minProperties": _length(True, "members"),
    "maxProperties": _length(False, "members"),
    "uniqueItems": lambda flag, value, text: "must not hold the same item twice",
}
ASSERTIONS: Final = frozenset(_SENTENCES)
