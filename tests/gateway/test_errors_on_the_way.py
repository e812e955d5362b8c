"""Errors that need an arrangement of their own: lost, absent and cancelled, headers, versions."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.rig import REVISIONS, STATELESS, Rig, Said, plan, rigged
from tests.gateway.verdicts import Stage, check_error, check_lines, check_tool_error, ran, until_run

DOORS = ("http", "stdio")
EXITS = (sys.executable, "-I", "-S", "-c", "raise SystemExit(1)")


def test_a_call_without_an_id_reaches_none_of_several(tmp_path: Path) -> None:
    """Notifications go to all servers behind one door, and this is none."""

    async def work() -> None:
        async with rigged("stdio", "child", "2025-11-25", tmp_path, twin=True) as rig:
            start = len(rig.book.lines)
            message = rig.call("puppet__free")
            del message["id"]
            said = await rig.send(json.dumps(message).encode())
            check_error(rig, said, "INVALID_ENVELOPE", -32600, id=None)
            check_lines(rig, start, ("malformed", "INVALID_ENVELOPE"))
            await rig.ask(rig.call("puppet__free"))
            assert ran(rig) == 1

    asyncio.run(work())


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("door", DOORS)
def test_errors_of_one_of_several_are_in_the_words_of_the_clients_revision(
    door: str, revision: str, tmp_path: Path
) -> None:
    """Which no single message says on pipes: it is what was agreed."""

    async def work() -> None:
        async with rigged(door, "child", revision, tmp_path, twin=True) as rig:
            said = await rig.ask(rig.call("puppet__picky", {"text": 7}))
            if revision == "2025-06-18":
                check_error(rig, said, "INVALID_TOOL_INPUT", -32602)
            else:
                check_tool_error(rig, said, "/params/arguments/text")

    asyncio.run(work())


def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def absent(how: str) -> dict[str, Any]:
    """Settings of an upstream that is not there."""
    if how == "refused":
        return {"url": f"http://127.0.0.1:{closed_port()}/mcp"}
    return {"command": ("/nonexistent/server",) if how == "no command" else EXITS}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("how", ["no command", "exits at once", "refused"])
@pytest.mark.parametrize("door", DOORS)
def test_an_upstream_that_is_not_there_is_unavailable(
    door: str, how: str, revision: str, tmp_path: Path
) -> None:
    """UPSTREAM_UNAVAILABLE: nothing was sent, so it may be tried again."""

    async def work() -> None:
        given = absent(how)
        upstream = "http" if "url" in given else "child"
        async with rigged(door, upstream, revision, tmp_path, hands=False, **given) as rig:
            said = await (rig.ask(rig.call()) if revision == STATELESS else rig.shake_hands())
            check_error(rig, said, "UPSTREAM_UNAVAILABLE", 5030, retryable=True)

    asyncio.run(work())


@pytest.mark.parametrize("how", ["no command", "exits at once", "refused"])
@pytest.mark.parametrize("door", DOORS)
def test_a_call_of_an_upstream_that_is_not_there_is_recorded(
    door: str, how: str, tmp_path: Path
) -> None:
    """Whatever becomes of a call, the record knows of it."""

    async def work() -> None:
        given = absent(how)
        upstream = "http" if "url" in given else "child"
        async with rigged(door, upstream, STATELESS, tmp_path, **given) as rig:
            start = len(rig.book.lines)
            said = await rig.ask(rig.call())
            data = check_error(rig, said, "UPSTREAM_UNAVAILABLE", 5030, retryable=True)
            entries = rig.book.entries(start)
            assert entries[-1]["outcome"] == "UPSTREAM_UNAVAILABLE"
            assert entries[-1]["request_id"] == data["requestId"]
            assert entries[-1]["tool"] == "free"

    asyncio.run(work())


@pytest.fixture(scope="module", params=["child", "http"])
def modern(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """The HTTP door in 2026-07-28."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        made = rigged("http", request.param, STATELESS, tmp_path_factory.mktemp("rig"))
        yield Stage(runner, runner.run(stack.enter_async_context(made)))
        runner.run(stack.aclose())


HEADERS = [
    pytest.param("free", {}, {"mcp_method": ""}, id="no-method"),
    pytest.param("free", {}, {"mcp_method": "tools/list"}, id="other-method"),
    pytest.param("free", {}, {"mcp_method": "Tools/Call"}, id="method-in-other-case"),
    pytest.param("free", {}, {"mcp_name": ""}, id="no-name"),
    pytest.param("free", {}, {"mcp_name": "picky"}, id="other-name"),
    pytest.param("free", {}, {"mcp_name": "=?base64?!?="}, id="broken-name"),
    pytest.param("free", {}, {"mcp_protocol_version": ""}, id="no-version"),
    pytest.param("free", {}, {"mcp_protocol_version": "2027-01-01"}, id="other-version"),
    pytest.param("headed", {"place": "a"}, {}, id="no-param"),
    pytest.param("headed", {"place": "a"}, {"mcp_param_place": "b"}, id="other-param"),
    pytest.param("headed", {}, {"mcp_param_place": "b"}, id="param-of-nothing"),
    pytest.param("headed", {"place": None}, {"mcp_param_place": "null"}, id="param-null"),
]


@pytest.mark.parametrize("tool,arguments,head", HEADERS)
def test_headers_that_disagree_with_the_body_are_refused(
    modern: Stage, tool: str, arguments: dict[str, Any], head: dict[str, str]
) -> None:
    """HEADER_MISMATCH: HTTP 400 and -32020, recorded, and nothing is sent on."""

    async def work(rig: Rig) -> None:
        start, before = len(rig.book.lines), ran(rig)
        said = await rig.ask(rig.call(tool, arguments), **head)
        data = check_error(rig, said, "HEADER_MISMATCH", -32020, http=400)
        check_lines(rig, start, ("refused", "HEADER_MISMATCH"), request_id=data["requestId"])
        assert ran(rig) == before

    modern.play(work)


def test_headers_that_agree_are_let_in(modern: Stage) -> None:
    """In each of the ways in which they may be written, names beyond ASCII among them."""

    async def work(rig: Rig) -> None:
        for tool, arguments, head in (
            ("free", {}, {}),
            ("headed", {"place": "a b"}, {"mcp_param_place": "a b"}),
            ("headed", {"place": "ä"}, {"mcp_param_place": "=?base64?w6Q=?="}),
            ("headed", {}, {}),
            ("größe 測試", {}, {}),
        ):
            said = await rig.ask(rig.call(tool, arguments), **head)
            assert "result" in said.message, said.raw

    modern.play(work)


def test_a_request_of_the_stateless_revision_names_it_in_its_body(modern: Stage) -> None:
    """-32602 and HTTP 400 without it: said by the upstream where it speaks HTTP, else by us."""

    async def work(rig: Rig) -> None:
        before = ran(rig)
        for meta in ({}, {"io.modelcontextprotocol/protocolVersion": STATELESS}):
            message = rig.call()
            message["params"]["_meta"] = meta
            said = await rig.ask(message, mcp_name="picky")
            assert said.http is not None
            assert said.http.status == 400
            assert said.message["error"]["code"] in (-32602, -32020)
        assert rig.upstream == "http" or ran(rig) == before

    modern.play(work)


def test_the_upstreams_word_on_versions_is_kept(modern: Stage) -> None:
    """UNSUPPORTED_VERSION is -32022 with HTTP 400, and says what is served."""

    async def work(rig: Rig) -> None:
        message = rig.request("ping")
        message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2030-01-01"
        said = await rig.ask(message, mcp_protocol_version="2030-01-01")
        assert said.http is not None
        assert said.http.status == 400
        assert said.message["error"]["code"] == -32022
        assert STATELESS in said.message["error"]["data"]["supported"]

    modern.play(work)


@pytest.mark.parametrize("revision", REVISIONS[:2])
def test_a_version_that_never_was_is_refused(revision: str, tmp_path: Path) -> None:
    """Before 2025-11-25 as -32602 (the error table), with HTTP 400."""

    async def work() -> None:
        async with rigged("http", "child", revision, tmp_path) as rig:
            said = await rig.ask(rig.call(), mcp_protocol_version="1999-01-01")
            assert said.http is not None
            assert said.http.status == 400
            error = said.message["error"]
            assert said.message["id"] == rig.count
            assert error["code"] == -32602
            assert revision in error["data"]["supported"]
            assert ran(rig) == 0

    asyncio.run(work())


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("upstream", ["child", "http"])
@pytest.mark.parametrize("door", DOORS)
def test_a_cancelled_call_is_not_answered_and_stands_in_the_record(
    door: str, upstream: str, revision: str, tmp_path: Path
) -> None:
    """CANCELLED, by a notification; over HTTP from 2026-07-28 on by going away."""

    async def work() -> None:
        async with rigged(door, upstream, revision, tmp_path) as rig:
            start, before = len(rig.book.lines), ran(rig)
            message = rig.call(plan=plan(then="hang"))
            answer = await rig.begin(message)
            await until_run(rig, before + 1)
            if door == "http" and revision == STATELESS:
                assert isinstance(answer, asyncio.Task)
                answer.cancel()
                await asyncio.wait([answer])
            else:
                await rig.tell("notifications/cancelled", requestId=rig.count)
            entries = await rig.book.after(start, 2)
            assert [each["outcome"] for each in entries] == [None, "CANCELLED"]
            await check_silence(rig, answer)

    asyncio.run(work())


async def check_silence(rig: Rig, answer: Any) -> None:
    """The next answer is that of the next call; what was cancelled has none."""
    if isinstance(answer, asyncio.Task) and not answer.cancelled():
        said: Said = await answer
        assert said.messages == []
        assert said.http is not None
        assert said.http.status < 300
    elif not isinstance(answer, asyncio.Task):
        answer.close()
    said = await rig.ask(rig.call())
    assert said.message["id"] == rig.count
    assert "result" in said.message


@pytest.mark.parametrize("revision", REVISIONS[:2])
@pytest.mark.parametrize("upstream", ["child", "http"])
def test_a_client_that_goes_away_cancels_nothing_in_older_revisions(
    upstream: str, revision: str, tmp_path: Path
) -> None:
    """The call goes on to its end, which is recorded."""

    async def work() -> None:
        async with rigged("http", upstream, revision, tmp_path) as rig:
            start, before = len(rig.book.lines), ran(rig)
            answer = await rig.begin(rig.call(plan=plan(then="hang")))
            assert isinstance(answer, asyncio.Task)
            await until_run(rig, before + 1)
            answer.cancel()
            await asyncio.wait([answer])
            await rig.tell("notifications/release")
            entries = await rig.book.after(start, 2)
            assert [each["outcome"] for each in entries] == [None, "ok"]
            assert not any(b"notifications/cancelled" in raw for raw in rig.heard)

    asyncio.run(work())


@pytest.mark.parametrize("door", DOORS)
def test_a_gateway_that_is_closed_mid_call_says_so(door: str, tmp_path: Path) -> None:
    """OUTCOME_UNKNOWN in the record, never nothing."""

    async def work() -> None:
        async with rigged(door, "child", "2025-11-25", tmp_path) as rig:
            book, start, before = rig.book, len(rig.book.lines), ran(rig)
            message = rig.call(plan=plan(then="hang"))
            if door == "http":
                asking = asyncio.create_task(rig.ask(message))
            else:
                rig.write(json.dumps(message).encode())
                asking = asyncio.create_task(asyncio.sleep(0, Said([])))
            await until_run(rig, before + 1)
            assert rig.stop is not None
            await rig.stop()
            await asyncio.wait([asking])
            entries = await book.after(start, 2)
            assert [each["outcome"] for each in entries] == [None, "OUTCOME_UNKNOWN"]

    asyncio.run(work())
