"""Handing on: what reaches the upstream, and what comes back of it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Coroutine
from typing import Any

import pytest
from tests.upstreams import http_peers
from tests.upstreams.http_peers import (
    INITIALIZE,
    LOOPS,
    Asked,
    Script,
    Talk,
    answer,
    chunk,
    eventually,
    note,
    request,
    result,
    scripted,
    stream,
)

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import read_frame
from mcp_envelope.upstreams.http import HttpUpstream

LOOP = "asyncio"
CALL = request("tools/call", name="t")
MODERN = {"mcp-protocol-version": "2026-07-28"}
LEGACY = {"mcp-protocol-version": "2025-11-25", "mcp-session-id": "s1"}
PROGRESS = json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})


@pytest.fixture(autouse=True, params=LOOPS)
def _loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here holds on both event loops."""
    monkeypatch.setitem(globals(), "LOOP", request.param)


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run it on the loop of this round."""
    http_peers.run(work, LOOP)


def writes(*parts: bytes, last: bool = False) -> Script:
    """A script that writes these parts for every request."""

    async def script(talk: Talk, asked: Asked) -> bool | None:
        await talk.write(*parts)
        return not last

    return script


def test_a_message_goes_on_as_it_is() -> None:
    """The body is the client's bytes, its headers pass, the operator's credentials are added."""
    raw = b'{ "jsonrpc":"2.0", "id":7.0, "method":"tools/call", "params":{"x":1.0,"\\u0061":2} }'
    reply_raw = b'{"id":7.0 ,"jsonrpc":"2.0","result":{"a":1e2}}'

    async def work() -> None:
        script = writes(answer(reply_raw, "200 OK", "Mcp-Session-Id: s1", "Set-Cookie: c"))
        async with scripted(script) as server:
            upstream = HttpUpstream(
                "up", server.url + "?q=1", headers={"Authorization": "Bearer o"}
            )
            head = {
                "authorization": "Bearer client",
                "x-a": "b",
                "content-type": "application/json",
            }
            reply = await upstream.relay().send(read_frame(raw), head)
            (item,) = [item async for item in reply]
            assert item.frame is not None
            assert item.frame.raw == reply_raw
            assert (reply.status, reply.streams, item.event) == (200, False, None)
            assert reply.headers == {"mcp-session-id": "s1", "content-type": "application/json"}
            (asked,) = server.asked
            assert (asked.method, asked.path, asked.body) == ("POST", "/mcp?q=1", raw)
            assert asked.head["authorization"] == "Bearer o"
            assert asked.head["x-a"] == "b"
            await upstream.close()

    run(work())


@pytest.mark.parametrize(
    "response,status,body,count",
    [
        (answer("", "202 Accepted", kind=""), 202, b"", 0),
        (answer("{}", "202 Accepted"), 202, b"", 0),
        (answer("no such page", "404 Not Found", kind="text/plain"), 404, b"no such page", 0),
        (answer(result(None).replace("result", "error"), "400 Bad Request"), 400, b"", 1),
        (answer('{"error":"invalid_token"}', "401 X"), 401, b'{"error":"invalid_token"}', 0),
        (answer("<html>", kind="text/html"), 200, b"<html>", 0),
        (answer(result(1), kind=""), 200, b"", 1),
        (answer("x" * 2_000_000, "500 Oh", kind="text/plain"), 500, b"x" * 1_048_576, 0),
        (answer("", "405 Method Not Allowed", kind=""), 405, b"", 0),
    ],
)
def test_what_is_no_message_is_passed_on_as_a_body(
    response: bytes, status: int, body: bytes, count: int
) -> None:
    """Whatever the status: one JSON-RPC message is an item, anything else the reply's body."""

    async def work() -> None:
        async with scripted(writes(response, last=True)) as server:
            upstream = HttpUpstream("up", server.url)
            reply = await upstream.relay().send(CALL, {})
            assert len([item async for item in reply]) == count
            assert (reply.status, reply.body) == (status, body)
            await upstream.close()

    run(work())


def test_redirects_are_said_and_not_followed() -> None:
    """Where it points is shown, without query or credentials; nothing was executed."""
    response = answer("", "307 Temporary Redirect", "location: https://u:p@other/x?token=s3cret")

    async def work() -> None:
        async with scripted(writes(response)) as server:
            upstream = HttpUpstream("up", server.url)
            link = upstream.relay()
            for wait in (link.send(CALL, {}), link.listen({}), link.end({})):
                with pytest.raises(EnvelopeError, match="to 'https://other/x'") as caught:
                    await wait
                assert caught.value.code == "UPSTREAM_UNAVAILABLE"
            await upstream.close()

    run(work())


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_events_come_as_they_came(end: str) -> None:
    """Priming events, comments, messages in order with their bytes; the answer is the last."""
    events = [
        f"id: 1{end}data:{end}{end}",
        f": ping{end}{end}",
        f"event: message{end}data: {PROGRESS}{end}{end}",
        f"event: other{end}data: x{end}{end}",
        f"data: {result('1')}{end}{end}",
        f"id: 2{end}data: {result(1)}{end}{end}",
    ]

    bare = [True, True, False, True, False, False]

    async def work() -> None:
        parts = [chunk(event) for event in events]
        late = [chunk(f"data: {PROGRESS}{end}{end}"), chunk("")]
        async with scripted(writes(stream(), *parts, *late)) as server:
            upstream = HttpUpstream("up", server.url)
            for _ in range(3):
                reply = await upstream.relay().send(CALL, {})
                assert reply.streams
                items = [item async for item in reply]
                assert [item.event.raw.decode() for item in items if item.event] == events
                assert [item.frame is None for item in items] == bare
                await reply.close()
            assert {asked.path for asked in server.asked} == {"/mcp"}
            await upstream.close()

    run(work())


def test_a_connection_is_used_again_when_its_stream_has_ended() -> None:
    """After the answer the end of the stream is waited for, so that connections last."""
    end = asyncio.Event()

    async def script(talk: Talk, asked: Asked) -> None:
        await talk.write(stream(), chunk(f"data: {result(1)}\n\n"))
        if asked.number == 1:
            await end.wait()
        await talk.write(chunk(""))

    async def work() -> None:
        async with scripted(script) as server:
            upstream = HttpUpstream("up", server.url)
            for number in range(4):
                reply = await upstream.relay().send(CALL, {})
                assert len([item async for item in reply]) == 1
                if number == 1:
                    assert upstream._pool._idle == []
                    end.set()
                await eventually(lambda: bool(upstream._pool._idle))
            assert server.connections == 1
            await upstream.close()

    run(work())


def test_an_event_that_is_no_message_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """Bad data is logged, with control characters escaped, and what follows is read."""
    bad = '{"jsonrpc":"2.0","method":"a","method":"\\u001b"}'

    async def work() -> None:
        parts = [chunk(f"data: {bad}\n\n"), chunk(f"data: {result(1)}\n\n"), chunk("")]
        async with scripted(writes(stream(), *parts)) as server:
            upstream = HttpUpstream("up", server.url)
            items = [item async for item in await upstream.relay().send(CALL, {})]
            assert len(items) == 1
            await upstream.close()

    with caplog.at_level(logging.WARNING):
        run(work())
    assert "is no message and was left out" in caplog.text


@pytest.mark.parametrize("head", [MODERN, LEGACY])
def test_a_bad_event_at_the_end_is_an_error(head: dict[str, str]) -> None:
    """What should have been the answer cannot be read: OUTCOME_UNKNOWN says why."""

    async def work() -> None:
        async with scripted(writes(stream(), chunk('data: {"id":1\n\n'), chunk(""))) as server:
            upstream = HttpUpstream("up", server.url)
            reply = await upstream.relay().send(CALL, head)
            with pytest.raises(EnvelopeError, match="no JSON-RPC message") as caught:
                await anext(aiter(reply))
            assert caught.value.code == "OUTCOME_UNKNOWN"
            await reply.close()
            await upstream.close()

    run(work())


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("head", [MODERN, LEGACY])
def test_a_stream_may_end_before_its_answer(head: dict[str, str], whole: bool) -> None:
    """A proper end just ends; a broken stream is an error from 2026-07-28 on."""
    parts = [chunk(f"id: 1\ndata: {PROGRESS}\n\n"), chunk("") if whole else b"5\r\n"]

    async def work() -> None:
        async with scripted(writes(stream(), *parts, last=True)) as server:
            upstream = HttpUpstream("up", server.url)
            reply = aiter(await upstream.relay().send(CALL, head))
            assert (await anext(reply)).frame is not None
            if head is MODERN and not whole:
                with pytest.raises(EnvelopeError, match="broke off") as caught:
                    await anext(reply)
                assert caught.value.code == "OUTCOME_UNKNOWN"
            else:
                with pytest.raises(StopAsyncIteration):
                    await anext(reply)
            await upstream.close()
            assert len(server.asked) == 1

    run(work())


@pytest.mark.parametrize("waiting", [True, False])
@pytest.mark.parametrize("head", [MODERN, LEGACY])
def test_wanting_no_answer_cancels_the_request(head: dict[str, str], waiting: bool) -> None:
    """The connection closes; an older upstream is told by a message in the same session too."""

    async def script(talk: Talk, asked: Asked) -> bool | None:
        if asked.json["method"] == "notifications/cancelled":
            await talk.write(answer("", "202 Accepted"))
            return None
        if not waiting:
            await talk.write(stream(), chunk(": begun\n\n"))
        await talk.gone()
        return False

    async def work() -> None:
        async with scripted(script) as server:
            upstream = HttpUpstream("up", server.url)
            task = asyncio.create_task(upstream.relay().send(CALL, head))
            if waiting:
                await server.until(lambda: len(server.asked) == 1)
                task.cancel()
                await asyncio.wait([task])
            else:
                reply = await task
                await anext(aiter(reply))
                await reply.close()
                await reply.close()
                assert [item async for item in reply] == []
            await upstream.close()
            told = server.asked[1:]
            if head is MODERN:
                assert told == []
            else:
                (note_,) = told
                assert note_.json["params"]["requestId"] == 1
                assert note_.head["mcp-session-id"] == "s1"

    run(work())


def test_initialize_is_not_cancelled() -> None:
    """MCP forbids it: the connection is closed, and nothing said."""

    async def script(talk: Talk, asked: Asked) -> bool:
        await talk.gone()
        return False

    async def work() -> None:
        async with scripted(script) as server:
            upstream = HttpUpstream("up", server.url)
            task = asyncio.create_task(upstream.relay().send(INITIALIZE, {}))
            await server.until(lambda: len(server.asked) == 1)
            task.cancel()
            await asyncio.wait([task])
            await upstream.close()
            assert len(server.asked) == 1

    run(work())


def test_listening_and_ending_are_get_and_delete() -> None:
    """Both carry the client's session and no body; a stream is read until it ends."""

    async def script(talk: Talk, asked: Asked) -> None:
        if asked.method == "GET":
            await talk.write(stream(), chunk(f"id: 5\ndata: {PROGRESS}\n\n"), chunk(""))
        else:
            await talk.write(answer("", "204 No Content", kind="")[: -0 or None])

    async def work() -> None:
        async with scripted(script) as server:
            upstream = HttpUpstream("up", server.url)
            link = upstream.relay()
            reply = await link.listen({**LEGACY, "last-event-id": "4", "content-type": "x"})
            (item,) = [item async for item in reply]
            assert item.event is not None
            assert item.event.id == b"5"
            ended = await link.end(LEGACY)
            assert (ended.status, ended.body) == (204, b"")
            get, delete = server.asked
            assert (get.method, get.head["accept"]) == ("GET", "text/event-stream")
            assert get.head["last-event-id"] == "4"
            assert delete.method == "DELETE"
            for asked in (get, delete):
                assert asked.head["mcp-session-id"] == "s1"
                assert "content-type" not in asked.head
                assert "content-length" not in asked.head
            await upstream.close()

    run(work())


def test_streams_of_many_requests_are_kept_apart() -> None:
    """Fifty calls at once with interleaved progress: each gets its own, in order."""
    together = asyncio.Barrier(50)

    async def script(talk: Talk, asked: Asked) -> None:
        id = asked.json["id"]
        await talk.write(stream())
        await together.wait()
        for step in range(20):
            params = {"progressToken": id, "progress": step}
            message = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            await talk.write(chunk(f"data: {json.dumps(message)}\n\n"))
        await talk.write(chunk(f"data: {result(id)}\n\n"), chunk(""))

    async def one(upstream: HttpUpstream, id: int) -> None:
        reply = await upstream.relay().send(request("tools/call", id, name="t"), {})
        frames = [item.frame async for item in reply]
        assert all(frame is not None for frame in frames)
        params = [frame.params for frame in frames[:-1] if frame]
        assert [(p["progressToken"], p["progress"]) for p in params] == [(id, n) for n in range(20)]
        assert frames[-1] is not None
        assert frames[-1].id == id

    async def work() -> None:
        async with scripted(script) as server:
            upstream = HttpUpstream("up", server.url)
            await asyncio.gather(*(one(upstream, id) for id in range(50)))
            await upstream.close()

    run(work())


def test_a_notification_needs_no_answer() -> None:
    """202 gives nothing; other answers to a notification are no errors either."""

    async def work() -> None:
        async with scripted(writes(answer("ok", "200 OK"))) as server:
            upstream = HttpUpstream("up", server.url)
            reply = await upstream.relay().send(note("notifications/initialized"), LEGACY)
            assert [item async for item in reply] == []
            assert reply.body == b"ok"
            await upstream.close()

    run(work())
