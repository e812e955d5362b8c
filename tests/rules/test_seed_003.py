"""Seed 003, kinds that say what a response is about: rule by rule (docs/rules.md)."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from tests.rules.seeds import envelope, errors, mended, raw, text, warnings

import mcp_envelope as me

DIALECT: Final = "mcpx/0.1"
RESPONSES: Final = ["003-tool-response", "003-resource-response", "003-prompt-response"]
SHORT: Final = ["003-ambiguous-response", "003-option-2", "003-option-3"]
# The four lines of the format specification: methods, and what they may name.
FORMS: Final[dict[str, dict[str, Any]]] = {
    "tools/call": {"name": "read_file", "arguments": {}},
    "tools/list": {},
    "resources/read": {"uri": "file:///a:b"},
    "resources/list": {},
    "resources/subscribe": {"uri": "config.json"},
    "prompts/get": {"name": "debug_prompt"},
    "prompts/list": {},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "debug_prompt"},
        "argument": {"name": "lang", "value": "py"},
    },
}
CONTEXTS: Final = {
    "tools/call": "read_file",
    "resources/read": "file:///a:b",
    "resources/subscribe": "config.json",
    "prompts/get": "debug_prompt",
    "completion/complete": "ref/prompt:debug_prompt",
}
SEEDS_OWN: Final = [
    "mcp/request:tools/call:read_file",
    "mcp/request:tools/call:write_*",
    "mcp/proposal:tools/call:delete_file",
    "mcp/response:*",
]


def allowed(pattern: str, *kinds: str) -> list[bool]:
    """What a single capability says to each kind."""
    capabilities = me.Capabilities([pattern])
    return [capabilities.allows(me.Kind.parse(kind)) for kind in kinds]


def proposal(method: str, params: dict[str, Any], **members: object) -> bytes:
    """A proposal on a topic, in the long form."""
    context = CONTEXTS.get(method)
    value = {
        "protocol": "mcpx/v0.1", "id": "env-1", "from": "agent",
        "kind": f"mcp/proposal:{method}" + (f":{context}" if context else ""),
        "payload": {"method": method, "params": params}, **members,
    }  # fmt: skip
    return text(value)


def call(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """A plain MCP request."""
    return {"jsonrpc": "2.0", "id": 42, "method": method, "params": params}


# -- the problem -------------------------------------------------------------------------------


def test_the_short_form_is_known() -> None:
    """S003-01: ``mcp/response:METHOD`` is a kind with a method and without a context."""
    kind = me.Kind.parse("mcp/response:tools/call")
    assert (kind.type, kind.method, kind.context) == ("response", "tools/call", None)
    assert kind.is_short


def test_a_short_response_leaves_its_tool_unknown() -> None:
    """S003-02: nothing is guessed: which tool answered is not said, and not made up."""
    message = me.decode(raw("003-ambiguous-response"))
    assert message.method == "tools/call"
    assert message.target is None
    assert me.convert(raw("003-ambiguous-response"), "jsonrpc/2.0").filled == (
        "/result/tool",
        "/result/input",
    )


@pytest.mark.parametrize(
    ("name", "method", "target"),
    [
        ("003-tool-response", "tools/call", "read_file"),
        ("003-resource-response", "resources/read", "config.json"),
        ("003-prompt-response", "prompts/get", "debug_prompt"),
    ],
)
def test_a_response_can_be_understood_alone(name: str, method: str, target: str) -> None:
    """S003-03, S003-04, S003-05, S003-07, S003-43: without its request, from the kind alone.

    Whoever joins late, only listens, or reads a log years after learns what was called.
    """
    message = me.decode(raw(name))
    assert isinstance(message, me.Success)
    assert (message.method, message.target) == (method, target)


def test_responses_are_told_apart_by_correlation() -> None:
    """S003-06: of many answers under way each says which message it answers."""
    ids = [
        me.decode(mended("003-tool-response", correlation_id=f"env-call-{n}")).correlation_id
        for n in range(3)
    ]
    assert ids == ["env-call-0", "env-call-1", "env-call-2"]


# -- the options -------------------------------------------------------------------------------


def test_filtering_needs_the_kind_alone() -> None:
    """S003-10, S003-39, S003-40, S003-45: a decision looks at the text of the kind only."""
    capabilities = me.Capabilities(["mcp/response:tools/call:read_*"])
    assert capabilities.allows("mcp/response:tools/call:read_file")
    assert not capabilities.allows("mcp/response:tools/call:write_file")
    chosen = [name for name in RESPONSES if capabilities.allows(envelope(name)["kind"].value)]
    assert chosen == ["003-tool-response"]


def test_request_context_in_a_payload_is_read() -> None:
    """S003-11: the example of option 2 is a response, and says which tool answered what."""
    message = me.decode(raw("003-option-2"))
    assert isinstance(message, me.Success)
    assert message.target == "read_file"
    assert message.payload == "File contents here"


@pytest.mark.parametrize("source", ["002-success", "004-response", "000-legacy-json"])
def test_no_request_context_is_written_into_a_payload(source: str) -> None:
    """S003-12: option 2 was not adopted: a response's payload has no method and no params."""
    payload = me.parse(me.convert(raw(source), DIALECT).data)["payload"]
    assert set(payload.value) == {"jsonrpc", "id", "result"}


@pytest.mark.parametrize("name", [*RESPONSES, *SHORT])
def test_a_response_must_correlate(name: str) -> None:
    """S003-14: without ``correlation_id`` a response has lost its context, and is refused."""
    assert errors(raw(name)) == []
    assert errors(mended(name, correlation_id=...)) == ["/correlation_id"]
    assert errors(mended(name, correlation_id="")) == ["/correlation_id"]


# -- the recommendation ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("002-success", "mcp/response:tools/call:security_scan"),
        ("002-error", "mcp/response:tools/call:extract_code"),
        ("004-request", "mcp/request:tools/call:research.search"),
        ("004-response", "mcp/response:tools/call:search/tavily"),
    ],
)
def test_what_we_write_has_the_long_kind(source: str, kind: str) -> None:
    """S003-15, S003-17, S003-33, S003-34, S003-50: requests and responses name what they call."""
    written = me.convert(raw(source), DIALECT)
    assert me.parse(written.data)["kind"] == kind
    assert me.validate(written.data) == []
    assert "/kind" not in written.filled


@pytest.mark.parametrize("name", RESPONSES)
def test_the_payload_is_the_mcp_message_unchanged(name: str) -> None:
    """S003-20, S003-32, S003-42, S003-53: whatever we do to the envelope, not to the payload."""
    message = me.decode(raw(name))
    assert me.parse(me.encode(message, DIALECT))["payload"] == envelope(name)["payload"]
    response = text({"jsonrpc": "2.0", "id": 7, "result": {"structuredContent": {"a": [1]}}})
    wrapped = me.convert(response, DIALECT, tool="t", from_peer="p", correlation_id="c")
    payload = me.parse(wrapped.data)["payload"].value
    assert payload.pop("result")["structuredContent"] == {"a": [1]}
    assert payload == {"jsonrpc": "2.0", "id": 7}


def test_number_text_in_a_payload_survives() -> None:
    """S003-20, S003-32: also where a number could be written in another way."""
    numbers = b"[1.0, 1e2, -0, 10000000000000000000001]"
    broadcast = raw("003-tool-response").replace(b'"content"', b'"n": %s, "content"' % numbers)
    assert numbers in me.encode(me.decode(broadcast), DIALECT)


@pytest.mark.parametrize("type_", ["request", "response", "proposal"])
@pytest.mark.parametrize("method", FORMS)
def test_kinds_have_the_specified_form(type_: str, method: str) -> None:
    """S003-21, S003-22, S003-23, S003-24: four families, three types, a name where there is one.

    A CONTEXT on a list parses, as the form has it; with a payload beside it, it is refused.
    """
    short = me.Kind.parse(f"mcp/{type_}:{method}")
    assert (short.type, short.method, short.context) == (type_, method, None)
    context = CONTEXTS.get(method)
    long = me.Kind.parse(f"mcp/{type_}:{method}:{context or 'anything'}")
    assert (long.type, long.method, long.context) == (type_, method, context or "anything")
    assert short.is_short == (context is not None)
    payload = call(method, FORMS[method])
    if type_ == "request":
        assert (long.mismatch(payload) is None) == (context is not None)


@pytest.mark.parametrize(
    ("pattern", "granted", "refused"),
    [
        (
            "mcp/request:tools/call:read_file",
            ["mcp/request:tools/call:read_file"],
            ["mcp/request:tools/call:read_files", "mcp/proposal:tools/call:read_file"],
        ),
        (
            "mcp/request:tools/call:write_*",
            ["mcp/request:tools/call:write_file", "mcp/request:tools/call:write_"],
            ["mcp/request:tools/call:read_file", "mcp/request:tools/call:rewrite_file"],
        ),
        (
            "mcp/proposal:tools/call:delete_file",
            ["mcp/proposal:tools/call:delete_file"],
            ["mcp/request:tools/call:delete_file", "mcp/response:tools/call:delete_file"],
        ),
        (
            "mcp/response:*",
            ["mcp/response:tools/call:read_file", "mcp/response:prompts/list"],
            ["mcp/request:tools/call:read_file", "mcp/proposal:tools/list"],
        ),
    ],
)
def test_capabilities_of_the_seed(pattern: str, granted: list[str], refused: list[str]) -> None:
    """S003-25, S003-26, S003-27, S003-28: the four lines of the seed grant this and not that."""
    assert all(allowed(pattern, *granted))
    assert not any(allowed(pattern, *refused))
    together = me.Capabilities(SEEDS_OWN)
    assert all(together.allows(kind) for kind in granted)
    assert not together.allows("mcp/request:tools/call:delete_file")


# -- compatibility and guidelines --------------------------------------------------------------


@pytest.mark.parametrize("name", SHORT)
def test_the_old_format_stays_valid(name: str) -> None:
    """S003-29: a short kind is no error, decodes, and comes out as it went in."""
    assert errors(raw(name)) == []
    assert me.parse(me.encode(me.decode(raw(name)), DIALECT))["kind"] == "mcp/response:tools/call"


@pytest.mark.parametrize("name", SHORT)
def test_the_short_form_is_warned_of(name: str) -> None:
    """S003-30, S003-52: the long form is recommended, so the short one gets a warning."""
    assert warnings(raw(name)) == {"/kind": "mcpx/0.1 short-kind"}
    long = mended(name, kind="mcp/response:tools/call:read_file")
    assert me.validate(long) == []


def test_wildcards_bridge_old_and_new() -> None:
    """S003-31: who grants with a wildcard grants both forms."""
    both = ["mcp/response:tools/call", "mcp/response:tools/call:read_file"]
    for pattern in ("mcp/response:*", "mcp/response:tools/*", "mcp/*", "mcp/response:tools/call:*"):
        assert allowed(pattern, *both) == [True, True], pattern


@pytest.mark.parametrize("to", ["mcp", "jsonrpc/2.0", "tool/1.0", "provenance/0.1"])
def test_correlation_is_kept(to: str) -> None:
    """S003-35: which message a response answers survives the way through other dialects."""
    there = me.convert(raw("003-tool-response"), to)
    back = me.parse(me.convert(there.data, DIALECT, from_=to).data)
    assert back["correlation_id"] == "env-call-1"
    assert back == envelope("003-tool-response")


@pytest.mark.parametrize(
    ("pattern", "kind", "expected"),
    [
        ("mcp/request:tools/call:*", "mcp/request:tools/call:read_file", True),
        ("mcp/request:tools/call:*", "mcp/request:tools/call", True),
        ("mcp/request:tools/call:*", "mcp/request:tools/list", False),
        ("mcp/request:tools/call:read_*", "mcp/request:tools/call:read_file", True),
        ("mcp/request:tools/call:read_*", "mcp/request:tools/call:unread", False),
        ("mcp/request:tools/call:read_*", "mcp/request:tools/call", False),
        ("mcp/request:tools/call", "mcp/request:tools/call", True),
        ("mcp/request:tools/call", "mcp/request:tools/call:read_file", True),
        ("mcp/request:tools/call", "mcp/response:tools/call:read_file", False),
        ("mcp/request:resources/read:config.json", "mcp/request:resources/read:config.json", True),
        ("mcp/request:resources/read:config.json", "mcp/request:resources/read:secret", False),
    ],
)
def test_matching_capabilities(pattern: str, kind: str, expected: bool) -> None:
    """S003-36, S003-37, S003-38, S003-44, S003-51, S003-54: any call, some calls, one call."""
    assert allowed(pattern, kind) == [expected]


def test_capabilities_keep_no_state() -> None:
    """S003-41: what was asked before changes no answer, and matching alters nothing."""
    capabilities = me.Capabilities(SEEDS_OWN)
    before = capabilities.patterns
    kinds = ["mcp/request:tools/call:read_file", "mcp/request:tools/call:delete_file"]
    answers = [[capabilities.allows(kind) for kind in kinds] for _ in range(3)]
    assert answers == [[True, False]] * 3
    assert capabilities.patterns == before


# -- consequences, migration, rationale --------------------------------------------------------


def test_the_envelope_alone_says_what_it_is_about() -> None:
    """S003-46, S003-56, S003-57: routing reads the envelope, content is the payload's.

    Two responses with one payload differ by their kinds; the payload names no tool.
    """
    payload = envelope("003-tool-response")["payload"].value
    other = mended("003-tool-response", kind="mcp/response:tools/call:cat", payload=payload)
    messages = [me.decode(raw("003-tool-response")), me.decode(other)]
    assert [message.target for message in messages] == ["read_file", "cat"]
    assert b"read_file" not in envelope("003-tool-response")["payload"].raw


def test_kinds_are_taken_apart() -> None:
    """S003-47, S003-49: the extended form is read into its three parts, and written again."""
    for name in RESPONSES:
        kind = me.Kind.parse(envelope(name)["kind"].value)
        assert None not in (kind.type, kind.method, kind.context)
        assert str(kind) == envelope(name)["kind"].value


def test_the_first_two_colons_divide() -> None:
    """S003-48: the delimiter is ``:``; a context may hold more of them."""
    kind = me.Kind.parse("mcp/request:resources/read:file:///a:b")
    assert (kind.method, kind.context) == ("resources/read", "file:///a:b")


@pytest.mark.parametrize("method", FORMS)
def test_a_kind_describes_its_operation_completely(method: str) -> None:
    """S003-50, S003-55: the kind is computed from the message, and nothing else agrees with it."""
    context = CONTEXTS.get(method)
    kind = me.Kind.of_payload(call(method, FORMS[method]))
    assert str(kind) == f"mcp/request:{method}" + (f":{context}" if context else "")
    suggested = proposal(method, FORMS[method])
    assert me.validate(suggested) == []
    wrong = proposal(method, FORMS[method], kind="mcp/proposal:tools/call:rm")
    assert errors(wrong) != []


def test_a_kind_that_contradicts_its_payload_is_refused() -> None:
    """S003-55: the kind says what is called; naming one tool and calling another is an error."""
    message = json.loads(me.convert(raw("004-request"), DIALECT).data)
    assert errors(text(message)) == []
    message["kind"] = "mcp/request:tools/call:harmless"
    assert errors(text(message)) == ["/kind"]
