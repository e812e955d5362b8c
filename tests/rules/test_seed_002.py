"""Seed 002, one response envelope for all tools: rule by rule (docs/rules.md)."""

from __future__ import annotations

from typing import Any, Final

import pytest
from tests.rules.seeds import envelope, errors, mended, raw, text, warnings

import mcp_envelope as me

DIALECT: Final = "tiered/1.0"
FIELDS: Final = {
    "tier", "tool_version", "tool_id", "request_id", "capabilities", "duration_ms", "error",
    "upgrade_hints", "data",
}  # fmt: skip
CODES: Final = [
    "invalid_argument", "invalid_path", "forbidden", "not_found", "timeout", "too_large",
    "resource_exhausted", "not_implemented", "upgrade_required", "dependency_unavailable",
    "internal_error",
]  # fmt: skip
HINT: Final = {"feature": "deep_scan", "tier": "pro", "reason": "needs pro"}
TRACEBACK: Final = (
    "Traceback (most recent call last):\n"
    '  File "/srv/tool.py", line 3, in run\n'
    "    connect(password=SECRET_IN_SOURCE)\n"
    "ConnectionError: no route"
)


def community(**members: object) -> bytes:
    """The seed's success as a community tool gives it, with some members replaced."""
    return mended("002-success", **{"tier": "community", **members})


def failed(**members: object) -> bytes:
    """The seed's error with some members of ``error`` replaced; ``...`` takes one out."""
    error = {**envelope("002-error")["error"].value, **members}
    return mended("002-error", error={k: part for k, part in error.items() if part is not ...})


def mcp_failure(message: str) -> bytes:
    """A tool's failure in plain MCP."""
    content = [{"type": "text", "text": message}]
    return text({"jsonrpc": "2.0", "id": 7, "result": {"isError": True, "content": content}})


# -- the shape ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        raw("000-adopt-text"),
        raw("000-failure"),
        raw("002-error"),
        raw("003-tool-response"),
        raw("004-response"),
        mcp_failure("no such table"),
        b'{"jsonrpc": "2.0", "id": "7", "result": {"tool": "t", "input": {}, "output": {}}}',
    ],
    ids=["wrapped", "failure", "tiered", "topic", "tool", "mcp", "json-rpc"],
)
def test_every_dialect_arrives_in_the_one_shape(source: bytes) -> None:
    """S002-01: an answer of any dialect has exactly the nine fields, without a warning."""
    answer = me.convert(source, DIALECT).data
    assert set(me.parse(answer).value) == FIELDS
    assert me.validate(answer) == []


def test_requests_can_be_correlated() -> None:
    """S002-02: request id, tool and tier are told by the envelope alone, and survive travel."""
    message = me.decode(raw("002-success"))
    assert message.id == "8b3e5f6c0a2f4ed4a3fb9e0b2f8f8d3a"
    assert message.target == "security_scan"
    there = me.convert(raw("002-success"), "mcp")
    assert me.parse(there.data)["id"] == message.id
    back = me.parse(me.convert(there.data, DIALECT, from_="mcp").data)
    assert back["tier"] == "pro"
    assert back["tool_version"] == "3.2.8"


def test_error_codes_are_the_listed_ones() -> None:
    """S002-03: the listed codes are read without a warning; another is, with one.

    What is written has a listed code, whatever it was made from.
    """
    for code in CODES:
        assert me.validate(failed(error_code=code)) == []
        again = me.parse(me.encode(me.decode(failed(error_code=code)), DIALECT))
        assert again["error"]["error_code"] == code
    assert warnings(failed(error_code="kaput")) == {"/error/error_code": "tiered/1.0 error-code"}
    for other in ("kaput", "RATE_LIMITED", "TOOL_NOT_FOUND", None):
        fault = me.Fault(code=other, message="went wrong")
        written = me.parse(me.encode(me.Failure(faults=(fault,)), DIALECT))
        assert written["error"]["error_code"].value in CODES


@pytest.mark.parametrize("name", sorted(FIELDS - {"duration_ms"}))
def test_every_field_is_required(name: str) -> None:
    """S002-04: an object without any of the fields is no envelope, and the field is named."""
    assert errors(mended("002-success", **{name: ...}), DIALECT) == [f"/{name}"]
    assert errors(b"[]", DIALECT) == [""]


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("tier", ["community", "pro", "enterprise"], ["gold", "Pro", "", None, 1]),
        ("tool_version", ["3.2.8", "1.0.0-rc.1+b5"], ["3.2", "v3.2.8", "03.2.8", "", None, 3]),
        ("tool_id", ["security_scan"], ["", None, 7]),
        ("capabilities", [["envelope-v1"], ["envelope-v1", "x"]], ["envelope-v1", [1], None, {}]),
        ("duration_ms", [0, 27, 3.5], [-1, "27", True]),
        ("error", [None], ["not_found", [], False]),
        ("upgrade_hints", [[], [HINT]], [None, {}, ["pro"]]),
    ],
)
def test_fields_have_their_types(name: str, good: list[Any], bad: list[Any]) -> None:
    """S002-05, S002-06, S002-07, S002-09, S002-10, S002-13, S002-14: as the field table says."""
    assert [value for value in good if me.validate(mended("002-success", **{name: value}))] == []
    for value in bad:
        found = errors(mended("002-success", **{name: value}), DIALECT)
        assert len(found) == 1, value
        assert found[0].startswith(f"/{name}"), value


def test_the_request_id_is_the_callers_or_made() -> None:
    """S002-08: the caller's id is kept; where there is none, one is made, and listed."""
    assert me.parse(me.convert(raw("004-response"), DIALECT).data)["request_id"] == (
        "3fd7d2b1-79d1-4b8e-92c8-105c1ce9b6f7"
    )
    made = me.convert(raw("000-legacy-text"), DIALECT)
    assert "/request_id" in made.filled
    assert len(me.parse(made.data)["request_id"].value) == 36
    assert errors(mended("002-success", request_id=7)) == ["/request_id"]


def test_envelope_v1_is_among_the_capabilities() -> None:
    """S002-09: what is written has ``envelope-v1``; what is read without it gets a warning."""
    assert me.parse(me.convert(raw("004-response"), DIALECT).data)["capabilities"] == [
        "envelope-v1"
    ]
    without = mended("002-success", capabilities=["fast"])
    assert warnings(without) == {"/capabilities": "tiered/1.0 envelope-v1"}


def test_envelope_v1_is_written_even_where_it_was_not_read() -> None:
    """S002-09: reading an envelope without ``envelope-v1`` and writing it again puts it in."""
    message = me.decode(mended("002-success", capabilities=["fast"]))
    written = me.parse(me.encode(message, DIALECT))
    assert "envelope-v1" in written["capabilities"].value


@pytest.mark.parametrize("tier", ["pro", "enterprise"])
def test_paid_tiers_must_say_the_duration(tier: str) -> None:
    """S002-11: without ``duration_ms`` a pro or enterprise response is invalid."""
    assert errors(mended("002-success", tier=tier)) == []
    assert errors(mended("002-success", tier=tier, duration_ms=...)) == ["/duration_ms"]


def test_community_should_say_the_duration() -> None:
    """S002-12: for community it is only recommended: a warning, and written all the same."""
    without = community(duration_ms=...)
    assert errors(without) == []
    assert warnings(without) == {"/duration_ms": "tiered/1.0 duration"}
    assert me.parse(me.encode(me.decode(without), DIALECT))["duration_ms"] == 0


@pytest.mark.parametrize("data", [None, "text", 1.5, [1], {"success": True}, False])
def test_data_is_anything(data: object) -> None:
    """S002-15: the payload is any JSON value or null, and comes out as it went in."""
    answer = mended("002-success", data=data)
    assert me.validate(answer) == []
    message = me.decode(answer)
    assert isinstance(message, me.Success)
    assert message.payload is not None
    assert message.payload == data or data is None
    assert me.parse(me.encode(message, DIALECT))["data"].value == data


# -- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("error", [..., None, 5, {}]),
        ("error_code", [..., None, 404, ""]),
        ("error_details", [..., "missing.py", 5, []]),
    ],
)
def test_an_error_says_three_things(name: str, bad: list[Any]) -> None:
    """S002-16, S002-17, S002-18: text, code and details; the details may be null."""
    assert me.validate(failed()) == []
    assert me.validate(failed(error_details={"path": "/missing.py"})) == []
    for value in bad:
        assert errors(failed(**{name: value})) == [f"/error/{name}"]


def test_errors_carry_no_code() -> None:
    """S002-19: a traceback in a tool's failure does not get into ``error`` by way of us."""
    answer = me.parse(me.convert(mcp_failure(TRACEBACK), DIALECT).data)
    assert b"SECRET_IN_SOURCE" not in answer["error"].raw
    assert b"Traceback" not in answer["error"].raw


def test_tool_specific_detail_may_stand_in_data() -> None:
    """S002-20: ``data`` beside an error is the tool's own account of it, and is kept."""
    message = me.decode(raw("002-error"))
    assert isinstance(message, me.Failure)
    assert message.payload == envelope("002-error")["data"]


def test_the_error_counts_and_not_the_data() -> None:
    """S002-21: whether and how it failed is read from ``error``, whatever ``data`` says."""
    contradicted = mended("002-error", data={"success": True, "error": None})
    message = me.decode(contradicted)
    assert isinstance(message, me.Failure)
    assert message.message == "File not found: /missing.py."
    assert message.code == "not_found"
    unmoved = me.decode(mended("002-success", data={"success": False, "error": "no"}))
    assert isinstance(unmoved, me.Success)


# -- upgrade hints -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["002-success", "002-error"])
@pytest.mark.parametrize("to", ["mcp", "mcpx/0.1", "tool/1.0", "jsonrpc/2.0", "provenance/0.1"])
def test_hints_are_kept(name: str, to: str) -> None:
    """S002-22: one or more hints are valid, and survive the way through every dialect."""
    hinted = mended(name, upgrade_hints=[HINT, {**HINT, "tier": "enterprise"}])
    assert me.validate(hinted) == []
    there = me.convert(hinted, to)
    assert there.lost == ()
    assert me.parse(me.convert(there.data, DIALECT, from_=to).data) == me.parse(hinted)


@pytest.mark.parametrize("name", ["feature", "tier", "reason"])
def test_a_hint_says_three_things(name: str) -> None:
    """S002-23, S002-24, S002-25: feature, tier and reason, each a string."""
    for bad in (None, 1, ["pro"]):
        hinted = mended("002-success", upgrade_hints=[HINT, {**HINT, name: bad}])
        assert errors(hinted) == [f"/upgrade_hints/1/{name}"]
    without = {key: part for key, part in HINT.items() if key != name}
    assert errors(mended("002-success", upgrade_hints=[without])) == [f"/upgrade_hints/0/{name}"]
