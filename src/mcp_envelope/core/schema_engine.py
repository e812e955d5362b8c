"""The one place that touches jsonschema-rs: schemas in, compiled checks out, offline.

The engine answers yes or no, fast. What it does badly is kept away from it here: regular
expressions that need backtracking (their limit counts steps that may each read the whole text,
and running into it *passes* under ``not``), fetching, unknown drafts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeAlias, TypeVar

import jsonschema_rs as engine

from .errors import ConfigError
from .pointer import pointer_of
from .schema_bounds import SchemaLimits
from .schema_cuts import CUT
from .schema_map import SchemaMap
from .schema_patterns import rescans, respell, respelled
from .schema_refs import encode_pointer

Verdict: TypeAlias = Callable[[object], bool]
_T = TypeVar("_T")

_DEFAULT: Final = "https://json-schema.org/draft/2020-12/schema"
_DRAFTS: Final[Mapping[str, type[engine.Validator]]] = {
    _DEFAULT: engine.Draft202012Validator,
    "https://json-schema.org/schema": engine.Draft202012Validator,
    "https://json-schema.org/draft/2019-09/schema": engine.Draft201909Validator,
    "https://json-schema.org/draft-07/schema": engine.Draft7Validator,
    "https://json-schema.org/draft-06/schema": engine.Draft6Validator,
    "https://json-schema.org/draft-04/schema": engine.Draft4Validator,
}
# A pattern that fits here runs in linear time, at more than 100 MB/s; a larger one is costly.
_SMALL: Final = engine.RegexOptions(size_limit=100_000, dfa_size_limit=1_000_000)
_BACKTRACKS: Final = (16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144)
_COSTLY_PATTERNS: Final = 50
_SIZE: Final = 1_000_000


def _with_backtracks(limit: int) -> engine.FancyRegexOptions:
    return engine.FancyRegexOptions(limit, _SIZE, _SIZE)


def search_for(pattern: str) -> Verdict:
    """Whether a text holds what a pattern says, in one linear pass; it knows no look-around."""
    options = engine.RegexOptions(size_limit=10_000_000, dfa_size_limit=10_000_000)
    schema = {"pattern": pattern}
    made = engine.Draft202012Validator(schema, pattern_options=options, offline=True)
    return made.is_valid


class Meter:
    """What one call may still spend on costly patterns, and which of them spent the rest.

    ``seen`` has the verdicts on parts of the value where a recursion was cut.
    """

    __slots__ = ("exhausted", "follow", "left", "most_at_once", "seen")

    def __init__(self, steps: int, follow: Callable[[int], Verdict]) -> None:
        self.follow = follow
        self.left = steps
        self.most_at_once = steps // 5
        self.exhausted: str | None = None
        self.seen: dict[tuple[int, int], bool] = {}

    def spend(self, steps: int) -> bool:
        """Whether so much may still be spent; then it is."""
        if steps > self.left or steps > self.most_at_once:
            return False
        self.left -= steps
        return True

    def gave_up(self) -> bool:
        """Whether a pattern could not be matched to the end."""
        return self.exhausted is not None


_METER: Final[ContextVar[Meter]] = ContextVar("_METER")


class _Costly:
    """A pattern that may backtrack, tried with few backtracks first."""

    def __init__(self, pattern: str) -> None:
        self._schema: dict[str, Any] = {"pattern": pattern}
        self._pattern = pattern
        self._readings = 1 + rescans(pattern)
        self._tries: dict[int, engine.Validator] = {}

    def matches(self, text: str) -> bool:
        meter = _METER.get()
        for limit in _BACKTRACKS:
            if not meter.spend(limit * (len(text) + 1) ** self._readings):
                break
            verdict = self._try(limit, text)
            if verdict is not None:
                return verdict
        meter.exhausted = self._pattern
        return False

    def _try(self, limit: int, text: str) -> bool | None:
        attempt = self._tries.get(limit)
        if attempt is None:
            attempt = self._tries[limit] = engine.Draft202012Validator(
                self._schema, pattern_options=_with_backtracks(limit), offline=True
            )
        # One search: is_valid would not say whether the limit or the text was to blame.
        for error in attempt.iter_errors(text):
            return False if isinstance(error.kind, engine.ValidationErrorKind.Pattern) else None
        return True


Matchers: TypeAlias = Mapping[str, _Costly | Verdict]


class Engine:
    """Compiles the checks of one schema: of the whole, of its subschemas, of single keywords."""

    def __init__(
        self,
        trees: Mapping[str, tuple[str, Any]],
        schemas: SchemaMap,
        matchers: Matchers,
        limits: SchemaLimits,
        *,
        cut: bool = False,
        formats: bool = False,
    ) -> None:
        (self._name, (self._uri, self._root)), *_ = trees.items()
        self._limits = limits
        self._nodes = schemas.nodes
        self._followed: dict[int, Verdict] = {}
        self._draft = draft_of(self._name, self._root)
        self._matchers = matchers
        self.has_costly_patterns = any(type(m) is _Costly for m in self._matchers.values())
        self.costly_keys = [
            found for key in schemas.key_patterns if type(found := self._matchers[key]) is _Costly
        ]
        self._options: dict[str, Any] = {
            "offline": True,
            "validate_formats": formats,
            "pattern_options": _SMALL,
        }
        keywords: dict[str, Any] = {}
        if self.has_costly_patterns:
            self._options["pattern_options"] = _with_backtracks(_BACKTRACKS[-1])
            keywords["pattern"] = _pattern_keyword(self._matchers)
        if cut:
            keywords[CUT] = _Cut
        self.needs_meter = bool(keywords)
        if keywords:
            self._options["keywords"] = keywords
        for name, (_, tree) in trees.items():
            _check_against_metaschema(name, tree)
        self._registry = self._refusing(
            lambda: engine.Registry([(uri, tree) for uri, tree in trees.values()], retriever=_never)
        )

    def whole(self) -> Verdict:
        """The check of the whole schema."""
        return self._compile(self._root)

    def at(self, uri: str, pointer: str) -> Verdict:
        """The check of a subschema, which need not be used by the whole."""
        return self._compile(self.reference(uri, pointer))

    def reference(self, uri: str, pointer: str) -> dict[str, Any]:
        """A schema that means the subschema at a pointer."""
        return {"$ref": f"{uri}#{encode_pointer(pointer)}"}

    def of(self, schema: dict[str, Any]) -> Verdict:
        """The check of another schema in the same draft; references must be absolute."""
        return self._compile(schema)

    def matches(self, pattern: str, text: str) -> bool:
        """Whether a pattern of the schema finds something in a text."""
        found = self._matchers[pattern]
        return found.matches(text) if isinstance(found, _Costly) else found(text)

    def run(self, verdict: Verdict, value: object) -> bool:
        """A verdict within what one call may spend on costly patterns."""
        meter = Meter(self._limits.pattern_steps, self._follow)
        token = _METER.set(meter)
        try:
            # A pattern that gives up counts as a mismatch; under `not` that would pass.
            return verdict(value) and not meter.gave_up()
        finally:
            _METER.reset(token)

    @contextmanager
    def metered(self, share: int = 1) -> Iterator[Meter]:
        """Bound what checks of a value inside may spend on costly patterns: a share of it all."""
        meter = Meter(self._limits.pattern_steps // share, self._follow)
        token = _METER.set(meter)
        try:
            yield meter
        finally:
            _METER.reset(token)

    def _follow(self, index: int) -> Verdict:
        found = self._followed.get(index)
        if found is None:
            node = self._nodes[index]
            found = self._followed[index] = self.at(node.uri, node.pointer)
        return found

    def _compile(self, schema: Any) -> Verdict:
        return self._refusing(
            lambda: self._draft(schema, registry=self._registry, **self._options)
        ).is_valid

    def _refusing(self, make: Callable[[], _T]) -> _T:
        try:
            return make()
        except (ValueError, engine.ReferencingError) as error:
            reason = str(error).partition("\n")[0][:300]
            raise ConfigError(f"schema {self._name} cannot be compiled: {reason}") from None


def draft_of(name: str, schema: Any) -> type[engine.Validator]:
    """The draft that a schema declares; 2020-12 if it declares none."""
    declared = schema.get("$schema", _DEFAULT) if isinstance(schema, dict) else _DEFAULT
    known = None
    if isinstance(declared, str):
        known = _DRAFTS.get(declared.rstrip("#").replace("http://", "https://", 1))
    if known is None:
        raise ConfigError(
            f"schema {name}: $schema {str(declared)[:100]!r} is no draft that is known here",
            hint="use https://json-schema.org/draft/2020-12/schema, 2019-09, or draft 7, 6 or 4",
        )
    return known


def _never(uri: str) -> Any:
    raise LookupError(f"nothing is fetched, so not {uri[:200]}")


def _pattern_keyword(matchers: Matchers) -> type[engine.KeywordValidator]:
    class Pattern:
        """Replaces the engine's own ``pattern`` in schemas that have a costly one."""

        def __init__(self, parent: Any, value: Any, path: Any) -> None:
            found = matchers[value]
            self._matches = found.matches if isinstance(found, _Costly) else found

        def validate(self, instance: Any) -> None:
            # What is raised here the engine takes for a mismatch, whatever it is: the meter
            # remembers that a pattern gave up.
            if isinstance(instance, str) and not self._matches(instance):
                raise ValueError

    return Pattern


class _Cut:
    """Follows a recursive reference, once for each part of a value.

    It knows its target's check through the meter only: if it held the check, the two would keep
    one another alive, in a circle that Python's collector cannot see through the engine.
    """

    def __init__(self, parent: Any, value: Any, path: Any) -> None:
        self._target = int(value[0])

    def validate(self, instance: Any) -> None:
        meter = _METER.get()
        # The parts of a value live as long as the call, so their identities are theirs.
        key = (self._target, id(instance))
        verdict = meter.seen.get(key)
        if verdict is None:
            verdict = meter.follow(self._target)(instance)
            if isinstance(instance, (dict, list, tuple)) and not meter.gave_up():
                meter.seen[key] = verdict
        if not verdict:
            raise ValueError


def match_patterns(name: str, schemas: SchemaMap) -> tuple[Matchers, bool]:
    """A matcher for each pattern. Raises ConfigError for what is no pattern, or too large.

    Patterns that the engine does not understand as they are get replaced in the schemas, which
    then have to be mapped again: that is the second thing returned.
    """
    matchers: dict[str, _Costly | Verdict] = {}
    replaced: dict[str, str] = {}
    costly = 0
    for pattern, place in schemas.patterns.items():
        words = respelled(pattern)
        found = _matcher(pattern)
        if found is None and words != pattern:
            found = _matcher(words)
            replaced[pattern] = words
        if found is None:
            raise ConfigError(
                f"schema {name}: this is no regular expression, or one too large to use, "
                f"at {place}: {pattern[:100]!r}",
                hint="patterns are ECMA-262 expressions; large counts such as {1000} multiply",
            )
        matchers[replaced.get(pattern, pattern)] = found
        costly += type(found) is _Costly
        if costly > _COSTLY_PATTERNS:
            raise ConfigError(
                f"schema {name} has more than {_COSTLY_PATTERNS} patterns that are large or need "
                f"backtracking, the last at {place}",
                hint="write some of them without look-around, backreferences or large counts",
            )
    for node in schemas.nodes if replaced else ():
        respell(node.schema, replaced)
    return matchers, bool(replaced)


def _matcher(pattern: str) -> _Costly | Verdict | None:
    schema: dict[str, Any] = {"pattern": pattern}
    for options in (_SMALL, _with_backtracks(_BACKTRACKS[0])):
        try:
            found = engine.Draft202012Validator(schema, pattern_options=options, offline=True)
        except ValueError:
            continue
        return found.is_valid if options is _SMALL else _Costly(pattern)
    return None


def _check_against_metaschema(name: str, schema: Any) -> None:
    draft_of(name, schema)
    try:
        engine.meta.validate(schema)
    except engine.ValidationError as error:
        steps = list(error.instance_path)
        place = pointer_of(steps)
        raise ConfigError(
            f"schema {name} is not a valid schema" + (f", at {place}" if place else ""),
            hint=_expected(steps) or str(error).partition("\n")[0][:200],
        ) from None
    except ValueError as error:
        raise ConfigError(f"schema {name} cannot be read: {str(error)[:200]}") from None


def _expected(steps: list[str | int]) -> str | None:
    """What should stand at a place of a schema, as far as its keyword tells."""
    while steps and isinstance(steps[-1], int):
        steps = steps[:-1]
    if len(steps) > 1 and steps[-2] in _MAPS:
        return f"{pointer_of(steps[-1:])[1:60]} {_SCHEMA}"
    return _EXPECTED.get(steps[-1]) if steps else None


_MAPS: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_COUNT: Final = "must be an integer of 0 or more"
_NUMBER: Final = "must be a number"
_SCHEMA: Final = "must be a schema: an object, true or false"
_SCHEMAS: Final = "must be an array of at least one schema"
_NAMED: Final = "must be an object whose members are schemas"
_TEXT: Final = "must be a string"
_EXPECTED: Final[Mapping[object, str]] = {
    "type": "type must be one of array, boolean, integer, null, number, object, string, or an "
    "array of some of them, each once",
    "enum": "enum must be an array of the values that are allowed",
    "required": "required must be an array of names, each once",
    "pattern": "pattern must be a regular expression",
    "multipleOf": "multipleOf must be a number greater than 0",
    "uniqueItems": "uniqueItems must be true or false",
    "dependentRequired": "dependentRequired must be an object of arrays of names",
    **{k: f"{k} {_COUNT}" for k in ("minLength", "maxLength", "minItems", "maxItems")},
    **{k: f"{k} {_COUNT}" for k in ("minProperties", "maxProperties")},
    **{k: f"{k} {_COUNT}" for k in ("minContains", "maxContains")},
    **{k: f"{k} {_NUMBER}" for k in ("minimum", "maximum")},
    **{k: f"{k} {_NUMBER}" for k in ("exclusiveMinimum", "exclusiveMaximum")},
    **{k: f"{k} {_SCHEMA}" for k in ("not", "if", "then", "else", "contains", "propertyNames")},
    **{k: f"{k} {_SCHEMA}" for k in ("additionalProperties", "unevaluatedProperties")},
    **{k: f"{k} {_SCHEMAS}" for k in ("allOf", "anyOf", "oneOf", "prefixItems")},
    **{k: f"{k} {_NAMED}" for k in ("properties", "patternProperties", "$defs", "definitions")},
    **{k: f"{k} {_TEXT}" for k in ("title", "description", "$ref", "$id", "$comment", "format")},
}
