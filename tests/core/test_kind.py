"""Kinds: read from text, computed from payloads, and held against them (contracts/mcpx.md)."""

from __future__ import annotations

import pickle
import time
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_envelope.core.errors import EnvelopeError, UsageError
from mcp_envelope.core.kind import Kind

Payload = dict[str, Any]

TYPES = ["request", "response", "proposal"]
# Method, payload's params, CONTEXT: the table of the contract, row by row.
TABLE: list[tuple[str, Payload, str | None]] = [
    ("tools/call", {"name": "read_file", "arguments": {}}, "read_file"),
    ("resources/read", {"uri": "file:///a:b"}, "file:///a:b"),
    ("resources/subscribe", {"uri": "config.json"}, "config.json"),
    ("resources/unsubscribe", {"uri": "mem://x?y#z"}, "mem://x?y#z"),
    ("prompts/get", {"name": "debug prompt"}, "debug prompt"),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}}, "ref/prompt:p"),
    (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "file:///{path}"}},
        "ref/resource:file:///{path}",
    ),
    ("tools/list", {"cursor": "x"}, None),
    ("resources/templates/list", {}, None),
    ("initialize", {"name": "not a context"}, None),
    ("notifications/resources/updated", {"uri": "file:///a"}, None),
    ("tasks/get", {"taskId": "t"}, None),
]
# What is wrong, a kind with that wrong, the rule that says so.
MALFORMED = [
    ("", "kind/empty-part"),
    (":tools/call", "kind/empty-part"),
    ("mcp/", "kind/unknown-type"),
    ("mcp", "kind/unknown-type"),
    ("mcp/*", "kind/unknown-type"),
    ("mcp/event:tools/call", "kind/unknown-type"),
    ("mcp/requests:tools/call", "kind/unknown-type"),
    ("mcpx/request:tools/call", "kind/unknown-type"),
    ("MCP/request:tools/call", "kind/unknown-type"),
    ("request:tools/call", "kind/unknown-type"),
    ("Chat", "kind/unknown-type"),
    ("system", "kind/unknown-type"),
    ("presence", "kind/unknown-type"),
    ("system/", "kind/unknown-type"),
    ("system/other", "kind/unknown-type"),
    ("mcp/request", "kind/no-method"),
    ("mcp/request:", "kind/empty-part"),
    ("mcp/request::x", "kind/empty-part"),
    ("mcp/request:tools/call:", "kind/empty-part"),
    ("mcp/request:/call", "kind/empty-segment"),
    ("mcp/request:tools/", "kind/empty-segment"),
    ("mcp/request:tools//call", "kind/empty-segment"),
    ("mcp/request:/", "kind/empty-segment"),
    ("mcp/request:t\u043e\u043els/call", "kind/non-ascii-method"),
    ("mcp/request:tools/c\u00e4ll", "kind/non-ascii-method"),
    ("mcp/request:tools/call\x00", "kind/unseen-character"),
    ("mcp/request:tools\t/call", "kind/unseen-character"),
    ("mcp/request:tools/call:a\nb", "kind/unseen-character"),
    ("mcp/request:tools/call:a\x7fb", "kind/unseen-character"),
    ("mcp/request:tools/call:a\x85b", "kind/unseen-character"),
    ("mcp/request:tools/call:a\u200bb", "kind/unseen-character"),
    ("mcp/request:tools/call:a\u202eb", "kind/unseen-character"),
    ("mcp/request:tools/call:a\ufeffb", "kind/unseen-character"),
    ("mcp/request:tools/call:a\u2028b", "kind/unseen-character"),
    ("mcp/request:tools/call:a\U000e0041b", "kind/unseen-character"),
    ("mcp/request:tools/call:a\ud800b", "kind/unseen-character"),
    (" mcp/request:tools/call", "kind/white-space"),
    ("mcp/request :tools/call", "kind/white-space"),
    ("chat ", "kind/white-space"),
    ("mcp/request: tools/call", "kind/white-space"),
    ("mcp/request:tools/call ", "kind/white-space"),
    ("mcp/request:tools /call", "kind/white-space"),
    ("mcp/request:tools/call: x", "kind/white-space"),
    ("mcp/request:tools/call:x ", "kind/white-space"),
    ("mcp/request:tools/call:x\u00a0", "kind/white-space"),
    ("mcp/request:tools/call:\u3000x", "kind/white-space"),
    ("chat:", "kind/stands-alone"),
    ("chat:x", "kind/stands-alone"),
    ("system/welcome:x", "kind/stands-alone"),
]


def refused(text: str) -> EnvelopeError:
    """The error that ``text`` gives when it is read as a kind."""
    with pytest.raises(EnvelopeError) as caught:
        Kind.parse(text)
    return caught.value


def read(text: str) -> Kind | EnvelopeError:
    """The kind that ``text`` is, or the error that it gives."""
    try:
        return Kind.parse(text)
    except EnvelopeError as error:
        return error


@pytest.mark.parametrize("name", TYPES)
def test_mcp_kinds_have_type_method_and_context(name: str) -> None:
    """A kind is `mcp/(request|response|proposal):METHOD[:CONTEXT]`."""
    kind = Kind.parse(f"mcp/{name}:tools/call:read_file")
    assert (kind.type, kind.method, kind.context) == (name, "tools/call", "read_file")
    assert Kind.parse(f"mcp/{name}:tools/list") == Kind(name, "tools/list", None)


@pytest.mark.parametrize("text", ["chat", "system/welcome", "system/presence", "system/error"])
def test_chat_and_system_kinds_stand_alone(text: str) -> None:
    """`chat` and `system/(welcome|presence|error)` are whole kinds, without METHOD or CONTEXT."""
    kind = Kind.parse(text)
    assert kind == Kind(text)
    assert (kind.type, kind.method, kind.context) == (text, None, None)
    assert str(kind) == text
    assert not kind.is_short


def test_a_kind_splits_at_its_first_two_colons() -> None:
    """The kind splits at its first two colons: a CONTEXT may hold colons itself."""
    kind = Kind.parse("mcp/request:resources/read:file:///a:b")
    assert (kind.method, kind.context) == ("resources/read", "file:///a:b")
    assert Kind.parse("mcp/request:tools/call:::").context == "::"


def test_notifications_are_requests() -> None:
    """Notifications are `mcp/request:notifications/…`, of as many segments as they have."""
    kind = Kind.parse("mcp/request:notifications/tools/list_changed")
    assert (kind.method, kind.context) == ("notifications/tools/list_changed", None)
    assert kind == Kind.of_payload({"jsonrpc": "2.0", "method": kind.method})


@pytest.mark.parametrize(("text", "rule"), MALFORMED)
def test_malformed_kinds_are_refused_with_their_rule(text: str, rule: str) -> None:
    """Malformed: empty parts or segments, unknown types, non-ASCII METHOD, unseen, white space."""
    error = refused(text)
    (problem,) = error.problems
    assert problem.rule == rule
    assert problem.hint
    assert error.code == "INVALID_ENVELOPE"
    assert str(error).isprintable()


def test_errors_suggest_the_fix() -> None:
    """A wrong TYPE that can be guessed is answered with the right one."""
    assert "write mcp/request" in str(refused("request:tools/call"))
    assert "write mcp/request" in str(refused("MCP/Request:tools/call"))
    assert "write chat" in str(refused("CHAT"))
    assert "U+200B" in str(refused("mcp/request:tools/call:a\u200bb"))


def test_errors_do_not_repeat_a_huge_kind() -> None:
    """What is quoted of a hostile kind is short and escaped."""
    assert len(str(refused("mcp/request:tools/call:\x1b" + "x" * 1_000_000))) < 500


@pytest.mark.parametrize(
    "context", ["café", "cafe\u0301", "名前", "a b", "*", "read_*", "😀", "\u0378"]
)
def test_a_context_may_be_any_visible_text(context: str) -> None:
    """A non-ASCII CONTEXT stands as it is, not normalised; a `*` in a kind is a plain character."""
    assert Kind.parse(f"mcp/request:tools/call:{context}").context == context


def test_kinds_are_frozen_values() -> None:
    """A kind compares and hashes by its parts, cannot be changed, and can be pickled."""
    kind = Kind("request", "tools/call", "x")
    assert {kind: 1}[Kind.parse("mcp/request:tools/call:x")] == 1
    with pytest.raises(FrozenInstanceError):
        kind.context = "y"  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(kind)) == kind
    assert not hasattr(kind, "__dict__")


@pytest.mark.parametrize(
    "parts",
    [
        ("request",),
        ("request", "a:b"),
        ("request", "a", ""),
        ("chat", "a"),
        ("chat", None, "a"),
        ("*", "a"),
    ],
)
def test_a_kind_cannot_be_built_malformed(parts: tuple[str, ...]) -> None:
    """Building a kind from parts is checked as reading one is."""
    with pytest.raises(EnvelopeError):
        Kind(*parts)


def test_a_method_holds_no_colon() -> None:
    """A METHOD with a colon would read back as another kind, so a rule of its own refuses it."""
    with pytest.raises(EnvelopeError) as caught:
        Kind("request", "tools/call:read_file")
    assert caught.value.problems[0].rule == "kind/colon-in-method"


@pytest.mark.parametrize(("method", "params", "context"), TABLE)
def test_short_forms_are_those_of_methods_with_a_context(
    method: str, params: Payload, context: str | None
) -> None:
    """The short form without CONTEXT stays valid for what has one, and is known as short."""
    assert Kind("request", method).is_short is (context is not None)
    assert not Kind("request", method, "x").is_short
    assert params is not None


@pytest.mark.parametrize(("method", "params", "context"), TABLE)
def test_the_kind_is_computed_by_the_table(
    method: str, params: Payload, context: str | None
) -> None:
    """METHOD is the payload's method and CONTEXT what the table's column says, in the long form."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    before = repr(message)
    assert Kind.of_payload(message) == Kind("request", method, context)
    proposal = {"method": method, "params": params}
    assert Kind.of_payload(proposal, type="proposal") == Kind("proposal", method, context)
    assert repr(message) == before


def test_a_response_takes_its_kind_from_its_request() -> None:
    """A response takes its kind from the request it answers, whatever its payload holds."""
    request = Kind.parse("mcp/request:tools/call:read_file")
    answer = {"jsonrpc": "2.0", "id": 1, "result": {}}
    kind = Kind.of_payload(answer, type="response", request=request)
    assert str(kind) == "mcp/response:tools/call:read_file"


@pytest.mark.parametrize("request_kind", [None, "chat", "mcp/response:tools/list"])
def test_a_response_without_its_request_cannot_be_computed(request_kind: str | None) -> None:
    """Computing a response's kind without a request's kind is the caller's mistake."""
    request = None if request_kind is None else Kind.parse(request_kind)
    with pytest.raises(UsageError, match="request="):
        Kind.of_payload({"result": {}}, type="response", request=request)


@pytest.mark.parametrize("name", ["chat", "system/welcome", "mcp/request", ""])
def test_only_mcp_kinds_are_computed(name: str) -> None:
    """Chat and system kinds are named and not computed."""
    with pytest.raises(UsageError, match=r"Kind\.parse"):
        Kind.of_payload({"text": "hello"}, type=name)


@pytest.mark.parametrize(
    ("payload", "pointer"),
    [
        ({}, "/method"),
        ({"method": None}, "/method"),
        ({"method": ""}, "/method"),
        ({"method": "a:b"}, "/method"),
        ({"method": "tools//call"}, "/method"),
        ({"method": "tööls/call"}, "/method"),
        ({"method": "tools/call"}, "/params"),
        ({"method": "tools/call", "params": ["read_file"]}, "/params"),
        ({"method": "tools/call", "params": {}}, "/params/name"),
        ({"method": "tools/call", "params": {"name": 7}}, "/params/name"),
        ({"method": "tools/call", "params": {"name": ""}}, "/params/name"),
        ({"method": "tools/call", "params": {"name": " x"}}, "/params/name"),
        ({"method": "tools/call", "params": {"name": "x\n"}}, "/params/name"),
        ({"method": "prompts/get", "params": {"name": "a\x00"}}, "/params/name"),
        ({"method": "resources/read", "params": {"name": "a"}}, "/params/uri"),
        ({"method": "resources/read", "params": {"uri": "a\u202eb"}}, "/params/uri"),
        ({"method": "completion/complete", "params": {}}, "/params/ref"),
        ({"method": "completion/complete", "params": {"ref": {}}}, "/params/ref/type"),
        (
            {"method": "completion/complete", "params": {"ref": {"type": "a:b", "name": "x"}}},
            "/params/ref/type",
        ),
        (
            {"method": "completion/complete", "params": {"ref": {"type": "ref/prompt"}}},
            "/params/ref/name",
        ),
        (
            {
                "method": "completion/complete",
                "params": {"ref": {"type": "ref/resource", "name": "x"}},
            },
            "/params/ref/uri",
        ),
        (
            {
                "method": "completion/complete",
                "params": {"ref": {"type": "ref/prompt", "name": " x"}},
            },
            "/params/ref/name",
        ),
        ({"method": "completion/complete", "params": {"ref": {"type": "ref/new"}}}, "/params/ref"),
        (
            {
                "method": "completion/complete",
                "params": {"ref": {"type": "ref/new", "name": "a", "uri": "b"}},
            },
            "/params/ref",
        ),
    ],
)
def test_what_cannot_stand_in_a_kind_is_not_computed(payload: Payload, pointer: str) -> None:
    """Names that are missing or cannot stand in a kind give an error with their pointer."""
    with pytest.raises(EnvelopeError) as caught:
        Kind.of_payload(payload)
    assert caught.value.pointer == pointer
    assert [problem.pointer for problem in caught.value.problems] == [pointer]


def test_a_new_type_of_reference_is_named_by_what_it_has() -> None:
    """`<ref.type>:<its name or uri>` holds for reference types that the table does not know."""
    params = {"ref": {"type": "ref/new", "uri": "x:y"}}
    kind = Kind.of_payload({"method": "completion/complete", "params": params})
    assert kind.context == "ref/new:x:y"


@pytest.mark.parametrize("name", ["request", "proposal"])
@pytest.mark.parametrize(("method", "params", "context"), TABLE)
def test_computed_kinds_pass_strict_checking(
    name: str, method: str, params: Payload, context: str | None
) -> None:
    """METHOD equals `payload.method` and CONTEXT what the payload names, long or short."""
    payload = {"method": method, "params": params}
    assert Kind(name, method, context).mismatch(payload) is None
    assert Kind(name, method).mismatch(payload) is None


@pytest.mark.parametrize(
    ("text", "payload", "reason"),
    [
        ("tools/call:a", {"method": "tools/call", "params": {"name": "b"}}, "'b'"),
        ("tools/call:a", {"method": "tools/call", "params": {"name": "A"}}, "'A'"),
        ("tools/call:a", {"method": "prompts/get", "params": {"name": "a"}}, "'prompts/get'"),
        ("tools/call", {"method": "tools/list"}, "'tools/list'"),
        ("tools/call", {}, "absent"),
        ("tools/call", {"method": ["tools/call"]}, "absent or no text"),
        ("tools/call:a", {"method": "tools/call"}, "/params"),
        ("tools/call:a", {"method": "tools/call", "params": {"name": 1}}, "/params/name"),
        ("tools/call:a", [], "no object"),
        ("tools/call:a", None, "no object"),
        ("tools/call", {"method": "tools/call", "result": {}}, "result"),
        ("tools/call", {"method": "tools/call", "error": {}}, "error"),
        ("completion/complete:ref/prompt:", {"method": "completion/complete"}, "/params"),
    ],
)
def test_strict_checking_says_what_disagrees(text: str, payload: object, reason: str) -> None:
    """A sender cannot name a tool it may call and call another."""
    for name in ("request", "proposal"):
        found = Kind.parse(f"mcp/{name}:{text}").mismatch(payload)
        assert found is not None
        assert reason in found


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("method", ["tools/list", "resources/templates/list", "ping"])
def test_strict_checking_refuses_a_context_on_list(name: str, method: str) -> None:
    """A CONTEXT on a `…/list` kind parses; strict kind checking refuses it."""
    kind = Kind.parse(f"mcp/{name}:{method}:x")
    assert "has no CONTEXT" in str(kind.mismatch({"method": method, "params": {"name": "x"}}))
    assert "has no CONTEXT" in str(kind.mismatch({"result": {}}))


def test_a_context_is_compared_without_normalisation() -> None:
    """Strict checking compares by code point: composed and decomposed text are two names."""
    payload = {"method": "tools/call", "params": {"name": "cafe\u0301"}}
    assert Kind("request", "tools/call", "café").mismatch(payload) is not None
    assert Kind("request", "tools/call", "cafe\u0301").mismatch(payload) is None


def test_a_response_is_checked_by_its_request_where_known() -> None:
    """A response without a method is checked by its request's kind; short forms leave it open."""
    answer: Payload = {"jsonrpc": "2.0", "id": 1, "result": {"method": "inner"}}
    kind = Kind.parse("mcp/response:tools/call:a")
    assert kind.mismatch(answer) is None
    for text in ("tools/call:a", "tools/call"):
        assert kind.mismatch(answer, request=Kind.parse(f"mcp/request:{text}")) is None
    short = Kind.parse("mcp/response:tools/call")
    assert short.mismatch(answer, request=Kind.parse("mcp/request:tools/call:b")) is None
    for text in (
        "mcp/request:tools/call:b",
        "mcp/request:prompts/get:a",
        "mcp/proposal:tools/call:a",
    ):
        assert kind.mismatch(answer, request=Kind.parse(text)) is not None


def test_a_response_that_says_its_method_must_say_the_right_one() -> None:
    """Some responses repeat method and params (decision 002, option 2); they must agree then."""
    kind = Kind.parse("mcp/response:tools/call:a")
    assert kind.mismatch({"result": {}, "method": "tools/call"}) is None
    assert kind.mismatch({"result": {}, "method": "tools/call", "params": {"name": "a"}}) is None
    assert kind.mismatch({"result": {}, "method": "tools/call", "params": {"name": "b"}})
    assert kind.mismatch({"result": {}, "method": "tools/list"})


def test_a_request_cannot_pass_for_a_response() -> None:
    """A response's kind needs a payload with a result or an error, or it would smuggle a call."""
    kind = Kind.parse("mcp/response:tools/call:a")
    assert kind.mismatch({"method": "tools/call", "params": {"name": "a"}}) is not None
    assert kind.mismatch({"error": {"code": -32602, "message": "no"}}) is None


@pytest.mark.parametrize("text", ["chat", "system/error"])
def test_kinds_without_method_say_nothing_of_their_payload(text: str) -> None:
    """Chat and system payloads are their schemas' matter."""
    assert Kind.parse(text).mismatch({"text": "hello"}) is None


segments = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=":/"), min_size=1
)
methods = st.lists(segments, min_size=1, max_size=4).map("/".join)
contexts = st.text(
    st.characters(exclude_categories=["C", "Z"]) | st.sampled_from("*:/. "), min_size=1
).filter(lambda text: text.strip() == text)


@given(st.sampled_from(TYPES), methods, st.none() | contexts)
def test_a_kind_survives_its_text(name: str, method: str, context: str | None) -> None:
    """`Kind.parse(str(kind))` is the kind, and `str` of it the same text."""
    kind = Kind(name, method, context)
    assert Kind.parse(str(kind)) == kind


@given(st.text() | st.text("mcp/request:chats*. \n"))
def test_only_envelope_errors_escape_and_texts_survive(text: str) -> None:
    """Any text is either refused with a reason or comes back from its kind as it was."""
    found = read(text)
    if isinstance(found, Kind):
        assert str(found) == text
    else:
        assert found.problems[0].rule.startswith("kind/")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
refs = st.fixed_dictionaries({}, optional=dict.fromkeys(("type", "name", "uri"), json_values))
all_params = st.fixed_dictionaries(
    {}, optional={"name": json_values, "uri": json_values, "ref": refs}
)
payloads = st.fixed_dictionaries(
    {},
    optional={
        "method": st.sampled_from([row[0] for row in TABLE]) | json_values,
        "params": all_params | json_values,
        "result": json_values,
    },
)


@given(payloads, st.sampled_from(["tools/call:a", "completion/complete:b", "tools/list", "x:y"]))
def test_any_payload_has_a_kind_or_a_reason(payload: Payload, text: str) -> None:
    """Computing raises nothing but EnvelopeError, checking never raises, and the two agree."""
    for name in TYPES:
        Kind.parse(f"mcp/{name}:{text}").mismatch(payload)
    try:
        kind = Kind.of_payload(payload)
    except EnvelopeError:
        return
    assert kind == Kind.parse(str(kind))
    assert not kind.is_short
    assert (kind.mismatch(payload) is None) is ("result" not in payload)


@pytest.mark.parametrize(
    "text",
    [
        "mcp/request:" + "a/" * 2_000_000,
        "mcp/request:tools/call:" + "\u0378" * 1_000_000,
        ":" * 4_000_000,
    ],
)
def test_huge_kinds_take_bounded_time(text: str) -> None:
    """A kind of megabytes is read or refused in well under a second."""
    start = time.perf_counter()
    found = read(text)
    assert time.perf_counter() - start < 1
    assert isinstance(found, Kind) or len(str(found)) < 500
