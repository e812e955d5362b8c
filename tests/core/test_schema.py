"""Compiled schemas: verdicts, references that stay inside, fingerprints, values from anywhere."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mcp_envelope.core.errors import ConfigError, EnvelopeError
from mcp_envelope.core.schema import SchemaLimits, compile_schema, fingerprint

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}, "age": {"type": "integer"}},
    "required": ["name"],
    "additionalProperties": False,
}


def nested(levels: int, leaf: object = None) -> Any:
    """An object in an object in an object."""
    value = leaf
    for _ in range(levels):
        value = {"a": value}
    return value


def run_apart(script: str, *arguments: str) -> str:
    """What a script prints in a process of its own; a crash fails the test, and nothing else."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_verdict_and_problems_agree() -> None:
    """A value is accepted exactly if it has no problems; validate raises them all."""
    check = compile_schema(PERSON, name="person")
    assert check.accepts({"name": "Ada", "age": 36})
    assert check.problems({"name": "Ada"}) == []
    check.validate({"name": "Ada"})
    assert not check.accepts({"age": "36"})
    with pytest.raises(EnvelopeError) as caught:
        check.validate({"age": "36"})
    assert caught.value.code == "INVALID_ENVELOPE"
    assert [problem.pointer for problem in caught.value.problems] == ["/name", "/age"]
    assert caught.value.pointer == "/name"


def test_the_code_of_errors_can_be_chosen() -> None:
    """A tool's schema raises INVALID_TOOL_INPUT, also for what is not JSON at all."""
    check = compile_schema(PERSON, name="person", code="INVALID_TOOL_INPUT")
    for value in ({}, {"name": b"bytes"}):
        with pytest.raises(EnvelopeError) as caught:
            check.validate(value)
        assert caught.value.code == "INVALID_TOOL_INPUT"


@pytest.mark.parametrize(
    "declared,accepted",
    [
        (None, False),
        ("https://json-schema.org/draft/2020-12/schema", False),
        ("https://json-schema.org/draft/2020-12/schema#", False),
        (DRAFT_7, True),
        ("http://json-schema.org/draft-07/schema", True),
        ("http://json-schema.org/draft-06/schema#", True),
    ],
)
def test_the_draft_is_what_the_schema_declares(declared: str | None, accepted: bool) -> None:
    """`prefixItems` means something from 2020-12 on, which is the draft where none is declared."""
    schema: dict[str, object] = {"prefixItems": [{"type": "string"}]}
    if declared is not None:
        schema["$schema"] = declared
    assert compile_schema(schema, name="t").accepts([1]) is accepted


def test_draft_4_is_understood() -> None:
    """Draft 4's `exclusiveMaximum` is a flag, and its `id` a base."""
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "id": "urn:old",
        "maximum": 5,
        "exclusiveMaximum": True,
    }
    check = compile_schema(schema, name="old")
    assert [p.message for p in check.problems(5)] == ["must be less than 5, not 5"]
    assert compile_schema({"$ref": "urn:old"}, name="t", resources={"x": schema}).accepts(4)


@pytest.mark.parametrize("declared", ["https://example.com/meta", "http://127.0.0.1:9/m", "", 5])
def test_unknown_drafts_are_refused(declared: object) -> None:
    """A schema whose keywords nobody here knows is not quietly read as another draft's."""
    with pytest.raises(ConfigError, match="no draft that is known"):
        compile_schema({"$schema": declared}, name="t")


@pytest.mark.parametrize("verdict", [True, False])
def test_a_schema_may_be_a_boolean(verdict: bool) -> None:
    """`true` accepts everything and `false` nothing, and says so."""
    check = compile_schema(verdict, name="t")
    assert check.accepts(1) is verdict
    assert bool(check.problems(1)) is not verdict


@pytest.mark.parametrize("schema", [[], "true", 5, None, {1: 2}, {"a": b"x"}, {"a": float("nan")}])
def test_what_is_no_schema_is_refused(schema: object) -> None:
    """Only objects and booleans are schemas, and only JSON ones."""
    with pytest.raises(ConfigError, match="schema t"):
        compile_schema(schema, name="t")


@pytest.mark.parametrize(
    "schema,place,hint",
    [
        ({"type": "strin"}, "at /type", "array, boolean, integer"),
        ({"properties": {"a/b": {"minLength": -1}}}, "at /properties/a~1b/minLength", "0 or more"),
        ({"properties": {"type": 5}}, "at /properties/type", "must be a schema"),
        ({"required": "name"}, "at /required", "array of names"),
        ({"allOf": []}, "at /allOf", "at least one schema"),
        ({"pattern": "("}, "at /pattern", "ECMA-262"),
        ({"patternProperties": {"[": {}}}, "at /patternProperties/[", "ECMA-262"),
        ({"$defs": {"x": {"enum": 5}}}, "at /$defs/x/enum", "values that are allowed"),
        ({"$ref": 5}, "at /$ref", "must be a string"),
    ],
)
def test_bad_schemas_name_the_place(schema: object, place: str, hint: str) -> None:
    """A ConfigError points into the schema and says what should stand there."""
    with pytest.raises(ConfigError) as caught:
        compile_schema(schema, name="tools/x")
    assert "schema tools/x" in str(caught.value)
    assert place in caught.value.message
    assert hint in caught.value.hint


def test_schemas_are_copied() -> None:
    """The caller's schema is neither changed nor watched."""
    schema: Any = copy.deepcopy(PERSON)
    check = compile_schema(schema, name="person")
    assert schema == PERSON
    schema["properties"]["name"]["type"] = "integer"
    assert check.accepts({"name": "Ada"})
    assert check.problems({"name": 5})[0].message == "must be a string, not 5"
    check.schema["type"] = "array"
    assert check.schema == PERSON


def test_formats_are_annotations_unless_asserted() -> None:
    """`format` says something about a value, and refuses nothing unless asked to, in any draft."""
    for draft in ({}, {"$schema": DRAFT_7}):
        schema = {"format": "date-time", **draft}
        assert compile_schema(schema, name="t").accepts("yesterday")
        strict = compile_schema(schema, name="t", formats=True)
        assert not strict.accepts("yesterday")
        assert 'no valid "date-time"' in strict.problems("yesterday")[0].message


# -- references --------------------------------------------------------------------------


def test_resources_are_found_by_their_ids() -> None:
    """Schemas refer to one another by absolute `$id`, with pointers and anchors behind the #."""
    digest = {"$id": "urn:x:digest", "$defs": {"hex": {"$anchor": "hex", "pattern": "^[0-9a-f]+$"}}}
    record = {
        "$id": "urn:x:record",
        "properties": {
            "a": {"$ref": "urn:x:digest#/$defs/hex"},
            "b": {"$ref": "urn:x:digest#hex"},
            "c": {"$ref": "#/properties/a"},
        },
    }
    resources = {"digest.json": digest, "record.json": record}
    check = compile_schema(record, name="record.json", resources=resources)
    assert check.accepts({"a": "0f", "b": "0f", "c": "0f"})
    rules = [problem.rule for problem in check.problems({"a": "X", "c": "Y"})]
    assert rules == ["digest.json#/$defs/hex/pattern"] * 2


def test_relative_references_and_parts_with_ids() -> None:
    """A part with an `$id` is a schema of its own, and a base for what stands inside it."""
    schema = {
        "$id": "https://example.com/schemas/customer",
        "properties": {"address": {"$ref": "address"}, "x": {"$ref": "/schemas/address#/$defs/s"}},
        "$defs": {
            "address": {
                "$id": "/schemas/address",
                "properties": {"street": {"$ref": "#/$defs/s"}},
                "$defs": {"s": {"type": "string"}},
            }
        },
    }
    check = compile_schema(schema, name="customer")
    assert check.accepts({"address": {"street": "Main"}, "x": "y"})
    assert [p.pointer for p in check.problems({"address": {"street": 1}, "x": 2})] == [
        "/address/street",
        "/x",
    ]


def test_only_needed_resources_are_looked_at() -> None:
    """A schema that nobody refers to may be broken without harm."""
    broken = {"$id": "urn:broken", "$ref": "urn:nowhere"}
    assert compile_schema({"type": "string"}, name="t", resources={"b": broken}).accepts("x")
    with pytest.raises(ConfigError, match="urn:nowhere"):
        compile_schema({"$ref": "urn:broken"}, name="t", resources={"b": broken})


@pytest.mark.parametrize(
    "keyword,reference",
    [
        ("$ref", "urn:nobody:knows"),
        ("$ref", "other.json"),
        ("$ref", "//example.com/x"),
        ("$ref", "#/$defs/missing"),
        ("$ref", "#missing"),
        ("$ref", "#/type"),
        ("$dynamicRef", "#missing"),
    ],
)
def test_references_that_lead_nowhere_are_named(keyword: str, reference: str) -> None:
    """The reference and its place stand in the error."""
    with pytest.raises(ConfigError) as caught:
        compile_schema({"type": "object", "items": {keyword: reference}}, name="t")
    assert reference in caught.value.message
    assert f"at /items/{keyword}" in caught.value.message


def test_references_in_values_are_no_references() -> None:
    """What stands in `const`, `enum`, `default`, or as a member's name, is not followed."""
    value = {"$ref": "http://127.0.0.1:9/x"}
    schema = {
        "properties": {"$ref": {"type": "string"}, "a": {"const": value}, "b": {"enum": [value]}},
        "default": value,
        "examples": [value],
    }
    assert compile_schema(schema, name="t").accepts({"$ref": "x", "a": value, "b": value})


OFFLINE = r"""
import ctypes, json, os, select, socket, struct, sys, threading
touched = []
sys.addaudithook(lambda name, args: touched.append((name, args)) if name in (
    "socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "urllib.Request") else None)
from mcp_envelope.core.schema import compile_schema
from mcp_envelope.core.errors import ConfigError

folder = sys.argv[1]
secret = os.path.join(folder, "secret.json")
with open(secret, "w") as file:
    json.dump({"type": "string"}, file)
listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
watch = -1
if sys.platform == "linux":  # the engine's own I/O is no business of Python's audit hooks
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    IN_OPEN, IN_ACCESS = 0x20, 0x01
    assert libc.inotify_add_watch(watch, folder.encode(), IN_OPEN | IN_ACCESS) >= 0
http, local = f"http://127.0.0.1:{port}/x.json", "file://" + secret
meta = {"$id": http, "type": "string"}
schemas = [
    {"$ref": http}, {"$ref": local}, {"$ref": "secret.json", "$id": "file://" + folder + "/a.json"},
    {"$dynamicRef": http}, {"$schema": http}, {"$schema": local},
    {"items": {"$ref": http + "#/a"}}, {"$defs": {"a": {"$ref": local}}},
    {"$id": http, "$ref": "y.json"}, {"$ref": secret}, {"$ref": "secret.json"},
    {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": local},
    {"$ref": "https://json-schema.org/draft/2020-12/nothing"},
]
for schema in schemas:
    for formats in (False, True):
        try:
            compile_schema(schema, name="t", formats=formats)
        except ConfigError as error:
            named = (http[:60], local[:60], "y.json", "secret.json", "nothing")
            assert any(name in str(error) for name in named), error
        else:
            raise SystemExit(f"compiled: {schema}")
        try:
            compile_schema({"$ref": "urn:r"}, name="t", resources={"urn:r": schema})
        except ConfigError:
            pass
        else:
            raise SystemExit(f"compiled as a resource: {schema}")
assert compile_schema({"$ref": http}, name="t", resources={"r": meta}).accepts("x")
listener.settimeout(0.2)
try:
    listener.accept()
except TimeoutError:
    pass
else:
    raise SystemExit("somebody connected")
if watch >= 0:
    try:
        events = os.read(watch, 4096)
    except BlockingIOError:
        events = b""
    assert not events, events
assert not touched, touched
print("untouched")
"""


def test_nothing_is_ever_fetched(tmp_path: Path) -> None:
    """References to a loopback listener and a local file touch neither, and name themselves."""
    assert run_apart(OFFLINE, str(tmp_path)) == "untouched\n"


# -- values from anywhere ----------------------------------------------------------------

NOT_JSON = [
    ({"a": "\ud800"}, "/a"),
    ({"a": {"\udc00": 1}}, "/a"),
    ({1: 2}, ""),
    ({"a": b"x"}, "/a"),
    ({"a": object()}, "/a"),
    ({"a": {1, 2}}, "/a"),
    ({"a": float("nan")}, "/a"),
    ({"a": [1, float("inf")]}, "/a/1"),
    ({"a": 10**5000}, None),
    ({"a": nested(1000)}, None),
]
LOOKING = {"additionalProperties": {"uniqueItems": True, "maxLength": 9, "maximum": 5}}


@pytest.mark.parametrize("schema", [True, LOOKING, {"additionalProperties": {"$ref": "#"}}])
@pytest.mark.parametrize("value,pointer", NOT_JSON, ids=range(len(NOT_JSON)))
def test_what_is_not_json_is_said(schema: object, value: object, pointer: str | None) -> None:
    """Python values without a JSON form raise EnvelopeError with a pointer, whatever the schema."""
    check = compile_schema(schema, name="t", code="INVALID_TOOL_INPUT")
    for method in (check.problems, check.validate):
        with pytest.raises(EnvelopeError) as caught:
            method(value)
        assert caught.value.code == "INVALID_TOOL_INPUT"
        assert pointer is None or caught.value.pointer == pointer


@pytest.mark.parametrize("value,pointer", NOT_JSON, ids=range(len(NOT_JSON)))
def test_the_hot_path_raises_nothing_else(value: object, pointer: str | None) -> None:
    """`accepts` answers, or raises EnvelopeError; nothing of the engine's own comes through."""
    for schema in (True, LOOKING, {"additionalProperties": {"$ref": "#"}}):
        try:
            verdict = compile_schema(schema, name="t").accepts(value)
        except EnvelopeError:
            continue
        assert verdict in (True, False)


def test_huge_numbers_are_numbers() -> None:
    """Integers of any length are compared exactly, and not spelled out in messages."""
    check = compile_schema({"type": "integer", "maximum": 10**30}, name="t")
    assert check.accepts(10**30)
    assert not check.accepts(10**30 + 1)
    assert check.problems(10**900)[0].message.endswith("not so large an integer")


CRASH = """
from mcp_envelope.core.schema import compile_schema
from mcp_envelope.core.errors import EnvelopeError
def nested(levels, wrap, leaf=1):
    for _ in range(levels):
        leaf = wrap(leaf)
    return leaf
schemas = [
    {"properties": {"a": {"$ref": "#"}}, "items": {"$ref": "#"}},
    {"properties": {"a": {"$ref": "#"}}, "unevaluatedProperties": False, "items": {"$ref": "#"}},
    {"anyOf": [{"items": {"$ref": "#"}}, {"type": "object", "properties": {"a": {"$ref": "#"}}}]},
    {"$dynamicAnchor": "x", "additionalProperties": {"$dynamicRef": "#x"}},
    {"enum": [1]}, {"const": {"a": 1}}, {"uniqueItems": True}, {"contains": {"const": 5}},
    {"$ref": "https://json-schema.org/draft/2020-12/schema"}, {"type": "string"}, False,
]
loop = []
loop.append(loop)
circle = {}
circle["a"] = circle
for schema in schemas:
    check = compile_schema(schema, name="t")
    values = [loop, circle]
    for levels in (199, 250, 300, 1000, 10_000, 100_000):
        values += [nested(levels, lambda x: [x]), nested(levels, lambda x: {"a": x})]
    values.append([nested(100_000, lambda x: [x]), nested(100_000, lambda x: [x])])
    for value in values:
        for method in (check.accepts, check.problems):
            try:
                method(value)
            except EnvelopeError as error:
                assert "nested deeper" in str(error), error
print("alive")
"""


def test_depth_never_exhausts_the_stack() -> None:
    """Values nested a hundred thousand levels deep, or that hold themselves, crash nothing."""
    assert run_apart(CRASH) == "alive\n"


def test_checks_are_shared_between_threads() -> None:
    """A look-ahead that gives up in one thread says nothing about the other threads' values."""
    schema = {"not": {"pattern": r"(?=.*\d)(?=.*[a-z])(?=.*!)x"}}
    check = compile_schema(schema, name="t", limits=SchemaLimits(pattern_steps=1_000_000))
    values = ["a" * 20_000, "abc", "1a!x", "abc"] * 50
    expected = [False, True, True, True] * 50
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(check.accepts, values)) == expected


# -- fingerprints ------------------------------------------------------------------------


def test_equal_schemas_have_equal_fingerprints() -> None:
    """Neither the order of members nor the spelling of numbers matters; everything else does."""
    one = fingerprint({"type": "object", "minProperties": 1})
    assert len(one) == 64
    assert one == fingerprint({"minProperties": 1.0, "type": "object"})
    assert one != fingerprint({"type": "object", "minProperties": 2})
    assert fingerprint(True) != fingerprint({})


def test_fingerprints_outside_the_canonical_domain() -> None:
    """A schema with an integer beyond 2^53 has a fingerprint too, if no canonical form."""
    big = {"maximum": 2**53 + 1, "type": "integer"}
    assert fingerprint(big) == fingerprint(dict(reversed(big.items())))
    assert fingerprint(big) != fingerprint({**big, "maximum": 2**53 + 3})
    assert len(fingerprint({"maximum": 10**40})) == 64


# -- agreement with another implementation -----------------------------------------------


def corpus() -> list[tuple[dict[str, Any], list[Any]]]:
    """Schemas that use every keyword, with values on both sides of each."""
    tree = {"$ref": "#/$defs/t"}
    return [
        ({"items": {"type": "integer"}, "uniqueItems": True}, [[1, 2], [1, 1], ["a"], [1, 1.0], 5]),
        ({"prefixItems": [{"type": "string"}], "items": False}, [["a"], ["a", 1], [1], []]),
        ({"contains": {"const": 1}, "maxContains": 2}, [[1], [], [1, 1, 1], [2, 1]]),
        ({"propertyNames": {"maxLength": 2}}, [{"ab": 1}, {"abc": 1}, {}]),
        ({"patternProperties": {"^a": {"type": "null"}}, "additionalProperties": {"minimum": 3}},
         [{"a": None}, {"a": 1}, {"b": 3}, {"b": 2}, {"b": "x"}]),
        ({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 2}},
         ["a", "ab", 1, 2, None]),
        ({"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"maxProperties": 1}}},
         [{"a": 1}, {"a": 1, "b": 1}, {"c": 1}, {"c": 1, "d": 1}]),
        ({"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]}, [2, 3, 6, 5, "x"]),
        ({"not": {"anyOf": [{"type": "string"}, {"const": 0}]}}, ["a", 0, 0.0, 1, False]),
        ({"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False},
         [{"a": 1}, {"b": 1}, {}]),
        ({"prefixItems": [True], "unevaluatedItems": {"type": "null"}}, [[1], [1, None], [1, 2]]),
        ({"$defs": {"t": {"type": "array", "items": tree}}, **tree}, [[], [[], [[]]], [1], [[1]]]),
        ({"$dynamicAnchor": "n", "properties": {"n": {"$dynamicRef": "#n"}, "v": {"const": "x"}}},
         [{"n": {"v": "x"}}, {"n": {"v": 1}}, {"v": 1}]),
        ({"enum": [1, "a", None, [1], {"a": 1}, 1.5]}, [1, 1.0, True, "a", [1], [1.0], {"a": 1}]),
        ({"const": {"a": [1, 2]}}, [{"a": [1, 2]}, {"a": [2, 1]}, {}]),
        ({"exclusiveMinimum": 1, "exclusiveMaximum": 2}, [1, 1.5, 2, "x"]),
        ({"minItems": 1, "maxItems": 1, "minProperties": 1, "maxProperties": 1, "minLength": 1},
         [[], [1], [1, 2], {}, {"a": 1}, "", "x", "😀"]),
        ({"pattern": "^(?!-)[a-z-]+(?<!-)$"}, ["a-b", "-a", "a-", "", 5]),
    ]  # fmt: skip


@pytest.mark.parametrize("schema,values", corpus(), ids=lambda part: None)
def test_verdicts_are_those_of_another_implementation(
    schema: dict[str, Any], values: list[Any]
) -> None:
    """The independent `jsonschema` package comes to the same verdicts; ours give reasons."""
    jsonschema: Any = pytest.importorskip("jsonschema")
    theirs: Callable[[Any], bool] = jsonschema.Draft202012Validator(schema).is_valid
    check = compile_schema(schema, name="t")
    for value in values:
        assert check.accepts(value) == theirs(value), json.dumps(value)
        assert bool(check.problems(value)) != theirs(value), json.dumps(value)
        assert all("does not satisfy" not in p.message for p in check.problems(value))
