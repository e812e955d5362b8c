"""The client's transport: headers, sessions, streams that are taken up again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from tests.upstreams.http_peers import (
    INITIALIZE,
    INITIALIZED,
    Asked,
    Script,
    Scripted,
    Talk,
    answer,
    chunk,
    eventually,
    note,
    request,
    result,
    run,
    scripted,
    stream,
)

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame
from mcp_envelope.core.hops import SUSPENDED
from mcp_envelope.core.link import Item, Reply, Upstream
from mcp_envelope.core.mcp_headers import param_headers
from mcp_envelope.upstreams import http_session
from mcp_envelope.upstreams.http import HttpUpstream
from mcp_envelope.upstreams.http_client import ClientLink
from mcp_envelope.upstreams.http_wire import Response

MODERN = "2026-07-28"
CALL = request("tools/call", name="t")
NONE = answer("", "405 Method Not Allowed", kind="")
Special = Callable[[Talk, Asked], Awaitable[bool | None]]


def news(number: int) -> str:
    """A notification as an event."""
    message = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"n": number}}
    return f"id: n{number}\ndata: {json.dumps(message)}\n\n"


def legacy(special: Special | None = None, *, get: Special | None = None) -> Script:
    """A server with sessions `s1`, `s2` …; ``special`` answers requests beyond the handshake."""
    sessions = 0

    async def script(talk: Talk, asked: Asked) -> bool | None:
        nonlocal sessions
        if asked.method == "DELETE":
            await talk.write(answer("", "200 OK", kind=""))
        elif asked.method == "GET":
            if get is not None:
                return await get(talk, asked)
            await talk.write(NONE)
        elif asked.json.get("method") == "initialize":
            sessions += 1
            body = result(asked.json["id"], protocolVersion="2025-06-18", capabilities={})
            await talk.write(answer(body, "200 OK", f"mcp-session-id: s{sessions}"))
        elif "id" not in asked.json:
            await talk.write(answer("", "202 Accepted", kind=""))
        elif special is not None:
            return await special(talk, asked)
        else:
            await talk.write(answer(result(asked.json["id"])))
        return None

    return script


def seams(upstream: HttpUpstream) -> Upstream:
    """For the type checker: it is what the gateway takes for an upstream."""
    return upstream


def begun_by(link: ClientLink) -> bool:
    """Whether the only request under way has begun to be answered."""
    ((way,),) = link._open.values()
    response = getattr(way, "__self__", None)
    assert isinstance(response, Response)
    return bool(response.status)


async def frames(link: ClientLink, frame: Frame) -> list[Frame]:
    """The messages that come back for one."""
    return [item.frame async for item in await link.send(frame, {}) if item.frame is not None]


@asynccontextmanager
async def talking(script: Script) -> AsyncIterator[tuple[Scripted, ClientLink]]:
    """A conversation with this server, after its handshake."""
    async with scripted(script) as server:
        upstream = HttpUpstream("up", server.url)
        link = await upstream.connect(stateless=False)
        await frames(link, INITIALIZE)
        await frames(link, INITIALIZED)
        yield server, link
        await upstream.close()


def test_the_session_and_its_version_go_with_every_message() -> None:
    """Not with initialize, but with all after it; and the session is deleted at the end."""

    async def work() -> None:
        async with talking(legacy()) as (server, link):
            assert len(await frames(link, CALL)) == 1
            await server.until(lambda: len(server.asked) >= 4)
            await link.close()
            await link.close()
            first, *rest = server.asked
            assert "mcp-session-id" not in first.head
            assert "mcp-protocol-version" not in first.head
            assert {asked.method for asked in rest} == {"POST", "GET", "DELETE"}
            for asked in rest:
                assert asked.head["mcp-session-id"] == "s1"
                assert asked.head["mcp-protocol-version"] == "2025-06-18"
            assert first.head["accept"] == "application/json, text/event-stream"
            assert [asked.method for asked in rest].count("GET") == 1

    run(work())


def test_a_server_without_sessions_gets_none() -> None:
    """Where initialize gives no session, none is sent and none deleted."""

    async def script(talk: Talk, asked: Asked) -> None:
        body = result(asked.json["id"], protocolVersion="2025-06-18")
        await talk.write(answer(body))

    async def work() -> None:
        async with scripted(script) as server:
            upstream = HttpUpstream("up", server.url)
            link = await upstream.connect(stateless=False)
            await frames(link, INITIALIZE)
            await frames(link, CALL)
            await upstream.close()
            assert [asked.method for asked in server.asked] == ["POST", "POST"]
            assert "mcp-session-id" not in server.asked[1].head

    run(work())


def test_modern_requests_carry_their_headers() -> None:
    """Version, method, name and parameters, encoded where they are not plain; no session."""
    schema = {"properties": {"r": {"type": "string", "x-mcp-header": "Region"}}}

    async def script(talk: Talk, asked: Asked) -> None:
        await talk.write(answer(result(asked.json.get("id")), "200 OK", "mcp-session-id: no"))

    async def work() -> None:
        async with scripted(script) as server:
            upstream = HttpUpstream("up", server.url)
            link = await upstream.connect(stateless=True)
            call = request("tools/call", 1, MODERN, name="ü", arguments={"r": "eu"})
            reply = await link.send(call, param_headers(schema, {"r": "eu"}))
            assert [item async for item in reply]
            await frames(link, request("resources/read", 2, MODERN, uri="a:b"))
            await frames(link, note("notifications/progress"))
            await upstream.close()
            names = ("mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-region")
            assert [[asked.head.get(name) for name in names] for asked in server.asked] == [
                [MODERN, "tools/call", "=?base64?w7w=?=", "eu"],
                [MODERN, "resources/read", "a:b", None],
                [MODERN, "notifications/progress", None, None],
            ]
            assert all("mcp-session-id" not in asked.head for asked in server.asked)

    run(work())


@pytest.mark.parametrize("begun", [False, True])
def test_a_modern_cancellation_closes_the_stream(begun: bool) -> None:
    """It is not POSTed: the connection closes, and the reply ends without an answer."""

    async def script(talk: Talk, asked: Asked) -> bool:
        if begun:
            await talk.write(stream(), chunk(": on the way\n\n"))
        await talk.gone()
        return False

    async def work() -> None:
        async with scripted(script) as server:
            upstream = HttpUpstream("up", server.url)
            link = await upstream.connect(stateless=False)
            call = request("tools/call", "7", MODERN, name="t")
            task = asyncio.create_task(frames(link, call))
            await server.until(lambda: len(server.asked) == 1)
            if begun:
                await eventually(lambda: begun_by(link))
            await frames(link, note("notifications/cancelled", requestId=7))
            assert not task.done()
            await frames(link, note("notifications/cancelled", requestId="7"))
            assert await task == []
            await server.until(lambda: server.open == 0)
            assert len(server.asked) == 1
            assert link._open == {}
            await upstream.close()

    run(work())


@pytest.mark.parametrize("end", [chunk(""), b"7\r\n"])
def test_a_stream_that_was_closed_is_taken_up_again(end: bytes) -> None:
    """SSE polling: GET with the last event's id, as often as it takes, until the answer comes."""

    async def special(talk: Talk, asked: Asked) -> bool:
        await talk.write(stream(), chunk("id: e1\nretry: 10\ndata:\n\n"), chunk(news(1)), end)
        return False

    async def get(talk: Talk, asked: Asked) -> bool | None:
        last = asked.head.get("last-event-id")
        if last is None:
            await talk.write(NONE)
            return None
        tail = f"id: e9\ndata: {result(1)}\n\n" if last == "n3" else news(3)
        await talk.write(stream(), chunk(tail), end)
        return False

    async def work() -> None:
        async with talking(legacy(special, get=get)) as (server, link):
            found = [each for each in await frames(link, CALL) if each.method != SUSPENDED]
            assert [frame.params.get("n") for frame in found] == [1, 3, None]
            assert found[-1].id == 1
            lasts = [asked.head.get("last-event-id") for asked in server.asked]
            assert [last for last in lasts if last] == ["n1", "n3"]

    run(work())


@pytest.mark.parametrize(
    "events,gets,match",
    [
        (": nothing\n\n", [], "closed the stream before it answered"),
        ("id: 1\nretry: 1\ndata:\n\n", [404], "HTTP 404"),
        ("id: 1\nretry: 1\ndata:\n\n", [405], "HTTP 405"),
        ("id: 1\nretry: 1\ndata:\n\n", [500] * 5, "HTTP 500"),
    ],
)
def test_a_stream_that_cannot_be_taken_up_again_is_an_error(
    events: str, gets: list[int], match: str
) -> None:
    """Without an event's id, or where the upstream will not: OUTCOME_UNKNOWN."""

    async def special(talk: Talk, asked: Asked) -> None:
        await talk.write(stream(), chunk(events), chunk(""))

    async def get(talk: Talk, asked: Asked) -> None:
        if "last-event-id" in asked.head:
            await talk.write(answer("", f"{gets.pop()} Oh", kind=""))
        else:
            await talk.write(NONE)

    async def work() -> None:
        async with talking(legacy(special, get=get)) as (_, link):
            with pytest.raises(EnvelopeError, match=match) as caught:
                await frames(link, CALL)
            assert caught.value.code == "OUTCOME_UNKNOWN"
            assert gets == []
            assert link._open == {}

    run(work())


def test_giving_up_while_a_stream_is_taken_up_again() -> None:
    """close() ends the wait for the next attempt, and cancels at the upstream."""

    async def special(talk: Talk, asked: Asked) -> None:
        await talk.write(stream(), chunk("id: 1\nretry: 30000\ndata:\n\n"), chunk(""))

    async def work() -> None:
        async with talking(legacy(special)) as (server, link):
            reply = await link.send(CALL, {})
            assert (await anext(reply)).event is not None
            task = asyncio.create_task(anext(reply, None))
            await asyncio.sleep(0.01)
            await reply.close()
            assert await task is None
            await server.until(
                lambda: server.asked[-1].json.get("method") == "notifications/cancelled"
            )

    run(work())


async def rest_of(reply: Reply) -> list[Item]:
    """What still comes."""
    return [item async for item in reply]


@pytest.mark.parametrize("resumed", [False, True])
def test_closing_ends_the_wait_for_a_stream_that_is_taken_up_again(resumed: bool) -> None:
    """Between the streams, and on the second one, the call ends with its conversation."""
    retry = 1 if resumed else 30_000

    async def special(talk: Talk, asked: Asked) -> None:
        await talk.write(stream(), chunk(f"id: 1\nretry: {retry}\ndata:\n\n"), chunk(""))

    async def get(talk: Talk, asked: Asked) -> bool | None:
        if "last-event-id" not in asked.head:
            await talk.write(NONE)
            return None
        await talk.write(stream(), chunk(news(2)))
        await talk.gone()
        return False

    async def work() -> None:
        async with talking(legacy(special, get=get)) as (_, link):
            reply = await link.send(CALL, {})
            for _ in range(3 if resumed else 1):
                await anext(reply)
            task = asyncio.create_task(rest_of(reply))
            await asyncio.sleep(0.01)
            await link.close()
            assert [item.frame.method for item in await task if item.frame] in ([], [SUSPENDED])
            assert link._open == {}

    run(work())


def test_the_get_stream_is_kept_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """It opens after the handshake, and again after each end, from the last event on."""
    monkeypatch.setattr(http_session, "_FIRST_PAUSE", 0.01)
    gets = 0

    async def get(talk: Talk, asked: Asked) -> bool:
        nonlocal gets
        gets += 1
        if gets == 3:
            await talk.write(answer("", "503 Busy", kind=""))
            return True
        await talk.write(stream(), chunk(news(gets)))
        if gets == 4:
            await talk.gone()
        return False  # in the middle of the chunks

    async def work() -> None:
        async with talking(legacy(get=get)) as (server, link):
            listened = aiter(await link.listen({}))
            found = [await anext(listened) for _ in range(3)]
            assert [item.frame.params["n"] for item in found if item.frame] == [1, 2, 4]
            lasts = [a.head.get("last-event-id") for a in server.asked if a.method == "GET"]
            assert lasts == [None, "n1", "n2", "n2"]
            await link.close()
            with pytest.raises(StopAsyncIteration):
                await anext(listened)

    run(work())


def test_a_session_that_is_gone_is_opened_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """404: one handshake for all who noticed, and each message once more in the new session."""

    async def special(talk: Talk, asked: Asked) -> None:
        if asked.head["mcp-session-id"] == "s1":
            error = {"jsonrpc": "2.0", "id": "x", "error": {"code": -32600, "message": "gone"}}
            await talk.write(answer(json.dumps(error), "404 Not Found"))
        else:
            await talk.write(answer(result(asked.json["id"], s=asked.head["mcp-session-id"])))

    async def work() -> None:
        async with talking(legacy(special)) as (server, link):
            calls = [frames(link, request("tools/call", id, name="t")) for id in range(1, 6)]
            found = await asyncio.gather(*calls)
            assert [(f.id, f.value["result"]["s"]) for (f,) in found] == [
                (id, "s2") for id in range(1, 6)
            ]
            posts = [asked.json for asked in server.asked if asked.method == "POST"]
            openings = [post for post in posts if post.get("method") == "initialize"]
            assert len(openings) == 2
            assert openings[0]["params"] == openings[1]["params"]
            assert openings[1]["id"] not in range(6)
            notes = [post for post in posts if post.get("method") == "notifications/initialized"]
            assert len(notes) == 2

    run(work())


def test_a_session_that_cannot_be_opened_anew_is_an_error() -> None:
    """The message reached nobody: UPSTREAM_UNAVAILABLE. A second 404 is no reason to go on."""

    async def gone(talk: Talk, asked: Asked) -> None:
        await talk.write(answer("", "404 Not Found", kind=""))

    async def shut(talk: Talk, asked: Asked) -> bool | None:
        if asked.number > 1 and asked.json.get("method") == "initialize":
            return False
        return await legacy(gone)(talk, asked)

    async def work(script: Script, match: str, count: int) -> None:
        async with talking(script) as (server, link):
            with pytest.raises(EnvelopeError, match=match) as caught:
                await frames(link, CALL)
            assert caught.value.code == "UPSTREAM_UNAVAILABLE"
            calls = [a for a in server.asked if b"tools/call" in a.body]
            assert len(calls) == count

    run(work(shut, "is gone, and there is no other", 1))
    run(work(legacy(gone), "HTTP 404.*check the path", 2))


@pytest.mark.parametrize(
    "status,code",
    [(400, "OUTCOME_UNKNOWN"), (401, "UPSTREAM_UNAVAILABLE"), (403, "UPSTREAM_UNAVAILABLE"),
     (404, "UPSTREAM_UNAVAILABLE"), (405, "OUTCOME_UNKNOWN"), (429, "UPSTREAM_UNAVAILABLE"),
     (500, "OUTCOME_UNKNOWN"), (502, "OUTCOME_UNKNOWN"), (503, "OUTCOME_UNKNOWN"),
     (504, "OUTCOME_UNKNOWN"), (307, "UPSTREAM_UNAVAILABLE"), (304, "OUTCOME_UNKNOWN")],
)  # fmt: skip
def test_a_status_without_a_message_is_an_error(status: int, code: str) -> None:
    """Only where surely nothing was done is that said; notifications are no reason to fail."""

    async def script(talk: Talk, asked: Asked) -> None:
        await talk.write(answer("oh", f"{status} Oh", kind="text/plain")
                         if status != 304 else b"HTTP/1.1 304 Oh\r\n\r\n")  # fmt: skip

    async def work() -> None:
        async with scripted(script) as server:
            upstream = HttpUpstream("up", server.url)
            link = await upstream.connect(stateless=True)
            with pytest.raises(EnvelopeError, match=str(status)) as caught:
                await frames(link, request("tools/call", 1, MODERN, name="t"))
            assert caught.value.code == code
            if status != 307:
                assert await frames(link, note("notifications/x")) == []
            await upstream.close()

    run(work())


@pytest.mark.parametrize("id", ["null", '"server-error"', "7"])
def test_an_error_that_could_not_name_the_request_is_its_answer(id: str) -> None:
    """A 400 with a message beside it: the client gets it under the id that it waits for."""
    body = '{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"no","data":1.0}}'

    async def script(talk: Talk, asked: Asked) -> None:
        await talk.write(answer(body % id, "400 Bad Request"))

    async def work() -> None:
        async with scripted(script) as server:
            upstream = HttpUpstream("up", server.url)
            link = await upstream.connect(stateless=True)
            (found,) = await frames(link, request("tools/call", 7, MODERN, name="t"))
            assert found.raw == (body % 7).encode()
            await upstream.close()

    run(work())


def test_an_older_request_is_cancelled_by_the_clients_own_message() -> None:
    """notifications/cancelled is POSTed as it is; the stream stays open for the answer."""
    told = asyncio.Event()

    async def special(talk: Talk, asked: Asked) -> None:
        await talk.write(stream(), chunk(news(1)))
        await told.wait()
        await talk.write(chunk(f"data: {result(1)}\n\n"), chunk(""))

    async def work() -> None:
        async with talking(legacy(special)) as (server, link):
            task = asyncio.create_task(frames(link, CALL))
            await server.until(lambda: b"tools/call" in server.asked[-1].body)
            cancelled = note("notifications/cancelled", requestId=1, vendor=1)
            await frames(link, cancelled)
            assert cancelled.raw in [asked.body for asked in server.asked]
            told.set()
            assert len(await task) == 2

    run(work())


def test_closing_ends_what_waits() -> None:
    """Calls under way end, the stream ends, the session is deleted, within moments."""

    async def special(talk: Talk, asked: Asked) -> bool:
        await talk.write(stream(), chunk(news(1)))
        await talk.gone()
        return False

    async def get(talk: Talk, asked: Asked) -> bool:
        await talk.write(stream(), chunk(news(2)))
        await talk.gone()
        return False

    async def work() -> None:
        async with talking(legacy(special, get=get)) as (server, link):
            reply = await link.send(CALL, {})
            assert (await anext(reply)).frame is not None
            task = asyncio.create_task(anext(reply, None))
            listened = aiter(await link.listen({}))
            assert (await anext(listened)).frame is not None
            await asyncio.sleep(0)
            await link.close()
            assert await task is None
            assert server.asked[-1].method == "DELETE"
            await server.until(lambda: server.open <= 1)

    run(work())
