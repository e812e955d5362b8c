"""JSON Schemas, compiled once: fast verdicts, precise reasons, and bounds on everything.

:func:`compile_schema` is the way in. A schema that is malformed, refers to what is not there,
or could make matching take for ever raises ConfigError; what comes out never fetches anything
and ends in bounded time on every value. What is bounded, and by how much: docs/schemas.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from .canonical import OutOfDomainError, canonical
from .document import Document, dump
from .errors import ConfigError, EnvelopeError, Problem
from .plain import deeper_than, load_plain
from .schema_bounds import LABORIOUS, Effort, SchemaLimits, TooMuchWorkError, measure
from .schema_cuts import apply_cuts, find_cuts
from .schema_engine import Engine, match_patterns
from .schema_guard import Guard
from .schema_map import SchemaMap, uri_of
from .schema_reasons import explain
from .schema_search import Checks

__all__ = ["SchemaCheck", "SchemaLimits", "compile_schema", "fingerprint"]

_LIMITS: Final = SchemaLimits()
_NONE: Final[Mapping[str, object]] = MappingProxyType({})


class SchemaCheck:
    """A compiled schema. Made by :func:`compile_schema`; immutable, and safe to share.

    ``problems`` and ``validate`` take documents, and plain Python values from anywhere; they
    raise EnvelopeError for what is not JSON. ``accepts`` expects the plain value of a document
    (``parse(…).value``), and is the one for hot paths.
    """

    __slots__ = ("__weakref__", "_checks", "_guard", "_text", "accepts", "code", "name")

    #: Whether a value satisfies the schema. What is not JSON it notices only where the schema
    #: looks (EnvelopeError again), and of integers beyond 4,300 digits it may say anything.
    accepts: Callable[[object], bool]

    def __init__(self, name: str, text: bytes, checks: Checks, guard: Guard, code: str) -> None:
        self.name = name
        self.code = code
        self._text = text
        self._checks = checks
        self._guard = guard
        self.accepts = guard.accepts

    @property
    def schema(self) -> Any:
        """A copy of the schema."""
        return load_plain(self._text)

    def problems(self, value: object, limit: int = 20) -> list[Problem]:
        """What is wrong with a value: nothing if it is accepted, else up to ``limit`` problems."""
        value = _plain(value)
        self._guard.check_is_json(value)
        return self._problems(value, max(1, limit))

    def validate(self, value: object) -> None:
        """Raise EnvelopeError, with all problems, for a value that is not accepted."""
        value = _plain(value)
        self._guard.check_is_json(value)
        if not self.accepts(value):
            found = self._problems(value)
            raise EnvelopeError(
                found[0].message,
                code=self.code,
                problems=found,
                pointer=found[0].pointer,
                hint=found[0].hint,
            )

    def _problems(self, value: object, limit: int = 20) -> list[Problem]:
        objection = self._guard.objection(value)
        if objection is not None:
            return [Problem("", f"{self.name}#", *objection)]
        if self.accepts(value):
            return []
        if not self._checks.schemas.nodes:
            return [Problem("", f"{self.name}#", "nothing is accepted here", "leave it out")]
        with self._guard.translating(value):
            return explain(self._checks, value, limit)

    def __repr__(self) -> str:
        return f"<SchemaCheck {self.name}>"


def compile_schema(
    schema: object,
    *,
    name: str,
    resources: Mapping[str, object] = _NONE,
    limits: SchemaLimits = _LIMITS,
    code: str = "INVALID_ENVELOPE",
    formats: bool = False,
) -> SchemaCheck:
    """Compile a JSON Schema (2020-12 where ``$schema`` is absent).

    ``name`` stands in messages and rules. ``resources`` are other schemas that it may refer to,
    each under its ``$id``, or under its key where it has none; nothing else is ever looked up.
    ``code`` is that of the errors which :meth:`SchemaCheck.validate` raises. ``format`` is an
    annotation, as 2020-12 has it, unless ``formats`` is true.

    Raises ConfigError for a schema that cannot be used.
    """
    trees = {name: _tree(name, schema, limits, "urn:mcp-envelope:unnamed")}
    uris = {trees[name][0]}
    for key, resource in resources.items():
        found = _tree(key, resource, limits, key)
        if found[0] not in uris:  # the schema itself may be among its resources
            uris.add(found[0])
            trees[key if key != name else f"{key} "] = found
    schemas = SchemaMap(trees, most=limits.subschemas)
    _bound_patterns(name, schemas, limits)
    matchers, replaced = match_patterns(name, schemas)
    if replaced:
        schemas = SchemaMap(trees, most=limits.subschemas)
    effort, cut = _measure(schemas, limits)
    used = {key: tree for key, tree in trees.items() if key in schemas.used}
    engine = Engine(used, schemas, matchers, limits, cut=cut, formats=formats)
    checks = Checks(engine, schemas, effort)
    guard = Guard(engine, effort, limits, code)
    return SchemaCheck(name, dump(schema), checks, guard, code)


def _plain(value: object) -> object:
    return value.value if isinstance(value, Document) else value


def fingerprint(schema: object) -> str:
    """The SHA-256, in hex, of a schema's canonical JSON: equal for equal schemas."""
    try:
        form = canonical(schema)
    except OutOfDomainError:
        # A number that RFC 8785 cannot write (above 2^53). The fingerprint names compiled
        # checks in a cache and nothing else, so any text that equal schemas share will do.
        form = json.dumps(load_plain(dump(schema)), sort_keys=True).encode()
    return hashlib.sha256(form).hexdigest()


def _tree(name: str, schema: object, limits: SchemaLimits, fallback: str) -> tuple[str, Any]:
    """A schema's URI, and a copy of it that nobody else can change."""
    try:
        raw = dump(schema)
    except EnvelopeError as error:
        raise ConfigError(f"schema {name} cannot be read: {error}") from None
    if len(raw) > limits.size:
        raise ConfigError(
            f"schema {name} has {len(raw)} bytes, and {limits.size} are allowed",
            hint="split it up, or raise the limit",
        )
    tree = load_plain(raw)
    if not isinstance(tree, (dict, bool)):
        raise ConfigError(f"schema {name} must be an object, true or false")
    if deeper_than(tree, limits.depth):
        raise ConfigError(
            f"schema {name} is nested deeper than {limits.depth} levels",
            hint="move inner parts to $defs",
        )
    return uri_of(tree, fallback), tree


def _measure(schemas: SchemaMap, limits: SchemaLimits) -> tuple[Effort, bool]:
    """What matching takes, and whether recursive references were cut to make it less."""
    try:
        effort = measure(schemas, limits)
        if effort.most <= LABORIOUS or not effort.recursive:
            return effort, False
    except TooMuchWorkError:
        effort = None
    cuts = find_cuts(schemas)
    better = measure(schemas, limits, cuts)
    if effort is not None and better.most >= effort.most:
        return effort, False
    apply_cuts(schemas, cuts)
    return better, bool(cuts)


def _bound_patterns(name: str, schemas: SchemaMap, limits: SchemaLimits) -> None:
    if len(schemas.patterns) > limits.patterns:
        raise ConfigError(
            f"schema {name} has {len(schemas.patterns)} patterns, and {limits.patterns} are allowed"
        )
    for pattern, place in schemas.patterns.items():
        if len(pattern) > limits.pattern_length:
            raise ConfigError(
                f"schema {name}: a pattern has {len(pattern)} characters, and "
                f"{limits.pattern_length} are allowed, at {place}"
            )
