"""Seed 004, versioned tool requests and responses: rule by rule (docs/rules.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import jsonschema  # type: ignore[import-untyped]
import pytest
from referencing import Registry, Resource
from tests.rules.seeds import ROOT, cli, envelope, errors, mended, raw, text

import mcp_envelope as me
from mcp_envelope.dialects import DIALECTS

DIALECT: Final = "tool/1.0"
FILES: Final = {"request": "request.schema.json", "response": "response.schema.json"}
BOTH: Final = ["004-request", "004-response"]
STAMP: Final = "2025-10-13T15:10:00Z"


def published(part: str) -> dict[str, Any]:
    """The published schema of a part, as a plain value."""
    schema: dict[str, Any] = DIALECTS[DIALECT].schemas()[FILES[part]].value
    return schema


# -- versions ----------------------------------------------------------------------------------


def test_the_two_schemas_are_published() -> None:
    """S004-01: one schema for requests and one for responses, whatever the tool."""
    assert DIALECTS[DIALECT].parts == FILES
    assert sorted(DIALECTS[DIALECT].schemas()) == sorted(FILES.values())


@pytest.mark.parametrize("name", BOTH)
def test_versions_are_semantic(name: str) -> None:
    """S004-03: three numbers with dots between them, in ASCII digits."""
    for good in ("1.0.0", "1.0.7", "1.12.0"):
        assert errors(mended(name, version=good)) == []
    for bad in ("1.0", "1", "1.0.0-rc1", "v1.0.0", "1.0.x", "", "1.\u0660.0", "1.0.0\n", 1.0, None):
        assert set(errors(mended(name, version=bad), DIALECT)) == {"/version"}


@pytest.mark.parametrize("source", ["002-success", "002-error", "000-legacy-json", "000-failure"])
def test_we_write_version_1_0_0(source: str) -> None:
    """S004-04: the current version stands in whatever we write, requests and responses."""
    assert me.parse(me.convert(raw(source), DIALECT).data)["version"] == "1.0.0"
    call = text({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t"}})
    assert me.parse(me.convert(call, DIALECT).data)["version"] == "1.0.0"


@pytest.mark.parametrize("name", BOTH)
def test_a_newer_minor_version_is_served(name: str) -> None:
    """S004-05: 1.1.x is read like 1.0.0 as long as it uses what we know."""
    newer = mended(name, version="1.1.3")
    assert me.validate(newer) == []
    assert me.parse(me.encode(me.decode(newer), DIALECT)) == me.parse(newer)


@pytest.mark.parametrize("name", BOTH)
def test_a_field_of_a_newer_minor_version_is_refused_by_name(name: str) -> None:
    """S004-05: an optional field that we don't know is refused, naming the field."""
    newer = mended(name, version="1.1.3", deadline="soon")
    assert errors(newer) == ["/deadline"]
    with pytest.raises(me.EnvelopeError, match="deadline"):
        me.decode(newer)


@pytest.mark.parametrize("name", BOTH)
def test_an_unknown_field_of_a_newer_version_names_the_versions_served(name: str) -> None:
    """S004-05: the refusal says, besides the field, which versions are served."""
    (problem,) = me.validate(mended(name, version="1.1.3", deadline="soon"))
    assert "1.x" in problem.message + problem.hint


@pytest.mark.parametrize("version", ["2.0.0", "2.1.4", "0.9.0", "10.0.0"])
@pytest.mark.parametrize("name", BOTH)
def test_other_majors_are_refused_by_name(name: str, version: str) -> None:
    """S004-06, S004-08: the field is looked at first; the error names the versions served."""
    other = mended(name, version=version, something_new={})
    (problem,) = me.validate(other)
    assert problem.pointer == "/version"
    assert version in problem.message
    assert "1.x" in problem.message
    with pytest.raises(me.EnvelopeError) as caught:
        me.decode(other)
    assert caught.value.code == "UNSUPPORTED_VERSION"


def test_the_changelog_is_kept_beside_the_schemas() -> None:
    """S004-07: the version history lies where the schemas lie, and speaks of both of them."""
    history = ROOT / "src" / "mcp_envelope" / "dialects" / "schemas" / "CHANGELOG.md"
    told = history.read_text(encoding="utf-8")
    assert all(f"tool-1.0/{name}" in told for name in FILES.values())


# -- the two schemas ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("id", ["x", "3fd7d2b1-79d1-4b8e-92c8-105c1ce9b6f7"], [..., 7, None]),
        ("version", ["1.0.0"], [..., None]),
        ("timestamp", [STAMP, "2025-10-13T15:10:00.5+02:00"], [..., "2025-10-13", 0, "now"]),
        ("tool", ["research.search", "a/b-c_d"], [..., "", "a b", "a:b", None]),
        ("auth", [..., {"type": "none"}, {"type": "api_key", "x": 1}], [{}, {"type": "magic"}]),
        ("context", [..., {}, {"task_id": 1}], ["task", None]),
        ("metadata", [..., {}, {"retry": 1}], ["high", None]),
        ("payload", [{}, {"query": "x"}], [..., [], "x", None]),
    ],
)
def test_what_a_request_holds(name: str, good: list[Any], bad: list[Any]) -> None:
    """S004-09, S004-10, S004-11, S004-12: what is required, what is optional, and of what type."""
    for value in good:
        assert errors(mended("004-request", **{name: value})) == []
    for value in bad:
        (pointer,) = errors(mended("004-request", **{name: value}), DIALECT, "request")
        assert pointer.startswith(f"/{name}")


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("id", ["x"], [..., 7, None]),
        ("version", ["1.0.0"], [..., None]),
        ("timestamp", [STAMP], [..., "today"]),
        ("errors", [..., [], [{"message": "m", "code": "c", "detail": {}}]], [{}, [{}], ["m"]]),
        ("output", [..., None, 1.5, "x", [], {}], []),
        ("metadata", [..., {"cached": True}], [[], None]),
        ("duration_ms", [..., 0, 845, 0.25], [-1, "845", None]),
    ],
)
def test_what_a_response_holds(name: str, good: list[Any], bad: list[Any]) -> None:
    """S004-13, S004-15, S004-16: correlation, what may come along, and how long it took."""
    for value in good:
        assert errors(mended("004-response", **{name: value})) == []
    for value in bad:
        (pointer,) = errors(mended("004-response", **{name: value}), DIALECT, "response")
        assert pointer.startswith(f"/{name}")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("success", me.Success),
        ("accepted", me.Success),
        ("retry", me.Failure),
        ("error", me.Failure),
    ],
)
def test_the_four_statuses(code: str, kind: type[me.Message]) -> None:
    """S004-14: each standard code has a meaning of its own, and comes back as it was."""
    response = mended("004-response", status={"code": code})
    assert errors(response) == []
    message = me.decode(response)
    assert type(message) is kind
    assert me.parse(me.encode(message, DIALECT))["status"]["code"] == code
    if isinstance(message, me.Success):
        assert message.accepted == (code == "accepted")
    if isinstance(message, me.Failure):
        assert message.faults[0].retryable == (code == "retry")


@pytest.mark.parametrize("status", [..., "success", {}, {"code": "ok"}, {"http": 200}, None])
def test_other_statuses_are_refused(status: object) -> None:
    """S004-14: the status is an object with one of the four codes."""
    (pointer,) = errors(mended("004-response", status=status), DIALECT, "response")
    assert pointer.startswith("/status")


@pytest.mark.parametrize("part", FILES)
def test_the_schemas_are_draft_7(part: str) -> None:
    """S004-17: both say draft 7, and are valid as such to a validator that is not ours."""
    schema = published(part)
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    jsonschema.Draft7Validator.check_schema(schema)
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize("part", FILES)
def test_the_schemas_can_be_referred_to(part: str) -> None:
    """S004-18: each has an absolute ``$id``, and a ``$ref`` to it does what the schema does."""
    schema = published(part)
    assert schema["$id"] == f"urn:mcp-envelope:tool/1.0:{FILES[part]}"
    registry = Registry().with_resource(schema["$id"], Resource.from_contents(schema))
    validator = jsonschema.Draft7Validator({"$ref": schema["$id"]}, registry=registry)
    assert validator.is_valid(envelope(f"004-{part}").value)
    assert not validator.is_valid({**envelope(f"004-{part}").value, "version": "2.0.0"})


# -- the validation workflow -------------------------------------------------------------------


def test_the_schemas_can_be_fetched(tmp_path: Path) -> None:
    """S004-21: ``schemas --out`` writes them as published, under their names."""
    done = cli("schemas", "--dialect", DIALECT, "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    for part, name in FILES.items():
        (written,) = tmp_path.rglob(name)
        assert json.loads(written.read_bytes()) == published(part)


@pytest.mark.parametrize(
    "change",
    [
        {}, {"id": 7}, {"version": "2.0.0"}, {"version": "1.1.0"}, {"timestamp": "yesterday"},
        {"tool": "a b"}, {"status": {"code": "ok"}}, {"duration_ms": -1}, {"unknown": 1},
        {"payload": []}, {"metadata": "high"}, {"auth": {}}, {"errors": [{}]},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("part", FILES)
def test_another_draft_7_validator_says_the_same(part: str, change: dict[str, Any]) -> None:
    """S004-22: whoever validates with a draft 7 validator of their own gets our verdict."""
    document = {**envelope(f"004-{part}").value, **change}
    theirs = jsonschema.Draft7Validator(published(part)).is_valid(document)
    assert theirs == (errors(text(document), DIALECT, part) == [])
