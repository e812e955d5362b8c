"""Seed 000, wrapping legacy results into ``mcp.envelope.v0.1``: rule by rule (docs/rules.md)."""

from __future__ import annotations

import json
import socket
from typing import Any, Final

import pytest
from tests.rules.seeds import cli, envelope, errors, mended, raw, text

import mcp_envelope as me
from mcp_envelope.dialects import DIALECTS
from mcp_envelope.dialects.wrap import wrap_failure

ENVELOPE: Final = "mcp.envelope.v0.1"
LEGACY: Final = [
    b'"done"',
    b'""',
    b'{ "ok": true, "count": 3 }',
    b"[1, 2.50, [ ]]",
    b"1.0",
    b"10000000000000000000001",
    b"-0",
    b"1e2",
    b"true",
    b"null",
    b'{"schema_version": "assist.response.v0.1", "answer": {"text": "a\\u00e9"}}',
    b'{"schema_version": 7}',
]
DIGEST: Final = {"alg": "sha256", "value": "54fb66ce0aa90801" * 4}
ARTIFACT: Final = {"schema_version": "artifact.v0.1", "artifact_id": "a-1", "media_type": "text/x"}
EVIDENCE: Final = {
    "schema_version": "evidence.v0.1", "field": "ok", "source": "artifact:a-1#json:/ok",
}  # fmt: skip


def result_of(wrapped: bytes) -> me.Document:
    """What stands in ``result``, with its exact bytes."""
    return me.parse(wrapped)["result"]


def with_record(**members: object) -> bytes:
    """The seed's envelope with a record, some of whose members are replaced or taken out."""
    record = {**envelope("000-adopt-provenance")["provenance"].value, **members}
    record = {name: part for name, part in record.items() if part is not ...}
    return mended("000-adopt-provenance", provenance=record)


def request(**members: object) -> bytes:
    """A request of the format."""
    value = {
        "schema_version": "mcp.request.v0.1", "tool": {"name": "search"},
        "params": {"query": "maps"}, "artifacts": [], **members,
    }  # fmt: skip
    return text(value)


# -- how to adopt ------------------------------------------------------------------------------


def test_adoption_goes_in_steps() -> None:
    """S000-01: an envelope is whole without provenance, with null, and with a record."""
    assert errors(raw("000-legacy-json")) == []
    assert errors(raw("000-adopt-json")) == []
    assert errors(raw("000-adopt-provenance")) == []


@pytest.mark.parametrize("payload", LEGACY)
def test_any_json_is_wrapped_unchanged(payload: bytes) -> None:
    """S000-02: existing JSON stands in ``result`` byte for byte, whatever it is."""
    assert result_of(me.wrap(payload)).raw == payload
    value = json.loads(payload)
    assert me.wrap(value) == {"schema_version": ENVELOPE, "result": value}


def test_text_becomes_a_string() -> None:
    """S000-04: text output is wrapped as a JSON string, which is the seed's example."""
    assert me.wrap("your existing text output")["result"] == "your existing text output"
    wrapped = me.parse(me.wrap(b'"your existing text output"'))
    assert wrapped == envelope("000-adopt-text").without("provenance")


def test_provenance_is_a_record() -> None:
    """S000-06: what stands in ``provenance`` is a prov.record.v0.1 or null, nothing else."""
    assert errors(with_record()) == []
    assert errors(with_record(schema_version="prov.record.v0.2")) != []
    assert errors(mended("000-adopt-json", provenance={})) != []
    assert errors(mended("000-adopt-json", provenance="uuid")) != []


@pytest.mark.parametrize(
    ("member", "good", "bad"),
    [
        ("inputs", {**ARTIFACT, "digest": DIGEST}, {"artifact_id": "a-1"}),
        ("outputs", {**ARTIFACT, "size_bytes": 3}, {**ARTIFACT, "size_bytes": -1}),
        ("methods", "adapter.wrap.envelope_v0_1", "Adapter.Wrap"),
        ("evidence", EVIDENCE, {**EVIDENCE, "source": ""}),
        ("parents", "7e57ed00-run", ""),
    ],
)
def test_a_record_lists_what_went_in_and_out(member: str, good: Any, bad: Any) -> None:
    """S000-07, S000-08, S000-09, S000-10, S000-11: each list holds what it is for, or nothing."""
    assert errors(with_record(**{member: []})) == []
    assert errors(with_record(**{member: [good]})) == []
    assert errors(with_record(**{member: [good, bad]})) != []
    assert errors(with_record(**{member: ...})) == [f"/provenance/{member}"]


# -- 1 to 3: what is legacy, and how it is wrapped ---------------------------------------------


@pytest.mark.parametrize(
    "payload",
    [
        b'"plain text"',
        b'{"ok": true}',
        b"[1, 2]",
        b"3",
        b"3.5",
        b"false",
        b"null",
        b'{"schema_version": "assist.response.v0.1"}',
        b'{"schema_version": "mcp.request.v0.1"}',
        b'{"result": {"schema_version": "mcp.envelope.v0.1"}}',
        b'["mcp.envelope.v0.1"]',
    ],
)
def test_what_counts_as_legacy(payload: bytes) -> None:
    """S000-13, S000-14, S000-15, S000-16, S000-17: all but an envelope object is wrapped."""
    assert me.wrap(payload) == b'{"schema_version":"mcp.envelope.v0.1","result":' + payload + b"}"


@pytest.mark.parametrize("payload", LEGACY)
def test_the_wrapping_template_holds(payload: bytes) -> None:
    """S000-18: the template with ``provenance: null`` is valid and means what ``wrap`` writes."""
    template = b'{"schema_version": "mcp.envelope.v0.1", "result": %s, "provenance": null}'
    assert errors(template % payload) == []
    ours, seeds = me.decode(me.wrap(payload)), me.decode(template % payload)
    assert isinstance(ours, me.Success)
    assert isinstance(seeds, me.Success)
    assert ours.payload == seeds.payload
    assert me.parse(template % payload).without("provenance") == me.parse(me.wrap(payload))


@pytest.mark.parametrize("payload", LEGACY)
def test_wrapping_is_safe_and_keeps_the_meaning(payload: bytes) -> None:
    """S000-19: what was wrapped is valid, and gives the payload back, number text and all."""
    assert me.validate(me.wrap(payload)) == []
    message = me.decode(me.wrap(payload))
    assert isinstance(message, me.Success)
    assert message.payload is not None
    assert message.payload.raw == payload


def test_a_payload_with_its_own_schema_version_is_kept() -> None:
    """S000-20: the seed's assist.response.v0.1 stays intact as ``result``."""
    payload = b'{ "schema_version": "assist.response.v0.1", "answer": "42" }'
    template = b'{"schema_version": "mcp.envelope.v0.1", "result": %s, "provenance": null}'
    assert result_of(me.wrap(payload)).raw == payload
    assert errors(template % payload) == []


def test_nothing_inside_is_renamed_reformatted_or_upgraded() -> None:
    """S000-21, S000-22, S000-23: names, spacing, escapes, number text and versions stay."""
    payload = (
        b'{\n  "schema_version" : "mcp.envelope.v0.0",\n\t"Result": 1.50,\n'
        b'  "result": "\\u0041\\/", "provenence": 1E+2 }'
    )
    assert result_of(me.wrap(payload)).raw == payload


# -- 4: failures -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "exit_code"),
    [
        ("ValueError: no such account", None),
        ("Tool execution failed with exit code 2.", 2),
        ("sftp: connection closed", None),
    ],
    ids=["exception", "exit code", "stderr"],
)
def test_a_failure_becomes_an_envelope_with_errors(message: str, exit_code: int | None) -> None:
    """S000-24, S000-25, S000-26, S000-27, S000-29: a null result, and an entry that says why."""
    failed = wrap_failure(message, exit_code=exit_code)
    assert errors(failed) == []
    said = me.parse(failed)
    assert said["result"].value is None
    assert [entry["message"] for entry in said["errors"].value] == [message]
    assert isinstance(me.decode(failed), me.Failure)


def test_a_partial_output_is_kept() -> None:
    """S000-28: what the tool had written before it failed stands in ``result``, unchanged."""
    partial = me.parse(b'{"rows": [1.0, 2.0]}')
    failed = wrap_failure("killed", partial=partial, exit_code=-9)
    assert result_of(failed).raw == partial.raw
    message = me.decode(failed)
    assert isinstance(message, me.Failure)
    assert message.payload == partial


def test_the_failure_that_the_seed_shows() -> None:
    """S000-31: the seed's example is what comes out for exit code 2, null provenance apart."""
    failed = wrap_failure("Tool execution failed with exit code 2.", exit_code=2)
    assert me.parse(failed) == envelope("000-failure").without("provenance")
    encoded = me.encode(me.decode(raw("000-failure")), "provenance/0.1")
    assert me.parse(encoded)["errors"] == envelope("000-failure")["errors"]
    message = me.decode(failed)
    assert isinstance(message, me.Failure)
    assert message.code == "EXECUTION_FAILED"


def test_the_tools_own_code_is_kept() -> None:
    """S000-32: a structured code of the tool's comes before ADAPTER.EXECUTION.FAILED."""
    failed = wrap_failure("key rejected", code="PAYROLL.EXPORT.SFTP.AUTH")
    assert me.parse(failed)["errors"][0]["code"] == "PAYROLL.EXPORT.SFTP.AUTH"
    fault = me.Fault(code="PAYROLL.EXPORT.SFTP.AUTH", message="key rejected")
    encoded = me.encode(me.Failure(faults=(fault,)), "provenance/0.1")
    assert me.parse(encoded) == me.parse(failed)
    message = me.decode(encoded)
    assert isinstance(message, me.Failure)
    assert message.code == "PAYROLL.EXPORT.SFTP.AUTH"


# -- 5 and 6: provenance and determinism -------------------------------------------------------


@pytest.mark.parametrize("payload", LEGACY)
def test_wrapping_attaches_no_provenance(payload: bytes) -> None:
    """S000-35: where nobody asked for provenance, there is none."""
    assert "provenance" not in me.parse(me.wrap(payload))
    assert "provenance" not in me.parse(wrap_failure("failed"))


@pytest.mark.parametrize(
    "wish",
    [
        {"capture_provenance": True, "capture_artifacts": False, "provenance_mode": "minimal"},
        {"capture_artifacts": True, "provenance_mode": "full"},
    ],
)
@pytest.mark.parametrize("to", ["provenance/0.1", "mcp", "mcpx/0.1", "jsonrpc/2.0", "tool/1.0"])
def test_provenance_is_asked_for_in_meta(wish: dict[str, object], to: str) -> None:
    """S000-36, S000-37, S000-38, S000-39: ``params._meta`` is read apart from the arguments.

    It is no argument of the tool, and survives the way through every dialect.
    """
    asked = request(params={"query": "maps", "_meta": wish})
    assert errors(asked) == []
    message = me.decode(asked)
    assert isinstance(message, me.Request)
    assert message.arguments == {"query": "maps"}
    assert message.meta == wish
    back = me.convert(me.convert(asked, to).data, "provenance/0.1", from_=to)
    assert me.parse(back.data) == me.parse(asked)


@pytest.mark.parametrize(
    ("name", "value", "right"),
    [
        ("capture_provenance", False, True),
        ("capture_provenance", 1, False),
        ("capture_artifacts", "yes", False),
        ("provenance_mode", "full", True),
        ("provenance_mode", "max", False),
    ],
)
def test_what_asks_for_provenance_in_vain_is_warned_of(
    name: str, value: object, right: bool
) -> None:
    """S000-36: the convention's fields have types; another value is valid, and a warning."""
    request = {"schema_version": "mcp.request.v0.1", "tool": {"name": "t"}, "artifacts": []}
    found = me.validate(me.dump({**request, "params": {"_meta": {name: value}}}))
    assert [(p.pointer, p.severity) for p in found] == (
        [] if right else [(f"/params/_meta/{name}", "warning")]
    )


def test_deterministic_is_the_default() -> None:
    """S000-40: ``preferences.deterministic`` is a boolean, published with the default true."""
    schema = DIALECTS["provenance/0.1"].schemas()["mcp.request.schema.v0.1.json"].value
    published = schema["properties"]["preferences"]["properties"]["deterministic"]
    assert (published["type"], published["default"]) == ("boolean", True)
    assert errors(request(preferences={"deterministic": False})) == []
    assert errors(request(preferences={})) == []
    assert errors(request(preferences={"deterministic": "no"})) == ["/preferences/deterministic"]


def test_wrapping_is_deterministic() -> None:
    """S000-41: no times and no random ids; wrapping twice gives the same bytes."""
    for payload in LEGACY:
        assert me.wrap(payload) == me.wrap(payload)
        assert set(me.parse(me.wrap(payload)).value) == {"schema_version", "result"}
    failed = wrap_failure("failed", exit_code=1)
    assert failed == wrap_failure("failed", exit_code=1)
    assert set(me.parse(failed).value) == {"schema_version", "result", "errors"}


def test_wrapping_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """S000-42: no socket is opened for reading, wrapping or converting."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was asked for")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    assert errors(with_record(inputs=[{**ARTIFACT, "locator": "http://127.0.0.1:9/a"}])) == []
    me.wrap(b'{"$schema": "http://127.0.0.1:9/s", "$ref": "http://127.0.0.1:9/r"}')
    me.convert(raw("000-adopt-provenance"), "mcp")


def test_preferences_travel_with_the_request() -> None:
    """S000-43: a tool can only do less if it is told: preferences survive a conversion."""
    asked = request(preferences={"deterministic": False, "max_output_bytes": 100, "locale": "en"})
    there = me.convert(asked, "mcp")
    assert there.lost == ()
    assert me.parse(me.convert(there.data, "provenance/0.1", from_="mcp").data) == me.parse(asked)


# -- 7 and 8: pass-through and versions --------------------------------------------------------


@pytest.mark.parametrize("name", ["000-adopt-json", "000-adopt-provenance", "000-failure"])
def test_an_envelope_comes_back_byte_for_byte(name: str) -> None:
    """S000-44: what is an envelope already is returned as it is, spaces and line ends included."""
    assert me.wrap(raw(name)) == raw(name)
    value = envelope(name).value
    assert me.wrap(value) is value


def test_the_command_line_passes_an_envelope_through() -> None:
    """S000-44: ``wrap`` in the terminal writes the bytes that it read."""
    done = cli("wrap", "-", given=raw("000-failure"))
    assert (done.returncode, done.stdout) == (0, raw("000-failure"))


def test_envelopes_are_never_nested() -> None:
    """S000-45: wrapping what was wrapped changes nothing, and a nested envelope is refused.

    So is what calls itself an envelope and is none: it is neither passed on nor wrapped.
    """
    once = me.wrap(b'{"ok": true}')
    assert me.wrap(once) == once
    nested = text({"schema_version": ENVELOPE, "result": json.loads(once)})
    assert errors(nested) == ["/result"]
    with pytest.raises(me.EnvelopeError, match="never nested"):
        me.decode(nested)
    with pytest.raises(me.EnvelopeError, match="not valid"):
        me.wrap(nested)
    with pytest.raises(me.EnvelopeError, match="not valid"):
        me.wrap(text({"schema_version": ENVELOPE, "payload": 1}))


@pytest.mark.parametrize("name", ["trace_id", "Result", "errors ", "status", ""])
def test_unknown_top_level_fields_are_invalid(name: str) -> None:
    """S000-46: an envelope with a member that v0.1 does not have is refused, naming it."""
    strange = mended("000-legacy-json", **{name: 1})
    assert errors(strange) == [f"/{name}"]
    with pytest.raises(me.EnvelopeError):
        me.decode(strange)


@pytest.mark.parametrize("version", ["mcp.envelope.v0.2", "mcp.envelope.v1.0", "mcp.envelope.v1"])
def test_another_version_is_not_read_as_this_one(version: str) -> None:
    """S000-47, S000-48: a later envelope may have more fields; it is refused by its version.

    ``wrap`` takes it for a legacy payload like any other.
    """
    later = mended("000-legacy-json", schema_version=version, trace_id="t")
    assert errors(later) == ["/schema_version"]
    with pytest.raises(me.EnvelopeError, match=f"{version} is not supported") as caught:
        me.decode(later)
    assert caught.value.code == "UNSUPPORTED_VERSION"
    assert result_of(me.wrap(later)).raw == later


def test_within_result_anything_goes() -> None:
    """S000-49: unknown members, other versions and deep nesting are fine inside ``result``."""
    inside = {"status": 1, "schema_version": "mcp.envelope.v0.2", "errors": {"a": [[[{}]]]}}
    assert errors(mended("000-legacy-json", result=inside)) == []
    assert errors(mended("000-legacy-json", result={"result": {"schema_version": ENVELOPE}})) == []


# -- 9 and 10: examples and schemas ------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "name"),
    [(b'{ "ok": true, "count": 3 }', "000-legacy-json"), (b'"done"', "000-legacy-text")],
)
def test_the_examples_of_wrapping(given: bytes, name: str) -> None:
    """S000-50, S000-51: the seed's inputs give the seed's envelopes."""
    assert me.parse(me.wrap(given)) == envelope(name)


def test_the_example_of_pass_through() -> None:
    """S000-52: a tool that answers with an envelope, provenance and all, is returned unchanged."""
    already = with_record(outputs=[{**ARTIFACT, "digest": DIGEST}])
    assert me.wrap(already) == already


@pytest.mark.parametrize(
    ("file", "part"),
    [
        ("mcp.envelope.schema.v0.1.json", "response"),
        ("mcp.request.schema.v0.1.json", "request"),
        ("prov.record.schema.v0.1.json", "record"),
        ("artifact.ref.schema.v0.1.json", "artifact_ref"),
    ],
)
def test_the_schemas_have_the_names_that_the_seed_gives(file: str, part: str) -> None:
    """S000-53, S000-54, S000-55, S000-56: four schemas, published under these names."""
    dialect = DIALECTS["provenance/0.1"]
    assert dialect.parts[part] == file
    schema = dialect.schemas()[file].value
    assert schema["$id"] == f"urn:mcp-envelope:provenance/0.1:{file}"
    assert schema["additionalProperties"] is False
