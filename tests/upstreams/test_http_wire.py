"""The HTTP client against servers that misbehave."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Coroutine
from typing import Any

import pytest
from tests.upstreams import http_peers
from tests.upstreams.http_peers import (
    LOOPS,
    Asked,
    Script,
    Talk,
    answer,
    chunk,
    eventually,
    request,
    result,
    scripted,
    stream,
)

from mcp_envelope.core.document import Limits
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.upstreams import http_wire
from mcp_envelope.upstreams.http import HttpUpstream

CALL = request("tools/call", name="t")
LOOP = "asyncio"
LIST = request("tools/list")
OK = answer(result(1))


@pytest.fixture(autouse=True, params=LOOPS)
def _loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here holds on both event loops."""
    monkeypatch.setitem(globals(), "LOOP", request.param)


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run it on the loop of this round."""
    http_peers.run(work, LOOP)


def replies(*parts: bytes, last: bool = False) -> Script:
    """A script that writes these parts for every request, and closes after that if asked to."""

    async def script(talk: Talk, asked: Asked) -> bool | None:
        await talk.write(*parts)
        return not last

    return script


async def ask(upstream: HttpUpstream, frame=CALL) -> list:  # type: ignore[no-untyped-def,type-arg]
    """The items of the reply to a message."""
    reply = await upstream.relay().send(frame, {"content-type": "application/json"})
    return [item async for item in reply]


def expect(script: Script, code: str, match: str, frame=CALL) -> None:  # type: ignore[no-untyped-def]
    """A message to this server must fail with this code and message, and leave nothing open."""

    async def work() -> None:
        async with scripted(script) as server:
            upstream = HttpUpstream("up", server.url)
            with pytest.raises(EnvelopeError, match=match) as caught:
                await ask(upstream, frame)
            assert caught.value.code == code
            await upstream.close()
            await server.until(lambda: server.open == 0)

    run(work())


@pytest.mark.parametrize(
    "parts",
    [
        [OK],
        [OK[:5], OK[5:17], OK[17:60], OK[60:]],
        [OK[i : i + 1] for i in range(len(OK))],
        [b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n", OK],
        [
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n",
            b"transfer-encoding: chunked\r\n\r\n",
            *[chunk(result(1)[i : i + 3]) for i in range(0, len(result(1)), 3)],
            b"0\r\nsome: trailer\r\n\r\n",
        ],
    ],
    ids=["whole", "pieces", "bytes", "interim", "chunked"],
)
def test_a_response_is_read_in_whatever_pieces_it_comes(parts: list[bytes]) -> None:
    """Length or chunks, in one piece or bytewise, after interim responses: it is the same."""

    async def work() -> None:
        async with scripted(replies(*parts)) as server:
            upstream = HttpUpstream("up", server.url)
            for _ in range(3):
                (item,) = await ask(upstream)
                assert item.frame.raw == result(1).encode()
            assert server.connections == 1
            await upstream.close()

    run(work())


def test_the_end_of_the_connection_may_end_a_body() -> None:
    """A body without a length ends with its connection, which then is not used again."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"

    async def work() -> None:
        async with scripted(replies(head, result(1).encode(), last=True)) as server:
            upstream = HttpUpstream("up", server.url)
            assert len(await ask(upstream)) == len(await ask(upstream)) == 1
            assert server.connections == 2
            await upstream.close()

    run(work())


def test_a_connection_that_was_closed_is_not_written_to() -> None:
    """Close after an answer, announced or not: the next call takes another connection."""

    async def work(script: Script) -> None:
        async with scripted(script) as server:
            upstream = HttpUpstream("up", server.url)
            for _ in range(5):
                assert len(await ask(upstream)) == 1
                await server.until(lambda: server.open == 0)
            assert server.connections == 5
            await upstream.close()

    async def rude(talk: Talk, asked: Asked) -> bool:
        await talk.write(OK)
        talk.reset()
        return False

    run(work(replies(OK, last=True)))
    run(work(replies(answer(result(1), "200 OK", "connection: close"), last=True)))
    run(work(rude))


def test_the_end_of_a_connection_is_seen_before_the_event_loop_sees_it() -> None:
    """What waits unread in the kernel counts: the loop had no turn between close and call."""

    async def work() -> None:
        async with scripted(replies(OK)) as server:
            upstream = HttpUpstream("up", server.url)
            await ask(upstream)
            (idle,) = upstream._pool._idle
            assert idle.usable()
            assert idle._transport is not None
            place = idle._transport.get_extra_info("socket")
            with socket.socket(fileno=socket.dup(place.fileno())) as twin:
                twin.shutdown(socket.SHUT_RD)
            assert not idle.usable()
            await ask(upstream)
            assert server.connections == 2
            await upstream.close()

    run(work())


@pytest.mark.parametrize("reset", [False, True])
def test_a_call_that_was_lost_is_not_repeated(reset: bool) -> None:
    """Close or RST after the request, before any byte: nobody knows, so it is said."""

    async def script(talk: Talk, asked: Asked) -> bool:
        if reset:
            talk.reset()
        return False

    expect(script, "OUTCOME_UNKNOWN", "closed the connection before it answered")


@pytest.mark.parametrize("method", ["tools/list", "ping", "server/discover", "initialize"])
def test_what_only_reads_is_asked_a_second_time(method: str) -> None:
    """A reading method whose connection dies is sent once more, on a fresh connection."""

    async def script(talk: Talk, asked: Asked) -> bool | None:
        if asked.number == 0:
            talk.reset()
            return False
        await talk.write(OK)
        return None

    async def work() -> None:
        async with scripted(script) as server:
            upstream = HttpUpstream("up", server.url)
            assert len(await ask(upstream, request(method))) == 1
            assert [asked.json["method"] for asked in server.asked] == [method] * 2
            await upstream.close()

    run(work())


def test_what_only_reads_is_asked_no_third_time() -> None:
    """A server that always drops the connection gets two tries."""

    async def script(talk: Talk, asked: Asked) -> bool:
        assert asked.number < 2
        return False

    expect(script, "OUTCOME_UNKNOWN", "before it answered", LIST)


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


@pytest.mark.parametrize(
    "parts,match",
    [
        ([HEAD + b"content-length: 500\r\n\r\n" + result(1).encode()], "broke off in the middle"),
        ([HEAD + b"transfer-encoding: chunked\r\n\r\n", b"5\r\nab"], "broke off in the middle"),
        ([HEAD + b"content-length: 5\r\n\r\n" + result(1).encode()], "is no JSON-RPC message"),
        ([HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\nab"], "what is no HTTP"),
        ([HEAD + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\nab"], "no HTTP"),
        ([b"SSH-2.0-OpenSSH_9.2\r\n"], "what is no HTTP"),
        ([b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"], "no HTTP"),
        ([b"HTTP/1.1 200 OK\r\n" + b"x-a: " + b"a" * 70_000], "65,536 bytes of headers"),
        ([HEAD + b"x-a: " + b"a" * 70_000 + b"\r\ncontent-length: 0\r\n\r\n"], "of headers"),
        ([b"HTTP/1.1 100 Continue\r\n\r\n" * 4_000], "bytes of headers"),
        (
            [HEAD + b"transfer-encoding: chunked\r\n\r\n1;" + b"e" * 70_000 + b"\r\na\r\n"],
            "bytes of headers",
        ),
        (
            [HEAD + b"transfer-encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n" * 12_000],
            "bytes of headers",
        ),
        ([answer("")], "answered with nothing"),
        ([answer("[]")], "batches are not accepted"),
        ([answer('{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}')], "no JSON-RPC message"),
        ([answer("{}")], "no JSON-RPC message"),
        ([answer(b"\x1f\x8b", "200 OK", "content-encoding: gzip")], "compressed"),
        ([stream("content-encoding: gzip"), chunk("x")], "compressed"),
    ],
)
def test_what_cannot_be_read_is_said_to_be_so(parts: list[bytes], match: str) -> None:
    """Half bodies, wrong lengths, endless heads, other protocols, no JSON: OUTCOME_UNKNOWN."""
    expect(replies(*parts, last=True), "OUTCOME_UNKNOWN", match)


def test_an_answer_has_a_largest_size() -> None:
    """A body beyond the limit for results is not read to its end, and its connection closed."""

    async def script(talk: Talk, asked: Asked) -> bool:
        await talk.write(HEAD + b"content-length: 1000000000\r\n\r\n" + b" " * 3_000)
        await talk.gone()
        return False

    async def work() -> None:
        async with scripted(script) as server:
            upstream = HttpUpstream("up", server.url, limits=Limits(result=2_000))
            with pytest.raises(EnvelopeError, match="more than the 2,000 bytes") as caught:
                await ask(upstream)
            assert caught.value.code == "TOO_LARGE"
            await server.until(lambda: server.open == 0)
            await upstream.close()

    run(work())


def test_a_second_answer_is_for_nobody() -> None:
    """Two answers to one request: the first counts, and the connection is not used again."""

    async def work() -> None:
        async with scripted(replies(OK + answer(result(1, evil=True)))) as server:
            upstream = HttpUpstream("up", server.url)
            for _ in range(3):
                (item,) = await ask(upstream)
                assert item.frame.value["result"] == {}
            assert server.connections == 3
            await upstream.close()

    run(work())


def test_bytes_that_nobody_asked_for_close_the_connection() -> None:
    """An idle connection that speaks up is dropped, not read as the next call's answer."""
    wait = asyncio.Event()

    async def script(talk: Talk, asked: Asked) -> None:
        await talk.write(OK)
        if asked.number == 0:
            await wait.wait()
            await talk.write(answer(result(1, evil=True)))
            await talk.gone()

    async def work() -> None:
        async with scripted(script) as server:
            upstream = HttpUpstream("up", server.url)
            await ask(upstream)
            wait.set()
            await server.until(lambda: server.open == 0)
            (item,) = await ask(upstream)
            assert item.frame.value["result"] == {}
            await upstream.close()

    run(work())


def test_an_answer_before_the_request_was_read_closes_the_connection() -> None:
    """A 413 while the body is still on its way is passed on; the rest of the body is not sent."""
    refusal = answer("too much", "413 Content Too Large", kind="text/plain")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(refusal)
        await asyncio.sleep(0.05)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(20_000_000)
        writer.close()
        done.set()

    done = asyncio.Event()

    async def work() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1024)
        async with server:
            port = server.sockets[0].getsockname()[1]
            upstream = HttpUpstream("up", f"http://127.0.0.1:{port}/")
            big = request("tools/call", name="t", arguments={"a": "x" * 100_000_000})
            reply = await upstream.relay().send(big, {})
            assert (reply.status, reply.body) == (413, b"too much")
            await done.wait()
            assert not upstream._pool._idle
            await upstream.close()

    run(work())


def test_cancelling_who_waits_closes_the_connection() -> None:
    """A connection whose answer is still to come is closed, never given to the next call."""

    async def script(talk: Talk, asked: Asked) -> bool | None:
        if asked.number == 0:
            await talk.gone()
            return False
        await talk.write(OK)
        return None

    async def work() -> None:
        async with scripted(script) as server:
            upstream = HttpUpstream("up", server.url)
            task = asyncio.create_task(ask(upstream, request("initialize")))
            await server.until(lambda: len(server.asked) == 1)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            await server.until(lambda: server.open == 0)
            await ask(upstream)
            assert server.connections == 2
            await upstream.close()

    run(work())


@pytest.mark.parametrize(
    "url,match",
    [
        ("http://127.0.0.1:{free}/mcp?token=s3cret", r"127.0.0.1:\d+/mcp refuses connections"),
        ("http://no-such-host.invalid/", "host name that cannot be resolved"),
        ("https://127.0.0.1:{port}/", "does not agree on TLS|cannot be reached"),
    ],
)
def test_where_nothing_was_sent_that_is_said(url: str, match: str) -> None:
    """Refused, not resolved, no TLS: UPSTREAM_UNAVAILABLE, with a reason and what to do."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async def work() -> None:
        with socket.create_server(("127.0.0.1", 0)) as place:
            free = place.getsockname()[1]
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            upstream = HttpUpstream("up", url.format(free=free, port=port))
            with pytest.raises(EnvelopeError, match=match) as caught:
                await ask(upstream)
            assert caught.value.code == "UPSTREAM_UNAVAILABLE"
            assert caught.value.hint
            assert "s3cret" not in str(caught.value) + repr(upstream)
            await upstream.close()

    run(work())


def test_connecting_has_an_end() -> None:
    """A listener that accepts nothing any more is given up after connect_timeout."""

    async def work() -> None:
        with socket.socket() as place:
            place.bind(("127.0.0.1", 0))
            place.listen(0)
            port = place.getsockname()[1]
            with socket.create_connection(("127.0.0.1", port)):
                upstream = HttpUpstream("up", f"http://127.0.0.1:{port}/", connect_timeout=0.1)
                with pytest.raises(EnvelopeError, match=r"cannot be reached within 0\.1 s"):
                    await ask(upstream)
                await upstream.close()

    run(work())


def test_connections_are_used_last_in_first_out_and_kept_in_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twenty calls at once take twenty connections; only so many are kept, and none over time."""
    monkeypatch.setattr("mcp_envelope.upstreams.http_pool._MOST_IDLE", 5)
    monkeypatch.setattr("mcp_envelope.upstreams.http_pool._SWEEP", 0.01)
    together = asyncio.Barrier(20)

    async def script(talk: Talk, asked: Asked) -> None:
        if asked.number < 20:
            await together.wait()
        await talk.write(OK)

    async def work() -> None:
        async with scripted(script) as server:
            upstream = HttpUpstream("up", server.url)
            await asyncio.gather(*(ask(upstream) for _ in range(20)))
            assert server.connections == 20
            assert len(upstream._pool._idle) <= 5
            last = upstream._pool._idle[-1]
            await ask(upstream)
            assert upstream._pool._idle[-1] is last
            for idle in upstream._pool._idle:
                idle.until = 0.0
            await server.until(lambda: server.open == 0)
            assert not upstream._pool._open
            await upstream.close()

    run(work())


@pytest.mark.parametrize(
    "value,seconds",
    [(None, 30), ("timeout=5, max=100", 4), ("max=3", 30), ("timeout=1", 0), ("timeout=x", 30),
     ("timeout=999999999999", 30), ("Timeout=3", 2), ("", 30)],
)  # fmt: skip
def test_a_connection_is_kept_for_less_than_the_server_says(
    value: str | None, seconds: float
) -> None:
    """`Keep-Alive: timeout` less a second, and at most half a minute."""
    assert http_wire._lifetime(value) == seconds


def test_reading_stops_while_nobody_takes_what_was_read() -> None:
    """Of a fast stream no more than a bound is kept in memory; it goes on when it is read."""
    event = b"data: " + json.dumps({"jsonrpc": "2.0", "method": "n", "params": {"a": "x" * 100_000}}
                                   ).encode() + b"\n\n"  # fmt: skip
    written = 0

    async def script(talk: Talk, asked: Asked) -> None:
        nonlocal written
        await talk.write(stream())
        for _ in range(300):
            await talk.write(chunk(event))
            written += 1
        await talk.write(chunk(f"data: {result(1)}\n\n"), chunk(""))

    async def work() -> None:
        async with scripted(script) as server:
            upstream = HttpUpstream("up", server.url)
            reply = await upstream.relay().send(CALL, {})
            before = -1
            while written != before:
                before = written
                await asyncio.sleep(0.05)
            assert written < 150
            assert reply._response._unread < 3_000_000
            items = [item async for item in reply]
            assert len(items) == 301
            await eventually(lambda: bool(upstream._pool._idle))
            await ask(upstream, LIST)
            assert server.connections == 1
            await upstream.close()

    run(work())


def test_a_large_event_comes_through_whole() -> None:
    """A result of 5 MB in one event, in many pieces, byte for byte."""
    text = result(1, text="ü" * 2_500_000)
    raw = f"event: message\ndata: {text}\n\n".encode()

    async def script(talk: Talk, asked: Asked) -> None:
        await talk.write(stream(), *[chunk(raw[i : i + 9_999]) for i in range(0, len(raw), 9_999)])
        await talk.write(chunk(""))

    async def work() -> None:
        async with scripted(script) as server:
            upstream = HttpUpstream("up", server.url)
            (item,) = await ask(upstream)
            assert item.frame.raw == text.encode()
            await upstream.close()

    run(work())


def test_closing_leaves_nothing_open() -> None:
    """Idle connections, calls under way and open streams: all sockets are closed by close()."""

    async def script(talk: Talk, asked: Asked) -> bool | None:
        name = asked.json["method"]
        if name == "idle":
            await talk.write(OK)
            return None
        if name == "stream":
            await talk.write(stream(), chunk(": hello\n\n"))
        await talk.gone()
        return False

    async def work() -> None:
        async with scripted(script) as server:
            upstream = HttpUpstream("up", server.url)
            calls = [asyncio.create_task(ask(upstream, request("waits"))) for _ in range(3)]
            streams = await upstream.relay().send(request("stream"), {})
            await anext(aiter(streams))
            await ask(upstream, request("idle"))
            await server.until(lambda: len(server.asked) == 5)
            await upstream.close()
            assert not upstream._pool._open
            for call in calls:
                with pytest.raises(EnvelopeError, match="before it answered"):
                    await call
            assert [item async for item in streams] == []
            with pytest.raises(EnvelopeError, match="the gateway is closing"):
                await ask(upstream)

    run(work())


def test_what_is_said_about_foreign_bytes_is_short() -> None:
    """Error messages quote the parser, not the upstream."""

    async def work() -> None:
        async with scripted(replies(b"\x1b[31m" * 1_000, last=True)) as server:
            upstream = HttpUpstream("up", server.url)
            with pytest.raises(EnvelopeError) as caught:
                await ask(upstream)
            assert re.fullmatch(r"[ -~]{1,300}", caught.value.message)
            await upstream.close()

    run(work())
