"""The vectors that the provenance specification publishes: the right ones hold, the others fail.

They are copies of ``../shared/vectors/provenance`` (tests/test_house.py compares them). A negative
vector must fail, and for the reason that it states.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from tests.rules.seeds import ROOT, cli

import mcp_envelope as me
from mcp_envelope.core.provenance import method_id_problem

FOLDER: Final = ROOT / "tests" / "vectors" / "shared" / "provenance"
WRAP: Final = FOLDER / "adapter.wrap.envelope_v0_1"
DIGEST: Final = FOLDER / "integrity.digest.sha256"
EVIDENCE: Final = FOLDER / "engine.extract.evidence.json_pointer"
METHODS: Final = FOLDER / "method_id_syntax"


def load(path: Path) -> me.Document:
    """A vector, read strictly."""
    return me.parse(path.read_bytes())


def the_fault(vector: me.Document, name: str, part: str) -> me.Problem:
    """The one error in the document that a negative vector holds."""
    assert vector["_vector_meta"]["expect"] == "fail"
    (problem,) = me.validate(vector[name], "provenance/0.1", part)
    assert problem.severity == "error"
    return problem


def test_every_vector_is_looked_at() -> None:
    """No file is added to the folder without a test that knows it."""
    groups = {path.parent.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.json")}
    assert groups == {
        "adapter.wrap.envelope_v0_1",
        "adapter.wrap.envelope_v0_1/negative",
        "engine.extract.evidence.json_pointer",
        "integrity.digest.sha256",
        "integrity.digest.sha256/negative",
        "method_id_syntax/negative",
        "method_id_syntax/positive",
    }
    assert len(list(FOLDER.rglob("*.json"))) == 16


# -- wrapping ----------------------------------------------------------------------------------


def test_the_wrap_vector() -> None:
    """The input, wrapped, is the expected envelope, and its text is spliced in unchanged."""
    given = (WRAP / "input.json").read_bytes()
    assert me.parse(me.wrap(given)) == load(WRAP / "expected.json")
    assert given.strip() in me.wrap(given)
    done = cli("wrap", str(WRAP / "input.json"))
    assert me.parse(done.stdout) == load(WRAP / "expected.json")


def test_the_expected_envelope_is_passed_through() -> None:
    """The envelope of the vector is valid, and wrapping it again changes no byte."""
    given = (WRAP / "expected.json").read_bytes()
    assert me.validate(given) == []
    assert me.wrap(given) == given


def test_a_double_wrapped_envelope_fails() -> None:
    """Negative: an envelope in an envelope is refused, by every reader, with the reason."""
    vector = load(WRAP / "negative" / "double_wrapped.json")
    problem = the_fault(vector, "envelope", "response")
    assert (problem.pointer, problem.rule) == ("/result", "provenance/0.1 no-nesting")
    for reader in (me.decode, me.wrap):
        with pytest.raises(me.EnvelopeError, match="never nested"):
            reader(vector["envelope"])


def test_a_wrong_schema_version_fails() -> None:
    """Negative: version 0.2 is refused, and the error says which version is supported."""
    vector = load(WRAP / "negative" / "wrong_schema_version.json")
    problem = the_fault(vector, "envelope", "response")
    assert problem.pointer == "/schema_version"
    assert "mcp.envelope.v0.2 is not supported" in problem.message
    with pytest.raises(me.EnvelopeError, match=r"mcp\.envelope\.v0\.2"):
        me.decode(vector["envelope"])


# -- digests -----------------------------------------------------------------------------------


def test_the_digest_vector() -> None:
    """Canonical form and digest of the input are the expected ones, here and in the terminal."""
    found, expected = me.digest(load(DIGEST / "input.json")), load(DIGEST / "expected.json")
    assert found.canonical_form.decode() == expected["canonical_form"].value
    assert found.as_dict() == expected["digest"].value
    done = cli("digest", str(DIGEST / "input.json"))
    assert me.parse(done.stdout) == expected


@pytest.mark.parametrize(
    ("name", "pointer", "reason"),
    [
        ("non_hex_chars", "/digest/value", "hexadecimal"),
        ("uppercase_hex", "/digest/value", "upper-case"),
        ("wrong_length", "/digest/value", "64 characters, this one 32"),
    ],
)
def test_a_wrong_digest_fails(name: str, pointer: str, reason: str) -> None:
    """Negative: a digest that cannot be right fails with what is wrong about it."""
    problem = the_fault(load(DIGEST / "negative" / f"{name}.json"), "artifact", "artifact")
    assert problem.pointer == pointer
    assert reason in problem.message + problem.hint


# -- evidence ----------------------------------------------------------------------------------


def test_each_evidence_source_resolves_in_its_artifact() -> None:
    """Each entry is valid evidence, names the artifact, and points at something in it."""
    artifact, expected = load(EVIDENCE / "input.json"), load(EVIDENCE / "expected.json")
    found = []
    for entry in expected["evidence"].elements():
        assert me.validate(entry, part="evidence") == []
        where, _, pointer = entry["source"].value.partition("#json:")
        assert where == f"artifact:{artifact['artifact_id'].value}"
        anchored = artifact["content"].at(pointer)
        assert anchored is not None, pointer
        found.append(anchored.value)
    assert found == [
        "PAYROLL.EXPORT.SFTP.AUTH",
        "Credential method mismatch",
        "Use password auth",
        "Update SSH key",
    ]
    assert artifact["content"].at("/why/2") is None


# -- method ids --------------------------------------------------------------------------------


def test_valid_method_ids_hold() -> None:
    """None of the listed ids breaks the grammar; an unknown namespace is only a warning."""
    ids = load(METHODS / "positive" / "valid_ids.json")["method_ids"].value
    assert len(ids) == 9
    found = {id_: problem for id_ in ids if (problem := method_id_problem(id_)) is not None}
    assert {problem.severity for problem in found.values()} <= {"warning"}
    assert not any(id_.split(".")[0] in ("adapter", "engine", "integrity") for id_ in found)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("hyphen_separator", "method-id-grammar"),
        ("starts_with_digit", "method-id-grammar"),
        ("uppercase", "method-id-grammar"),
        ("reserved_namespace", "method-id-reserved"),
    ],
)
def test_wrong_method_ids_fail(name: str, rule: str) -> None:
    """Negative: a method id outside the grammar, or in a reserved namespace, is an error."""
    vector = load(METHODS / "negative" / f"{name}.json")
    assert vector["_vector_meta"]["expect"] == "fail"
    problem = method_id_problem(vector["method_id"].value)
    assert problem is not None
    assert (problem.severity, problem.rule) == ("error", f"provenance/0.1 {rule}")
    assert problem.hint
