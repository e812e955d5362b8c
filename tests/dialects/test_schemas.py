"""The published schemas: well formed, portable, and of one mind with every validator.

Hand-written documents lie in ``tests/vectors/<dialect>/{valid,invalid}/<schema>--<what>.json``;
an invalid one is ``{"why", "pointer", "document"}``. Generated ones come from ``strategies.py``
and ``mutants.py``. What our codecs make of all these: ``test_schemas_in_codecs.py``.
"""

from __future__ import annotations

import calendar
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dialects.mutants import mutants
from tests.dialects.published import (
    ACCEPTED,
    REFUSED,
    VECTORS,
    pointers,
    schema_of,
    short,
    vector_files,
    verdict,
    walk,
)
from tests.dialects.strategies import PATHS, ROOT, SCHEMAS, holds, instances, kinds, resolve

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.kind import Kind

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
NAMES = ("provenance/0.1", "jsonrpc/2.0", "tiered/1.0", "mcpx/0.1", "tool/1.0", "mcp")
ANNOTATIONS = {"$schema", "$id", "$comment", "title", "description", "examples", "default", "$defs"}
ASSERTIONS = {
    "$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "type", "const", "enum",
    "properties", "required", "additionalProperties", "items", "contains", "minItems",
    "uniqueItems", "minLength", "maxLength", "pattern", "minimum", "maximum",
}  # fmt: skip
each_schema = pytest.mark.parametrize("identifier", SCHEMAS, ids=short)


def strings_with_patterns() -> list[tuple[str, dict[str, Any]]]:
    """Every distinct schema of a string that has a pattern."""
    found = {
        json.dumps({k: schema[k] for k in ("pattern", "not") if k in schema}): f"{name}{place}"
        for name, root in SCHEMAS.items()
        for place, schema in walk(root)
        if "pattern" in schema
    }
    return [(place, json.loads(text)) for text, place in found.items()]


# -- form --------------------------------------------------------------------------------------


@each_schema
def test_a_schema_is_valid_against_its_meta_schema(identifier: str) -> None:
    """Both validators know the draft and find nothing wrong with the schema itself."""
    schema = SCHEMAS[identifier]
    jsonschema.validators.validator_for(schema).check_schema(schema)
    assert jsonschema_rs.meta.is_valid(dict(schema))


@each_schema
def test_a_schema_says_its_draft_name_and_purpose(identifier: str) -> None:
    """Draft 7 for tool/1.0 and 2020-12 elsewhere; the $id is made of dialect and file name."""
    schema, path = SCHEMAS[identifier], PATHS[identifier]
    dialect = next(d for d in NAMES if d.replace("/", "-") == path.parent.name)
    assert identifier == f"urn:mcp-envelope:{dialect}:{path.name}"
    assert schema["$schema"] == (DRAFT_7 if dialect == "tool/1.0" else DRAFT_2020)
    assert schema["title"]
    assert schema["description"]


@each_schema
def test_references_are_absolute_and_stay_at_home(identifier: str) -> None:
    """Every $ref is a whole URN that one of the published files answers."""
    for place, schema in walk(SCHEMAS[identifier]):
        if "$ref" in schema:
            assert schema["$ref"].startswith("urn:mcp-envelope:"), place
            assert resolve(schema["$ref"]), place


@each_schema
def test_every_property_says_what_it_is(identifier: str) -> None:
    """Each property has a description of at least a word, without a full stop missing."""
    for place, schema in walk(SCHEMAS[identifier]):
        for name, member in schema.get("properties", {}).items():
            assert re.fullmatch(r"[A-Z].*[.]", member.get("description", "")), f"{place} {name}"


@each_schema
def test_only_keywords_that_the_generators_know(identifier: str) -> None:
    """A new keyword in a schema must be taught to strategies.py and mutants.py first.

    ``format`` is not among them on purpose: validators differ on what it asserts (leap seconds,
    the year 0, trailing newlines), and by default most assert nothing.
    """
    for place, schema in walk(SCHEMAS[identifier]):
        assert set(schema) <= ANNOTATIONS | ASSERTIONS, place


@each_schema
def test_the_examples_of_a_schema_satisfy_it(identifier: str) -> None:
    """What a reader sees first is right."""
    examples = SCHEMAS[identifier]["examples"]
    assert examples
    assert [verdict(identifier, example) for example in examples] == [ACCEPTED] * len(examples)


def test_every_schema_stands_in_the_changelog() -> None:
    """The CHANGELOG beside the schemas names each file."""
    text = (next(iter(PATHS.values())).parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
    assert not [path for path in PATHS.values() if f"`{path.parent.name}/{path.name}`" not in text]


# -- patterns ----------------------------------------------------------------------------------


def test_patterns_use_what_every_regex_engine_has() -> None:
    r"""No look-around, no back-references, no \d \w \s, no dot, nothing lazy or possessive."""
    for place, schema in strings_with_patterns():
        bare = re.sub(r"\[(?:[^\]\\]|\\.)*\]", "[]", schema["pattern"])
        assert set(re.findall(r"\(\?.", bare)) <= {"(?:"}, place
        assert set(re.findall(r"\\.", bare)) <= {r"\.", r"\+", r"\[", r"\]"}, place
        assert not re.search(r"(?<!\\)\.|[*+?}][+?]", bare), place


def test_whole_matches_survive_python_and_its_trailing_newline() -> None:
    """A pattern that ends in ``$`` stands beside a ``not`` that refuses line breaks."""
    for place, schema in strings_with_patterns():
        if schema["pattern"].endswith("$"):
            assert holds(schema["not"], "a\n"), place


@pytest.mark.requires("node")
def test_engines_agree_on_every_pattern(node: str) -> None:
    """Node, Rust and Python give one verdict on good, spoilt and odd strings for each pattern."""
    schemas = [schema for _, schema in strings_with_patterns()]
    seeds = [
        "a", "1.0.0", "a.b_v0_1", "0123456789abcdef", "2025-10-13T15:10:00Z", "chat", "",
        "mcp/request:tools/call:read_file", "1.2.3-rc.1+b", "https://a.b/c", "mcp/proposal:",
    ]  # fmt: skip
    spoilers = [
        "", "\n", "\r", "\r\n", "\u2028", "\u0085", " ", "\u200b", "\x00", "\u0661",
        "\U000e0041", "\U0001f642", "\u017f", "\u212a", ":", "/", ".",
    ]  # fmt: skip
    texts = [seed + spoiler + rest for seed in seeds for spoiler in spoilers for rest in ("", "z")]
    script = """
        const [schemas, texts] = JSON.parse(require('fs').readFileSync(0, 'utf8'));
        const ok = (s, t) => (!s.pattern || new RegExp(s.pattern, 'u').test(t))
                             && !(s.not && ok(s.not, t));
        console.log(JSON.stringify(schemas.map(s => texts.map(t => ok(s, t)))));
    """
    run = subprocess.run(
        [node, "-e", script], input=json.dumps([schemas, texts]), capture_output=True,
        text=True, check=True, encoding="utf-8",
    )  # fmt: skip
    for schema, seen in zip(schemas, json.loads(run.stdout), strict=True):
        rust = jsonschema_rs.Draft202012Validator(schema)
        python = jsonschema.Draft202012Validator(schema)
        assert seen == [rust.is_valid(text) for text in texts], schema
        assert seen == [python.is_valid(text) for text in texts], schema
        assert seen == [holds(schema, text) for text in texts], schema


TIMES = {text: schema for _, schema in strings_with_patterns() for text in [schema["pattern"]]
         if "23:59:60" in text}  # fmt: skip


def is_time(text: str) -> bool:
    """Whether both validators take the text for a date-time."""
    schema = next(iter(TIMES.values()))
    seen = {
        jsonschema_rs.is_valid(schema, text),
        jsonschema.Draft202012Validator(schema).is_valid(text),
    }
    assert len(seen) == 1, text
    return True in seen


def test_there_is_one_idea_of_a_date_time() -> None:
    """Five places in four files, one pattern."""
    assert len(TIMES) == 1


def test_date_times_know_the_calendar() -> None:
    """Month lengths and leap years are right, the centuries included."""
    for year in (0, 4, 1896, 1900, 1999, 2000, 2023, 2024, 2100, 2400, 9996, 9999):
        for month in range(14):
            leap_year = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
            days = (
                calendar.monthrange(2000 if leap_year else 2001, month)[1] if 0 < month < 13 else 0
            )
            for day in (0, 1, 27, 28, 29, 30, 31, 32):
                text = f"{year:04}-{month:02}-{day:02}T00:00:00Z"
                assert is_time(text) == (1 <= day <= days), text


@pytest.mark.parametrize(
    "text,right",
    [
        ("2025-10-13T15:10:00Z", True), ("2025-10-13t15:10:00z", True),
        ("2025-10-13T15:10:00.0000000000001+23:59", True), ("2025-10-13T00:00:00-00:00", True),
        ("1998-12-31T23:59:60Z", True), ("1998-12-31T23:59:60.5+00:00", True),
        ("1998-12-31T22:59:60Z", False), ("1998-12-31T23:58:60Z", False),
        ("1998-12-31T23:59:61Z", False), ("2025-10-13T24:00:00Z", False),
        ("2025-10-13T00:60:00Z", False), ("2025-10-13T00:00:00+24:00", False),
        ("2025-10-13T00:00:00+05:60", False), ("2025-10-13T00:00:00+0530", False),
        ("2025-10-13T00:00:00", False), ("2025-10-13 00:00:00Z", False),
        ("2025-10-13T00:00Z", False), ("2025-10-13T00:00:00,5Z", False),
        ("2025-10-13T00:00:00.Z", False), ("2025-10-13T00:00:00Z\n", False),
        ("2025-1-13T00:00:00Z", False), ("2025-286T00:00:00Z", False), ("20251013T000000Z", False),
        ("12025-10-13T00:00:00Z", False), ("\uff12025-10-13T00:00:00Z", False), ("now", False),
    ],
)  # fmt: skip
def test_date_times_are_those_of_rfc_3339(text: str, right: bool) -> None:
    """RFC 3339, section 5.6; a leap second is told from a wrong second where it is given in UTC."""
    assert is_time(text) == right


@given(
    kinds(), st.sampled_from(["", " ", "\n", ":", "/", "\u00a0", "\u200b", "\x7f", "\u0430", "x"])
)
def test_kinds_are_those_of_the_kind_parser(kind: str, spoiler: str) -> None:
    """The pattern for ``kind`` and ``Kind.parse`` accept the same texts."""
    schema = SCHEMAS["urn:mcp-envelope:mcpx/0.1:envelope.schema.json"]["properties"]["kind"]
    for text in (kind, kind + spoiler, spoiler + kind, kind.replace(":", spoiler, 1)):
        try:
            Kind.parse(text)
        except EnvelopeError:
            assert not holds({k: schema[k] for k in ("type", "pattern", "not")}, text), text
        else:
            assert holds({k: schema[k] for k in ("type", "pattern", "not")}, text), text


# -- documents ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", vector_files("valid"), ids=short)
def test_good_documents_are_accepted(path: Path) -> None:
    """Both validators accept each hand-written good document."""
    document = json.loads(path.read_text(encoding="utf-8"))
    assert verdict(schema_of(path), document) == ACCEPTED, pointers(schema_of(path), document)


@pytest.mark.parametrize("path", vector_files("invalid"), ids=short)
def test_bad_documents_are_refused_for_the_right_place(path: Path) -> None:
    """Both validators refuse each hand-written bad document, at the pointer that it names."""
    vector = json.loads(path.read_text(encoding="utf-8"))
    assert verdict(schema_of(path), vector["document"]) == REFUSED, vector["why"]
    ours, theirs = pointers(schema_of(path), vector["document"])
    assert vector["pointer"] in ours
    assert vector["pointer"] in theirs


def test_every_schema_has_good_and_bad_documents() -> None:
    """No published schema goes without hand-written vectors of both kinds."""
    for kind in ("valid", "invalid"):
        assert {schema_of(path) for path in vector_files(kind)} == set(SCHEMAS)


def _samples_of_the_seeds() -> list[Any]:
    folder = ROOT.parent / "shared" / "seeds"
    if not folder.is_dir():
        pytest.skip("no ../shared beside this clone; the copies stand alone")
    found = []
    for seed in sorted(folder.glob("*.txt")):
        for block in re.findall(
            r"```jsonc?\n(.*?)```", seed.read_text(encoding="utf-8"), re.DOTALL
        ):
            try:
                found.append(json.loads(re.sub(r"(?m)(?:^|\s)//[^\"\n]*$|/\*.*?\*/", "", block)))
            except ValueError:
                continue  # a shape with placeholders, no document
    return [d for d in found if {"schema_version", "tier", "kind", "version"} & set(d)]


def test_the_envelopes_of_the_seeds_are_among_the_good_documents() -> None:
    """Every complete envelope of seeds 000 to 004 is a vector.

    Seed 003 shows fragments: ``protocol``, ``id`` and ``from`` are added, and where it shows
    only ``{ /* standard MCP response */ }``, such a response with its ``correlation_id``.
    """
    vectors = [json.loads(path.read_text()) for path in VECTORS.glob("*/valid/*--seed-*.json")]
    samples = _samples_of_the_seeds()
    assert len(samples) == 15
    for sample in samples:
        if sample.get("payload") == {}:
            del sample["payload"]
        assert any(sample.items() <= vector.items() for vector in vectors), sample


def test_mutants_break_every_keyword() -> None:
    """The good documents have mutants for each keyword that can be broken; all are refused."""
    broken = set()
    for path in vector_files("valid"):
        document = json.loads(path.read_text(encoding="utf-8"))
        for mutant in mutants(document, SCHEMAS[schema_of(path)]):
            assert verdict(schema_of(path), mutant.document) == REFUSED, (path.name, mutant)
            broken.add(mutant.keyword)
    assert broken == ASSERTIONS - {"$ref", "allOf", "if", "then", "else", "properties", "items"}


def agree_on_instances_and_mutants(identifier: str, data: st.DataObject) -> None:
    """Draw one instance; it is accepted, and each of its mutants refused, by both validators."""
    instance = data.draw(instances(SCHEMAS[identifier]))
    assert verdict(identifier, instance) == ACCEPTED, instance
    for mutant in mutants(instance, SCHEMAS[identifier]):
        assert verdict(identifier, mutant.document) == REFUSED, mutant


@each_schema
@settings(max_examples=8)
@given(data=st.data())
def test_validators_agree_on_generated_documents(identifier: str, data: st.DataObject) -> None:
    """jsonschema-rs and jsonschema accept what is right and refuse what is wrong in one rule."""
    agree_on_instances_and_mutants(identifier, data)


@pytest.mark.slow
@each_schema
@settings(max_examples=150)
@given(data=st.data())
def test_validators_agree_on_many_documents(identifier: str, data: st.DataObject) -> None:
    """The same, for longer."""
    agree_on_instances_and_mutants(identifier, data)


@settings(max_examples=15)
@given(instances(SCHEMAS["urn:mcp-envelope:tiered/1.0:response.schema.json"]))
def test_what_tiered_writes_it_also_reads(document: Any) -> None:
    """The schema for reading accepts all that the schema for writing does."""
    assert verdict("urn:mcp-envelope:tiered/1.0:response.read.schema.json", document) == ACCEPTED
