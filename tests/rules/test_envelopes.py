"""Every complete envelope of the seeds: valid, recognised, read, written again, converted."""

from __future__ import annotations

from typing import Final

import pytest
from tests.rules.seeds import ENVELOPES, FOLDER, TARGETS, cli, envelope, missing, raw, warnings

import mcp_envelope as me
from mcp_envelope.dialects import recognise

SHORT_KIND: Final = {"/kind": "mcpx/0.1 short-kind"}
WARNED: Final = {
    "003-ambiguous-response": SHORT_KIND,
    "003-option-2": SHORT_KIND,
    "003-option-3": SHORT_KIND,
}
each = pytest.mark.parametrize("name", ENVELOPES)

# What a conversion loses of the source, and what it has to fill in in the result. Where a dialect
# is not named, the conversion has no meaning and is refused.
_TIER: Final = "/tier /tool_version /capabilities /upgrade_hints"
_UNNAMED: Final = {  # an envelope of seed 000 that says neither who nor what nor when
    "mcpx/0.1": ("", "/id /from /correlation_id /kind /payload/id"),
    "tiered/1.0": ("", f"/tool_id /request_id /duration_ms {_TIER}"),
    "tool/1.0": ("", "/id /version /timestamp"),
    "jsonrpc/2.0": ("", "/id /result/tool /result/input"),
    "mcp": ("", "/id"),
}
_NULL: Final = {  # the same with `provenance: null`, for which tiered/1.0 has no place
    **_UNNAMED,
    "tiered/1.0": ("/provenance", f"/tool_id /request_id /duration_ms {_TIER}"),
}
_TOPIC: Final = "/correlation_id /from /id /payload/id"
_NAMED: Final = {  # a response on a topic whose kind says which tool it is from
    "provenance/0.1": ("", ""),
    "tiered/1.0": (_TOPIC, f"/duration_ms {_TIER}"),
    "tool/1.0": ("", "/version /timestamp"),
    "jsonrpc/2.0": ("", "/result/input"),
    "mcp": ("", ""),
}
_SHORT: Final = {  # one whose kind does not
    **_NAMED,
    "tiered/1.0": (f"{_TOPIC} /kind", f"/tool_id /duration_ms {_TIER}"),
    "jsonrpc/2.0": ("", "/result/tool /result/input"),
}
_NO_TOOL: Final = {"provenance/0.1": ("", ""), "jsonrpc/2.0": ("", ""), "mcp": ("", "")}
EXACT: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "000-adopt-json": _NULL,
    "000-adopt-text": _NULL,
    "000-adopt-provenance": {
        **_NULL,
        "mcpx/0.1": ("", "/id /from /correlation_id /payload/id"),
        "tiered/1.0": ("/provenance", f"/request_id /duration_ms {_TIER}"),
        "jsonrpc/2.0": ("", "/id /result/input"),
    },
    "000-failure": {
        "mcpx/0.1": _UNNAMED["mcpx/0.1"],
        "tiered/1.0": _UNNAMED["tiered/1.0"],
        "tool/1.0": ("", "/id /version /timestamp /status/http"),
        "jsonrpc/2.0": ("", "/id"),
        "mcp": ("", "/id"),
    },
    "000-legacy-json": _UNNAMED,
    "000-legacy-text": _UNNAMED,
    "002-success": {
        "provenance/0.1": ("", ""),
        "mcpx/0.1": ("", "/id /from /correlation_id"),
        "tool/1.0": ("", "/version /timestamp"),
        "jsonrpc/2.0": ("", "/result/input"),
        "mcp": ("", ""),
    },
    "002-error": {
        "provenance/0.1": ("", ""),
        "mcpx/0.1": ("", "/id /from /correlation_id"),
        "tool/1.0": ("", "/version /timestamp"),
        "jsonrpc/2.0": ("", ""),
        "mcp": ("", ""),
    },
    "003-ambiguous-response": _SHORT,
    "003-option-1": _NAMED,
    "003-option-3": _SHORT,
    "003-tool-response": {**_NAMED, "tiered/1.0": (f"{_TOPIC} /to", f"/duration_ms {_TIER}")},
    "003-resource-response": _NO_TOOL,
    "003-prompt-response": _NO_TOOL,
    "004-request": {
        "provenance/0.1": ("/auth", "/artifacts"),
        "mcpx/0.1": ("/auth", "/id /from"),
        "jsonrpc/2.0": ("/auth", ""),
        "mcp": ("/auth", ""),
    },
    "004-response": {
        "provenance/0.1": ("", ""),
        "mcpx/0.1": ("", "/id /from /correlation_id"),
        "tiered/1.0": ("/metadata/cached /status/http /status/message /timestamp /version", _TIER),
        "jsonrpc/2.0": ("", "/result/input"),
        "mcp": ("", ""),
    },
}
HELD: Final = [(name, to) for name in EXACT for to in (ENVELOPES[name][0], *EXACT[name])]
REFUSED: Final = [(name, to) for name in EXACT for to in TARGETS if (name, to) not in HELD]
# Plain JSON-RPC that both dialects allow is recognised as either.
ALIKE: Final = {"mcp": {"mcp", "jsonrpc/2.0"}, "jsonrpc/2.0": {"mcp", "jsonrpc/2.0"}}


def test_each_envelope_has_its_file() -> None:
    """The files in tests/vectors/seeds are those of which the tests here are about."""
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == sorted(ENVELOPES)


@each
def test_it_is_valid(name: str) -> None:
    """The examples hold, with warnings only for kinds in the short form.

    S000-03, S000-05, S000-12, S000-30, S000-50, S000-51, S002-26, S002-27, S003-08, S003-09,
    S003-11, S003-13, S003-16, S003-18, S003-19, S004-19, S004-20.
    """
    found = me.validate(raw(name))
    assert [problem for problem in found if problem.severity == "error"] == []
    assert warnings(raw(name)) == WARNED.get(name, {})


@each
def test_it_is_recognised(name: str) -> None:
    """Dialect and part are told from the document alone."""
    dialect, part = recognise(envelope(name))
    assert (dialect.id, part) == ENVELOPES[name][:2]


@each
def test_it_decodes_to_the_right_message(name: str) -> None:
    """A request becomes a Request, an answer a Success or a Failure."""
    message = me.decode(raw(name))
    assert type(message) is ENVELOPES[name][2]
    assert message.origin is not None
    assert message.origin.dialect == ENVELOPES[name][0]


@each
def test_it_encodes_to_an_equal_value(name: str) -> None:
    """What was decoded encodes to the same JSON value, and decodes to the same message again."""
    message = me.decode(raw(name))
    again = me.encode(message, ENVELOPES[name][0])
    assert me.parse(again) == envelope(name)
    assert me.decode(again) == message


@pytest.mark.parametrize(("name", "to"), HELD)
def test_losses_and_fillings_are_exactly_these(name: str, to: str) -> None:
    """A conversion lists what it could not carry and what it made up: no more and no less."""
    lost, filled = EXACT[name].get(to, ("", ""))
    converted = me.convert(raw(name), to)
    assert sorted(converted.lost) == sorted(lost.split())
    assert sorted(converted.filled) == sorted(filled.split())
    assert (converted.source, converted.target) == (ENVELOPES[name][0], to)


@pytest.mark.parametrize(("name", "to"), HELD)
def test_what_is_listed_can_be_found(name: str, to: str) -> None:
    """Lost pointers lead into the source, filled ones into the result, which is valid."""
    converted = me.convert(raw(name), to)
    result = me.parse(converted.data)
    assert [p for p in converted.lost if envelope(name).at(p) is None] == []
    assert [p for p in converted.filled if result.at(p) is None] == []
    assert [p for p in me.validate(converted.data, to) if p.severity == "error"] == []
    assert recognise(result)[0].id in ALIKE.get(to, {to})


@pytest.mark.parametrize(("name", "to"), HELD)
def test_there_and_back_loses_at_most_what_was_listed(name: str, to: str) -> None:
    """What is neither equal after the way back nor listed as lost was lost in silence."""
    there = me.convert(raw(name), to)
    back = me.convert(there.data, ENVELOPES[name][0], from_=to)
    after = me.parse(back.data)
    assert missing(envelope(name), after, (*there.lost, *back.lost)) == []
    if not there.lost and not back.lost and to != "tiered/1.0":
        assert after == envelope(name)


@pytest.mark.parametrize(("name", "to"), HELD)
def test_conversions_repeat_themselves(name: str, to: str) -> None:
    """Placeholders depend on the source alone: the same conversion gives the same bytes."""
    assert me.convert(raw(name), to) == me.convert(raw(name), to)


@pytest.mark.parametrize(("name", "to"), HELD)
def test_strict_is_exact_or_refused(name: str, to: str) -> None:
    """With strict, anything that would be listed is refused, and the error lists it."""
    converted = me.convert(raw(name), to)
    if not converted.lost and not converted.filled:
        assert me.convert(raw(name), to, strict=True) == converted
        return
    with pytest.raises(me.EnvelopeError) as caught:
        me.convert(raw(name), to, strict=True)
    assert caught.value.lost == converted.lost  # type: ignore[attr-defined]
    assert caught.value.filled == converted.filled  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "to"), REFUSED)
def test_conversions_without_meaning_are_refused(name: str, to: str) -> None:
    """A dialect that has no words for a message says so."""
    with pytest.raises(me.EnvelopeError, match=f"{to} has no way to say"):
        me.convert(raw(name), to)


def test_option_2_goes_wherever_a_response_goes() -> None:
    """The response of seed 003 that repeats its request converts to all dialects, and back."""
    for to in TARGETS:
        there = me.convert(raw("003-option-2"), to)
        assert isinstance(me.decode(there.data, to), me.Success)
        back = me.convert(there.data, "mcpx/0.1", from_=to)
        listed = (*there.lost, *back.lost)
        assert missing(envelope("003-option-2"), me.parse(back.data), listed) == []


def test_every_pair_is_accounted_for() -> None:
    """Each envelope is tried against each dialect; option 2 of seed 003 has its own test."""
    every = {(name, to) for name in ENVELOPES for to in TARGETS if name != "003-option-2"}
    assert {*HELD, *REFUSED} == every


# -- what arrives ------------------------------------------------------------------------------


def test_a_tool_request_becomes_an_mcp_call() -> None:
    """The request of seed 004 as plain MCP: name, arguments and id, and no credentials."""
    converted = me.convert(raw("004-request"), "mcp")
    call = me.parse(converted.data)
    assert call["method"] == "tools/call"
    assert call["id"] == envelope("004-request")["id"]
    assert call["params"]["name"] == "research.search"
    assert call["params"]["arguments"].raw == envelope("004-request")["payload"].raw
    assert b"mcp-dev-token" not in converted.data


def test_a_tiered_answer_becomes_a_tool_response() -> None:
    """The success of seed 002 as tool/1.0: data, tool, id and duration in their places."""
    source, result = envelope("002-success"), me.convert(raw("002-success"), "tool/1.0").data
    response = me.parse(result)
    assert response["status"]["code"] == "success"
    assert response["output"].raw == source["data"].raw
    assert response["id"] == source["request_id"]
    assert response["metadata"]["tool"] == source["tool_id"]
    assert response["duration_ms"] == 27


def test_a_tiered_error_becomes_an_mcp_result() -> None:
    """The error of seed 002 as plain MCP: a tool that failed, its text for the model to read."""
    result = me.parse(me.convert(raw("002-error"), "mcp").data)["result"]
    assert result["isError"] == True  # noqa: E712  (a document, not a bool)
    assert result["content"] == [{"type": "text", "text": "File not found: /missing.py."}]


def test_a_failure_keeps_code_text_and_details() -> None:
    """The failure of seed 000 as tool/1.0: canonical code, message and exit code."""
    response = me.parse(me.convert(raw("000-failure"), "tool/1.0").data)
    assert response["status"]["code"] == "error"
    assert response["errors"] == [
        {
            "message": "Tool execution failed with exit code 2.",
            "code": "EXECUTION_FAILED",
            "detail": {"exit_code": 2},
        }
    ]


def test_a_topic_response_becomes_plain_mcp() -> None:
    """The response of seed 003 as plain MCP is its payload, with the envelope's facts in _meta."""
    response = me.parse(me.convert(raw("003-tool-response"), "mcp").data)
    payload = envelope("003-tool-response")["payload"]
    assert response["id"] == 42
    assert response["result"].without("_meta") == payload["result"]
    assert response["jsonrpc"] == payload["jsonrpc"]


def test_options_take_the_place_of_placeholders() -> None:
    """What an option gives is used, and listed as filled in all the same."""
    converted = me.convert(
        raw("000-legacy-text"),
        "mcpx/0.1",
        from_peer="files",
        correlation_id="env-call-9",
        tool="read_file",
    )
    result = me.parse(converted.data)
    assert result["from"] == "files"
    assert result["correlation_id"] == "env-call-9"
    assert result["kind"] == "mcp/response:tools/call:read_file"
    assert {"/from", "/correlation_id", "/kind"} <= set(converted.filled)


def test_an_error_may_have_no_id() -> None:
    """The failure of seed 000 has no id: in JSON-RPC it is null, or what the option gives."""
    assert me.parse(me.convert(raw("000-failure"), "jsonrpc/2.0").data)["id"].value is None
    chosen = me.convert(raw("000-failure"), "jsonrpc/2.0", id="call-7")
    assert me.parse(chosen.data)["id"] == "call-7"
    assert chosen.filled == ("/id",)


# -- from the command line ---------------------------------------------------------------------


def test_the_command_line_validates() -> None:
    """``validate --json`` says what an envelope was recognised as, and lists warnings apart."""
    done = cli("validate", str(FOLDER / "003-option-3.json"), "--json")
    assert done.returncode == 0, done.stderr
    said = me.parse(done.stdout).value
    assert (said["valid"], said["dialect"], said["part"]) == (True, "mcpx/0.1", "envelope")
    assert said["problems"] == []
    assert [warning["pointer"] for warning in said["warnings"]] == ["/kind"]


@pytest.mark.parametrize(("name", "to"), [("004-request", "mcp"), ("002-success", "jsonrpc/2.0")])
def test_the_command_line_converts(name: str, to: str) -> None:
    """``convert --json`` gives the same document and the same lists as ``me.convert``."""
    done = cli("convert", str(FOLDER / f"{name}.json"), "--to", to, "--json")
    assert done.returncode == 0, done.stderr
    said, expected = me.parse(done.stdout), me.convert(raw(name), to)
    assert said["data"] == me.parse(expected.data)
    assert said["lost"] == list(expected.lost)
    assert said["filled"] == list(expected.filled)
    assert said["from"] == ENVELOPES[name][0]
    assert said["to"] == to


def test_the_command_line_refuses() -> None:
    """A conversion without meaning exits with 1 and gives the reason, as does a strict one."""
    done = cli("convert", "-", "--to", "tiered/1.0", given=raw("004-request"))
    assert done.returncode == 1
    assert b"tiered/1.0 has no way to say a request" in done.stderr
    assert done.stdout == b""
