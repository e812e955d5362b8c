"""Our codecs and the published schemas say yes and no to the same documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dialects.mutants import mutants
from tests.dialects.published import schema_of, short, vector_files
from tests.dialects.strategies import SCHEMAS, instances

from mcp_envelope.core.document import parse
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.ports import Dialect
from mcp_envelope.dialects import DIALECTS


def codec_accepts(dialect: Dialect, part: str, value: Any) -> bool:
    """Whether our codec takes a document for what the published schema of the part describes.

    A message is decoded; a part that is none is validated, and what the codec finds beyond the
    schema (digest lengths, method namespaces) does not count.
    """
    document = parse(json.dumps(value).encode())
    if part not in getattr(dialect, "records", ()):
        try:
            dialect.decode(document, part)
        except EnvelopeError:
            return False
        return True
    version = f"{dialect.id} schema_version"
    rules = {problem.rule for problem in dialect.problems(document, part)}
    return not any(".json#" in rule or rule == version for rule in rules)


PARTS = {
    f"urn:mcp-envelope:{name}:{file}": (name, part)
    for name in DIALECTS
    for part, file in DIALECTS[name].parts.items()
}


def test_every_schema_but_the_writing_one_belongs_to_a_codec() -> None:
    """Only tiered/1.0 has two schemas for one part: one to read by, a narrower one to write by."""
    assert set(SCHEMAS) - set(PARTS) == {"urn:mcp-envelope:tiered/1.0:response.schema.json"}


@pytest.mark.parametrize("identifier", PARTS, ids=short)
@settings(max_examples=6)
@given(data=st.data())
def test_codecs_agree_with_the_schemas(identifier: str, data: st.DataObject) -> None:
    """Our codecs accept generated documents and refuse a dozen mutants of each."""
    name, part = PARTS[identifier]
    document = data.draw(instances(SCHEMAS[identifier]))
    assert codec_accepts(DIALECTS[name], part, document)
    wrong = list(mutants(document, SCHEMAS[identifier]))
    step = len(wrong) // 12 + 1
    for mutant in wrong[data.draw(st.integers(0, step - 1)) :: step]:
        assert not codec_accepts(DIALECTS[name], part, mutant.document), mutant


@pytest.mark.slow
@pytest.mark.parametrize("identifier", PARTS, ids=short)
@settings(max_examples=25)
@given(data=st.data())
def test_codecs_refuse_every_mutant(identifier: str, data: st.DataObject) -> None:
    """The same with all mutants of each document."""
    name, part = PARTS[identifier]
    document = data.draw(instances(SCHEMAS[identifier]))
    assert codec_accepts(DIALECTS[name], part, document)
    for mutant in mutants(document, SCHEMAS[identifier]):
        assert not codec_accepts(DIALECTS[name], part, mutant.document), mutant


@pytest.mark.parametrize("path", vector_files("valid") + vector_files("invalid"), ids=short)
def test_codecs_agree_with_the_vectors(path: Path) -> None:
    """Our codecs accept the good documents and refuse the bad ones."""
    if schema_of(path) not in PARTS:
        return
    name, part = PARTS[schema_of(path)]
    document = json.loads(path.read_text(encoding="utf-8"))
    good = path.parent.name == "valid"
    assert codec_accepts(DIALECTS[name], part, document if good else document["document"]) == good
