"""The headers of 2026-07-28, with the official SDK's rules as a judge."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import inbound

from mcp_envelope.core import mcp_headers
from mcp_envelope.core.frame import Frame, frame_of

REVISION = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": REVISION}
SCALARS = st.sampled_from(
    [None, True, False, 0, -7, 42, 42.0, 1.5, 2**70, "", "x", " x", "ü", "=?base64?eA==?=", "42",
     "a, b"]
) | st.text(max_size=5)  # fmt: skip
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "size": {"type": "integer", "x-mcp-header": "Size"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
        "at": {"properties": {"zone": {"type": "string", "x-mcp-header": "zone"}}},
        "other": {"type": "string"},
    },
}
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "region": SCALARS,
        "size": SCALARS,
        "dry": SCALARS | st.just([1]),
        "at": SCALARS | st.fixed_dictionaries({}, optional={"zone": SCALARS}),
        "other": SCALARS,
    },
)
VALUES = st.sampled_from(
    ["", "x", "42", "42.0", "42.5", "-7", "1e3", "true", "True", "a, b", "=?base64?eA==?=",
     "=?base64?eA?=", "=?base64?eB==?=", "=?base64?/w==?=", "42, 42"]  # not "ü" in base64: there the SDK (2.3) raises ValueError
)  # fmt: skip
HEADS = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(["region", "size", "dry-run", "zone", "unknown"], VALUES),
)  # fmt: skip


def call(method: str = "tools/call", **params: object) -> Frame:
    """A request of 2026-07-28."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": META, **params}}
    return frame_of(message)


def head(method: str = "tools/call", name: str | None = "t", **more: str) -> dict[str, str]:
    """The headers that belong to it."""
    found = {"mcp-protocol-version": REVISION, "mcp-method": method}
    if name is not None:
        found["mcp-name"] = name
    return found | {key.replace("_", "-"): value for key, value in more.items()}


@given(text=st.text() | SCALARS.filter(lambda value: isinstance(value, str)))
def test_values_survive_a_header(text: str) -> None:
    """Encode and decode give the text back, in visible ASCII, spelled as the SDK spells it."""
    encoded = mcp_headers.encode_value(text)
    assert mcp_headers.decode_value(encoded) == text
    assert encoded.isascii()
    assert encoded == encoded.strip()
    assert encoded.isprintable()
    assert inbound.decode_header_value(encoded) == text
    assert mcp_headers.decode_value(inbound.encode_header_value(text)) == text


@given(text=st.text(max_size=20) | VALUES)
def test_values_are_decoded_as_the_sdk_does(text: str) -> None:
    """Malformed and non-canonical base64 stands for nothing."""
    if not text.isascii():  # where wrapped, the SDK (2.3) raises ValueError
        assert mcp_headers.decode_value(text) in (text, None)
    elif "\n" not in text:
        assert mcp_headers.decode_value(text) == inbound.decode_header_value(text)


@given(arguments=ARGUMENTS, given=HEADS)
def test_parameters_are_held_against_headers_as_the_sdk_does(
    arguments: dict[str, Any], given: dict[str, str]
) -> None:
    """The same requests pass and fail: present together, equal, null being absent."""
    headers = {f"mcp-param-{name}": value for name, value in given.items()}
    frame = call(name="t", arguments=arguments)
    judged = inbound.validate_mcp_param_headers(SCHEMA, frame.params["arguments"], headers)
    flaw = mcp_headers.mismatch(frame, head() | headers, SCHEMA)
    assert (flaw is None) == (judged is None), (flaw, judged)


@given(arguments=ARGUMENTS)
def test_headers_that_are_made_agree_with_the_body(arguments: dict[str, Any]) -> None:
    """What goes out passes our own check and the SDK's, and is what the SDK would send."""
    frame = call(name="t", arguments=arguments)
    made = mcp_headers.param_headers(SCHEMA, frame.params["arguments"])
    assert mcp_headers.mismatch(frame, head() | made, SCHEMA) is None
    theirs = inbound.mcp_param_headers(inbound.x_mcp_header_map(SCHEMA), frame.params["arguments"])
    assert made == {name.lower(): value for name, value in theirs.items()}


ANNOTATED = {"type": "string", "x-mcp-header": "A"}


@pytest.mark.parametrize(
    "schema",
    [
        {"x-mcp-header": "A", "type": "string"},
        {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}},
        {"properties": {"a": {"x-mcp-header": "A"}}},
        {"properties": {"a": {"type": ["string"], "x-mcp-header": "A"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": ""}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": "a b"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": "a\n"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": 7}}},
        {"properties": {"a": ANNOTATED, "b": {"type": "string", "x-mcp-header": "a"}}},
        {"properties": {"a": {"items": ANNOTATED}}},
        {"properties": {"a": ANNOTATED}, "allOf": [{"properties": {"b": ANNOTATED}}]},
        {"properties": {"a": ANNOTATED}, "$defs": {"x": ANNOTATED}},
        {"properties": {"a": ANNOTATED}, "if": {"properties": {"b": ANNOTATED}}},
    ],
)
def test_a_schema_that_breaks_the_rules_counts_for_nothing(schema: dict[str, Any]) -> None:
    """It gives no headers and checks none, and says why; the SDK rejects it as well."""
    assert inbound.find_invalid_x_mcp_header(schema) is not None
    assert mcp_headers.schema_flaw(schema)
    assert mcp_headers.param_headers(schema, {"a": "x"}) == {}
    frame = call(name="t", arguments={"a": "x"})
    assert mcp_headers.mismatch(frame, head(), schema) is None


@pytest.mark.parametrize(
    "schema", [SCHEMA, True, None, 7, {"properties": {"a": {"default": ANNOTATED}}}]
)
def test_other_schemas_hold(schema: object) -> None:
    """Annotations in data, and schemas that are no objects, break nothing."""
    assert inbound.find_invalid_x_mcp_header(schema) is None
    assert mcp_headers.schema_flaw(schema) is None


@pytest.mark.parametrize(
    "frame,given,word",
    [
        (call(name="t"), head(), None),
        (call(name="ü"), head(name="=?base64?w7w=?="), None),
        (call(name="t"), head(name="=?base64?dA==?="), None),
        (call(name="t"), head(name="T"), "mcp-name does not"),
        (call(name="t"), head(name="t, t"), "mcp-name does not"),
        (call(name="t"), head(name=None), "mcp-name is missing"),
        (call(name="t"), head("tools/list"), "mcp-method does not"),
        (call(name="t"), head() | {"mcp-protocol-version": "2025-11-25"}, "version does not"),
        (call(name="t"), {"mcp-method": "tools/call", "mcp-name": "t"}, "version is missing"),
        (call(name="t"), {"mcp-protocol-version": REVISION, "mcp-name": "t"}, "method is missing"),
        (call("resources/read", uri="a:b"), head("resources/read", "a:b"), None),
        (call("resources/read", uri="a:b"), head("resources/read", "a:c"), "mcp-name does not"),
        (call("prompts/get", name="p"), head("prompts/get", None), "mcp-name is missing"),
        (call("prompts/get"), head("prompts/get", None), None),
        (call("tasks/get", taskId="1"), head("tasks/get", "1"), None),
        (call("tasks/get", taskId="1"), head("tasks/get", "2"), "mcp-name does not"),
        (call("tasks/get", taskId="1"), head("tasks/get", None), None),
        (call("tools/list"), head("tools/list", None), None),
        (frame_of({"jsonrpc": "2.0", "method": "notifications/x"}), {}, None),
    ],
)
def test_standard_headers_are_held_against_the_body(
    frame: Frame, given: dict[str, str], word: str | None
) -> None:
    """Version, method and name must be there and say what the body says; else it is named."""
    flaw = mcp_headers.mismatch(frame, given)
    assert (flaw is None) if word is None else (flaw is not None and word in flaw)
    if frame.shape == "request" and frame.method != "tasks/get":
        judged = inbound.classify_inbound_request(
            frame.value | {"params": {**frame.params, "_meta": {
                **META, "io.modelcontextprotocol/clientCapabilities": {}}}},
            headers=given,
        )  # fmt: skip
        assert isinstance(judged, inbound.InboundModernRoute) == (flaw is None)


def test_standard_headers_are_made() -> None:
    """Each kind of request has its headers; answers and the nameless have fewer."""
    made = mcp_headers.standard_headers
    assert made(call(name="größe"), REVISION) == head(name="=?base64?Z3LDtsOfZQ==?=")
    assert made(call("tools/list"), REVISION) == head("tools/list", None)
    assert made(call("tasks/cancel", taskId="x"), REVISION) == head("tasks/cancel", "x")
    answer = frame_of({"jsonrpc": "2.0", "id": 1, "result": {}})
    assert made(answer, REVISION) == {"mcp-protocol-version": REVISION}
