"""Each row of the error table that the gateway can raise, at both doors, in each revision."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from itertools import product
from typing import Any

import pytest
from tests.gateway.rig import (
    REVISIONS,
    RULES,
    STATELESS,
    TOOL_RULES,
    Rig,
    answering,
    plan,
    rigged,
)
from tests.gateway.verdicts import (
    Stage,
    check_error,
    check_lines,
    check_tool_error,
    ran,
    until_heard,
    until_run,
)

from mcp_envelope.core.errors import EnvelopeError

KINDS = list(product(("http", "stdio"), ("child", "http"), REVISIONS))
MOST = 20_000


@pytest.fixture(scope="module", params=KINDS, ids="-".join)
def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """Each door before each upstream in each revision."""
    door, upstream, revision = request.param
    folder = tmp_path_factory.mktemp("rig")
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        made = rigged(
            door,
            upstream,
            revision,
            folder,
            rules=RULES,
            tools=TOOL_RULES,
            max_request_bytes=MOST,
            max_result_bytes=4 * MOST,
        )
        rig = runner.run(stack.enter_async_context(made))
        yield Stage(runner, rig)
        runner.run(stack.aclose())


MALFORMED = [
    pytest.param(b"{not json", -32700, None, id="unparsable"),
    pytest.param(b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700, None, id="duplicate"),
    pytest.param(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None, id="batch"),
    pytest.param(b'{"id":1,"method":"ping"}', -32600, 1, id="no-jsonrpc"),
    pytest.param(b'{"jsonrpc":"2.0","id":"a","method":7}', -32600, "a", id="method-7"),
    pytest.param(b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None, id="id-true"),
    pytest.param(b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None, id="id-1.5"),
    pytest.param(b'{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}', -32600, 3, id="params"),
    pytest.param(b"7", -32600, None, id="number"),
    pytest.param(b'"\xff"', -32700, None, id="no-utf8"),
]


@pytest.mark.parametrize("raw,number,id", MALFORMED)
def test_what_is_no_message_is_an_invalid_envelope(
    stage: Stage, raw: bytes, number: int, id: object
) -> None:
    """It is answered with its id, where it has one, and recorded as malformed."""

    async def work(rig: Rig) -> None:
        start = len(rig.book.lines)
        data = check_error(rig, await rig.send(raw), "INVALID_ENVELOPE", number, http=400, id=id)
        assert "pointer" in data or "line" in data or "detail" in data
        check_lines(rig, start, ("malformed", "INVALID_ENVELOPE"), request_id=data["requestId"])
        assert raw not in rig.heard

    stage.play(work)


@pytest.mark.parametrize("method", ["tools/call", "resources/read", "prompts/get"])
def test_a_call_without_an_id_is_no_way_past_the_checks(stage: Stage, method: str) -> None:
    """Servers may act upon it although nobody waits: it is refused, recorded, and not sent on."""

    async def work(rig: Rig) -> None:
        start, before = len(rig.book.lines), len(rig.heard)
        message = rig.request(method, {"name": "picky", "uri": "a:b", "arguments": {}})
        del message["id"]
        head = {} if method != "resources/read" else {"mcp_name": "a:b"}
        said = await rig.send(json.dumps(message).encode(), extra=rig.head(message) | head)
        data = check_error(rig, said, "INVALID_ENVELOPE", -32600, http=400, id=None)
        check_lines(rig, start, ("malformed", "INVALID_ENVELOPE"), request_id=data["requestId"])
        await rig.ask(rig.request("ping"))
        assert not any(b'"a:b"' in raw for raw in rig.heard[before:])

    stage.play(work)


@pytest.mark.parametrize("params", [{}, {"name": 7}, {"name": ""}], ids=["none", "7", "empty"])
def test_a_call_without_a_name_is_an_invalid_envelope(stage: Stage, params: dict[str, Any]) -> None:
    """There is nothing to look up, and nothing is sent on."""

    async def work(rig: Rig) -> None:
        start, before = len(rig.book.lines), ran(rig)
        said = await rig.ask(rig.request("tools/call", params))
        http = 200 if rig.revision == "2025-06-18" else 400
        data = check_error(rig, said, "INVALID_ENVELOPE", -32600, http=http)
        assert data["pointer"] in ("/params/name", "/params")
        check_lines(rig, start, ("refused", "INVALID_ENVELOPE"), request_id=data["requestId"])
        assert ran(rig) == before

    stage.play(work)


def test_an_unknown_method_is_answered_by_the_upstream(stage: Stage) -> None:
    """In its own words, byte for byte; the status is 404 in the stateless revision only."""

    async def work(rig: Rig) -> None:
        start = len(rig.book.lines)
        said = await rig.ask(rig.request("vendor/unheard-of"))
        assert said.message["error"] == {
            "code": -32601,
            "message": "Method not found",
            "data": {"method": "vendor/unheard-of", "vendor": None},
        }
        if said.http is not None:
            assert said.http.status == (404 if rig.revision == STATELESS else 200)
        assert rig.book.entries(start) == []

    stage.play(work)


def test_arguments_that_break_the_schema_never_reach_the_tool(stage: Stage) -> None:
    """INVALID_TOOL_INPUT: an error in 2025-06-18, and later a result that the model can read."""

    async def work(rig: Rig) -> None:
        start, before = len(rig.book.lines), ran(rig)
        said = await rig.ask(rig.call("picky", {"text": 7}))
        if rig.revision == "2025-06-18":
            data = check_error(rig, said, "INVALID_TOOL_INPUT", -32602)
            assert data["pointer"] == "/params/arguments/text"
        else:
            check_tool_error(rig, said, "/params/arguments/text")
        check_lines(rig, start, ("refused", "INVALID_TOOL_INPUT"))
        assert ran(rig) == before

    stage.play(work)


def test_an_unknown_tool_is_said_to_be_none(stage: Stage) -> None:
    """TOOL_NOT_FOUND is -32602 in each revision, and nothing is sent on."""

    async def work(rig: Rig) -> None:
        start, before = len(rig.book.lines), ran(rig)
        data = check_error(rig, await rig.ask(rig.call("nobody")), "TOOL_NOT_FOUND", -32602)
        assert data["pointer"] == "/params/name"
        assert data["hint"]
        check_lines(rig, start, ("refused", "TOOL_NOT_FOUND"), request_id=data["requestId"])
        assert ran(rig) == before

    stage.play(work)


def test_what_is_too_large_is_not_read(stage: Stage) -> None:
    """TOO_LARGE: the next message is served all the same."""

    async def work(rig: Rig) -> None:
        start = len(rig.book.lines)
        said = await rig.send(b'{"jsonrpc":"2.0","id":1,"pad":"%b"}' % (b"x" * MOST))
        data = check_error(rig, said, "TOO_LARGE", 4130, http=413, id=None)
        check_lines(rig, start, ("malformed", "TOO_LARGE"), request_id=data["requestId"])
        assert "result" in (await rig.ask(rig.call())).message

    stage.play(work)


def test_a_result_that_is_too_large_is_not_passed_on(stage: Stage) -> None:
    """It is said, it is not retryable, and the conversation goes on."""

    async def work(rig: Rig) -> None:
        start = len(rig.book.lines)
        bulk = answering(b'"result":{"content":[],"pad":"@PAD@"}') | {"pad": 5 * MOST}
        said = await rig.ask(rig.call(plan=bulk))
        data = check_error(rig, said, "TOO_LARGE", 4130)
        lines = ("admitted", None), ("settled", "TOO_LARGE")
        check_lines(rig, start, *lines, request_id=data["requestId"])
        assert "result" in (await rig.ask(rig.call())).message

    stage.play(work)


def test_a_call_that_gets_no_turn_may_be_sent_again(stage: Stage) -> None:
    """RATE_LIMITED says after how many seconds, and nothing was sent."""

    async def work(rig: Rig) -> None:
        before = ran(rig)
        first = await rig.begin(rig.call(plan=plan(then="hang")))
        await until_run(rig, before + 1)
        start = len(rig.book.lines)
        said = await rig.ask(rig.call("brief"))
        data = check_error(rig, said, "RATE_LIMITED", 4290, retryable=True)
        assert isinstance(data["retryAfter"], int)
        assert data["retryAfter"] > 0
        check_lines(rig, start, ("refused", "RATE_LIMITED"), request_id=data["requestId"])
        assert ran(rig) == before + 1
        await rig.tell("notifications/release")
        assert "result" in (await first).message

    stage.play(work)


@pytest.mark.parametrize("content", ['{"n":"seven"}', "null", "7"])
def test_a_result_that_breaks_a_promise_is_an_error_where_that_is_strict(
    stage: Stage, content: str
) -> None:
    """INVALID_TOOL_OUTPUT: a result with ``isError``, for the tool has acted."""

    async def work(rig: Rig) -> None:
        start = len(rig.book.lines)
        made = answering(b'"result":{"content":[],"structuredContent":%b}' % content.encode())
        said = await rig.ask(rig.call("promising", plan=made))
        check_tool_error(rig, said, "/result/structuredContent")
        check_lines(rig, start, ("admitted", None), ("settled", "INVALID_TOOL_OUTPUT"))

    stage.play(work)


FAILURES = [
    pytest.param(b'"error":{"code":-32000,"message":"\\u00e9","data":null}', id="error"),
    pytest.param(b'"error": {"data":{"code":"TIMEOUT"},"message":"","code":5040}', id="ours"),
    pytest.param(b'"error":{"code":1.0,"message":"m","vendor":[1e2]}', id="vendor"),
    pytest.param(b'"error":{"code":[123456789012345678901234567890],"message":{"a":1}}', id="odd"),
    pytest.param(b'"error":{"code":123456789012345678901234567890,"message":7}', id="huge"),
    pytest.param(b'"error":{}', id="empty"),
]


@pytest.mark.parametrize("fault", FAILURES)
def test_an_upstreams_own_error_is_left_as_it_is(stage: Stage, fault: bytes) -> None:
    """EXECUTION_FAILED stands in the record alone: the client gets the very bytes."""

    async def work(rig: Rig) -> None:
        start = len(rig.book.lines)
        said = await rig.ask(rig.call("promising", plan=answering(fault)))
        assert said.raw == b'{"jsonrpc":"2.0","id":%d,%b}' % (rig.count, fault)
        assert said.http is None or said.http.status == 200
        entries = rig.book.entries(start)
        assert [each["outcome"] for each in entries] == [None, "EXECUTION_FAILED"]

    stage.play(work)


def test_a_result_that_is_an_error_stays_one(stage: Stage) -> None:
    """It is not held against the output schema, and its content is not touched."""

    async def work(rig: Rig) -> None:
        start = len(rig.book.lines)
        made = answering(b'"result":{"content":[{"type":"text","text":"no"}],"isError":true}')
        said = await rig.ask(rig.call("promising", plan=made))
        result = said.message["result"]
        assert result.pop("_meta").keys() == {"dev.mcp-envelope/record"}
        assert result == {"content": [{"type": "text", "text": "no"}], "isError": True}
        check_lines(rig, start, ("admitted", None), ("settled", "EXECUTION_FAILED"))

    stage.play(work)


def test_an_upstream_that_is_lost_mid_call_leaves_the_outcome_unknown(stage: Stage) -> None:
    """OUTCOME_UNKNOWN is not retryable, and the next call is served by a new child."""

    async def work(rig: Rig) -> None:
        start, before = len(rig.book.lines), ran(rig)
        said = await rig.ask(rig.call(plan=plan(then="die")))
        data = check_error(rig, said, "OUTCOME_UNKNOWN", 5021)
        assert data["hint"]
        check_lines(
            rig,
            start,
            ("admitted", None),
            ("settled", "OUTCOME_UNKNOWN"),
            request_id=data["requestId"],
        )
        assert ran(rig) == before + 1
        assert "result" in (await rig.ask(rig.call())).message

    stage.play(work)


def test_a_call_that_takes_too_long_times_out(stage: Stage) -> None:
    """TIMEOUT is not retryable, for the tool may have acted; the upstream is told to stop."""

    async def work(rig: Rig) -> None:
        start = len(rig.book.lines)
        said = await rig.ask(rig.call("brief", plan=plan(then="hang")))
        data = check_error(rig, said, "TIMEOUT", 5040)
        assert data["hint"]
        check_lines(
            rig, start, ("admitted", None), ("settled", "TIMEOUT"), request_id=data["requestId"]
        )
        await rig.tell("notifications/release")
        assert "result" in (await rig.ask(rig.call())).message
        told = rig.upstream == "child" or rig.revision != STATELESS
        if told:
            await until_heard(rig, b"notifications/cancelled")

    stage.play(work)


def test_nothing_runs_that_cannot_be_recorded(stage: Stage) -> None:
    """RECORD_UNAVAILABLE before dispatch: retryable, and no tool ran."""

    async def work(rig: Rig) -> None:
        before = ran(rig)
        full = EnvelopeError("the disk is full", code="RECORD_UNAVAILABLE")
        rig.book.faults = {"admitted": full, "refused": full}
        said = await rig.ask(rig.call())
        check_error(rig, said, "RECORD_UNAVAILABLE", 5031, retryable=True)
        assert ran(rig) == before
        rig.book.faults = {}
        assert "result" in (await rig.ask(rig.call())).message

    stage.play(work)


def test_an_end_that_cannot_be_recorded_is_an_unknown_outcome(stage: Stage) -> None:
    """The tool has acted and nobody can prove how: the result is not passed on."""

    async def work(rig: Rig) -> None:
        start, before = len(rig.book.lines), ran(rig)
        rig.book.faults = {"settled": EnvelopeError("disk full", code="RECORD_UNAVAILABLE")}
        said = await rig.ask(rig.call())
        data = check_error(rig, said, "OUTCOME_UNKNOWN", 5021)
        assert "disk full" in data["detail"]
        assert "done" not in said.raw.decode()
        check_lines(rig, start, ("admitted", None), request_id=data["requestId"])
        assert ran(rig) == before + 1

    stage.play(work)


def test_what_nobody_foresaw_is_an_internal_error(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """INTERNAL_ERROR says nothing of the gateway's inside; the log has the request's id."""

    async def work(rig: Rig) -> None:
        start, before = len(rig.book.lines), ran(rig)
        rig.book.faults = {"admitted": RuntimeError("canary-inside")}
        said = await rig.ask(rig.call())
        data = check_error(rig, said, "INTERNAL_ERROR", -32603)
        assert "canary-inside" not in said.raw.decode()
        assert data["requestId"] in caplog.text
        check_lines(rig, start, ("refused", "INTERNAL_ERROR"), request_id=data["requestId"])
        assert ran(rig) == before

    stage.play(work)
