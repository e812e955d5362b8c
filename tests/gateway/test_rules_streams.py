"""Streams of events: not held back, filled where nothing is said, and taken up again."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tests.gateway.rig import REVISIONS, STATELESS, Rig, plan, rigged
from tests.gateway.verdicts import until_heard, until_run
from tests.gateway.wire import Stream

from mcp_envelope.core.sse import event_of
from mcp_envelope.transports import http, http_replay
from mcp_envelope.transports.http_replay import Streams

KEPT = "2025-11-25"
LABEL = "dev.mcp-envelope/record"
RESULT = b'{"jsonrpc":"2.0","id":@ID@,"result":{"content":[]}}'
FIELD = re.compile(rb"^(id|data|retry): ?(.*?)\r?$", re.MULTILINE)


def step(number: int) -> bytes:
    """Progress, as the puppet is to say it."""
    params = b'{"progressToken":@TOKEN@,"progress":%d}' % number
    return b'{"jsonrpc":"2.0","method":"notifications/progress","params":%b}' % params


def stepping(rig: Rig, *steps: int, **how: Any) -> Any:
    """A call that tells of its progress."""
    does = plan(*(step(number) for number in steps), **how)
    return rig.call("free", {}, plan=does, _meta={"progressToken": "t"})


def fields(block: bytes) -> dict[str, bytes]:
    """The fields of an event."""
    return {name.decode(): value for name, value in FIELD.findall(block)}


def said_in(block: bytes) -> Any:
    """The message in an event."""
    return json.loads(fields(block)["data"])


def progress_in(blocks: list[bytes]) -> list[int]:
    """The steps of which events tell."""
    told = [said_in(block) for block in blocks if fields(block).get("data")]
    return [each["params"]["progress"] for each in told if "method" in each]


async def message_of(stream: Stream) -> bytes:
    """The next event that has data."""
    while not fields(block := await stream.block()).get("data"):
        assert block, "the stream has ended"
    return block


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("upstream", ["child", "http"])
def test_an_event_arrives_before_the_next_is_made(
    upstream: str, revision: str, tmp_path: Path
) -> None:
    """The server goes on only when the client has what it said; no proxy is to hold it back."""
    how: dict[str, Any] = {"then": "hang"} if upstream == "child" else {"how": "slow"}

    async def work() -> None:
        async with rigged("http", upstream, revision, tmp_path) as rig:
            message = stepping(rig, 1, 2, **how)
            async with rig.stream(message) as stream:
                assert stream.head["x-accel-buffering"] == "no"
                assert stream.head["content-type"].startswith("text/event-stream")
                assert said_in(await message_of(stream))["params"]["progress"] == 1
                await rig.tell("notifications/release")
                rest = await stream.rest()
                assert progress_in(rest) == [2]
                assert upstream == "http" or LABEL in said_in(rest[-1])["result"]["_meta"]

    asyncio.run(work())


@pytest.mark.parametrize("revision", REVISIONS)
def test_comments_come_as_far_as_the_client(revision: str, tmp_path: Path) -> None:
    """Those of an upstream that speaks HTTP: they keep the connection open all the way."""

    async def work() -> None:
        async with rigged("http", "http", revision, tmp_path) as rig:
            plain = plan(step(1), RESULT, how="sse")
            said = await rig.ask(rig.call("free", {}, plan=plain, _meta={"progressToken": 1}))
            assert said.http is not None
            assert said.http.body.startswith(b": hello\n\nid: 0\n")
            assert re.search(rb"\nid: 1\r?\n", said.http.body)

    asyncio.run(work())


@pytest.mark.parametrize("revision", REVISIONS)
def test_silence_is_filled_in_front_of_pipes(revision: str, tmp_path: Path) -> None:
    """A comment now and then while a call says nothing; the answer comes on the same stream."""

    async def work() -> None:
        async with (
            rigged("http", "child", revision, tmp_path) as rig,
            rig.stream(rig.call(plan=plan(then="hang"))) as stream,
        ):
            while await stream.block() != b": ping":
                pass
            assert stream.head["x-accel-buffering"] == "no"
            await rig.tell("notifications/release")
            blocks = [block for block in await stream.rest() if block != b": ping"]
            assert LABEL in said_in(blocks[-1])["result"]["_meta"]

    with patch.object(http, "_PING_EVERY", 0.02), patch.object(http, "_WATCH_AFTER", 0.0):
        asyncio.run(work())


@pytest.mark.parametrize("revision", REVISIONS[:2])
def test_silence_is_filled_where_somebody_listens(revision: str, tmp_path: Path) -> None:
    """On the stream of a GET too, which no proxy may hold back either."""

    async def work() -> None:
        async with (
            rigged("http", "child", revision, tmp_path) as rig,
            rig.stream(method="GET", accept="text/event-stream") as stream,
        ):
            assert stream.head["x-accel-buffering"] == "no"
            assert await stream.block() == b": ping"

    with patch.object(http, "_PING_EVERY", 0.02):
        asyncio.run(work())


# -- streams that are taken up again ---------------------------------------------------------


async def resumed(rig: Rig, last: bytes | str) -> list[bytes]:
    """What comes on a stream that is taken up again, up to its end."""
    text = last if isinstance(last, str) else last.decode()
    async with rig.stream(method="GET", last_event_id=text) as stream:
        assert stream.status == 200
        assert stream.head["x-accel-buffering"] == "no"
        return await stream.rest()


@pytest.mark.parametrize("late", [False, True], ids=["while it runs", "when it is over"])
@pytest.mark.parametrize("seen", [0, 1, 2])
def test_a_stream_in_front_of_pipes_is_taken_up_again(
    seen: int, late: bool, tmp_path: Path
) -> None:
    """It begins with an id and a time to wait; what was not seen comes once, the label with it."""

    async def work() -> None:
        async with rigged("http", "child", KEPT, tmp_path) as rig:
            start = len(rig.book.lines)
            async with rig.stream(stepping(rig, 1, 2, then="hang")) as stream:
                first = fields(await stream.block())
                assert (first["data"], first["retry"].isdigit()) == (b"", True)
                last = first["id"]
                for number in range(1, seen + 1):
                    found = fields(await stream.block())
                    assert json.loads(found["data"])["params"]["progress"] == number
                    last = found["id"]
            if late:
                await rig.tell("notifications/release")
                await rig.book.after(start, 2)
                blocks = await resumed(rig, last)
            else:
                taking = asyncio.create_task(resumed(rig, last))
                await until_run(rig, 1)
                await rig.tell("notifications/release")
                blocks = await taking
            assert progress_in(blocks) == [1, 2][seen:]
            answer = said_in(blocks[-1])
            assert answer["id"] == rig.count
            assert answer["result"]["_meta"][LABEL]["seq"] == rig.book.entries()[-1]["seq"]
            ids = [fields(block)["id"] for block in blocks]
            assert len(set(ids)) == len(ids)
            assert await resumed(rig, ids[-1]) == []

    asyncio.run(work())


def test_a_stream_that_is_taken_up_again_is_filled_too(tmp_path: Path) -> None:
    """With comments, while there is nothing to say."""

    async def work() -> None:
        async with rigged("http", "child", KEPT, tmp_path) as rig:
            async with rig.stream(stepping(rig, 1, then="hang")) as stream:
                last = fields(await stream.block())["id"].decode()
            async with rig.stream(method="GET", last_event_id=last) as stream:
                assert progress_in([await stream.block()]) == [1]
                assert await stream.block() == b": ping"
                await rig.tell("notifications/release")
                blocks = [block for block in await stream.rest() if block != b": ping"]
                assert "result" in said_in(blocks[-1])

    with patch.object(http, "_PING_EVERY", 0.02):
        asyncio.run(work())


def test_a_call_that_waits_for_its_turn_has_a_stream_to_come_back_to(tmp_path: Path) -> None:
    """However the stream began: its first event has an id."""

    async def work() -> None:
        async with rigged("http", "child", KEPT, tmp_path) as rig:
            first = asyncio.create_task(rig.ask(rig.call(plan=plan(then="hang"))))
            await until_run(rig, 1)
            async with rig.stream(rig.call()) as stream:
                blocks = [await stream.block(), await stream.block()]
                await rig.tell("notifications/release")
                blocks += await stream.rest()
            told = [block for block in blocks if block != b": ping"]
            assert len(told) < len(blocks)
            assert [fields(block)["data"] == b"" for block in told] == [True, False]
            assert "result" in said_in(told[-1])
            assert await resumed(rig, fields(told[0])["id"]) == told[1:]
            await first

    with patch.object(http, "_PING_EVERY", 0.02), patch.object(http, "_WATCH_AFTER", 0.0):
        asyncio.run(work())


@pytest.mark.parametrize(
    "last", ["", "x", "-", "1-", "-1", "1", "1-99", "7-0", "1-0-0", "9" * 50, "²-0", "1 - 0", "0-0"]
)
def test_an_unknown_event_id_gives_a_stream_of_its_own(last: str, tmp_path: Path) -> None:
    """Nothing of what was said before comes again, and the door takes no harm."""

    async def work() -> None:
        async with rigged("http", "child", KEPT, tmp_path) as rig:
            await rig.ask(rig.call())
            async with rig.stream(method="GET", last_event_id=last) as stream:
                assert stream.status == 200
                assert await stream.block() == b": ping"
            said = await rig.ask(rig.call())
            assert "result" in said.message

    with patch.object(http, "_PING_EVERY", 0.02):
        asyncio.run(work())


def test_nobody_takes_up_the_stream_of_another_session(tmp_path: Path) -> None:
    """An id of another session's event is one that is not known."""

    async def work() -> None:
        async with rigged("http", "child", KEPT, tmp_path) as rig:
            said = await rig.ask(rig.call())
            assert said.http is not None
            last = fields(said.http.body)["id"].decode()
            await rig.shake_hands()
            async with rig.stream(method="GET", last_event_id=last) as stream:
                assert await stream.block() == b": ping"

    with patch.object(http, "_PING_EVERY", 0.02):
        asyncio.run(work())


@pytest.mark.parametrize("revision", ["2025-06-18", STATELESS])
def test_only_one_revision_has_such_streams(revision: str, tmp_path: Path) -> None:
    """In the others no event has an id, for nobody would come back with it."""

    async def work() -> None:
        async with rigged("http", "child", revision, tmp_path) as rig:
            does = plan(step(1), RESULT)
            said = await rig.ask(rig.call("free", {}, plan=does, _meta={"progressToken": 1}))
            assert said.http is not None
            assert b"id: " not in said.http.body.replace(b'"id": ', b"")

    asyncio.run(work())


def test_few_streams_are_kept() -> None:
    """Those are forgotten first that are done, then the oldest: a long call has many beside it."""
    streams = Streams()
    first, second = streams.open(), streams.open()
    first.add(None)
    second.add(None)
    second.finish()
    assert streams.find("1-0") == (first, 1)
    for _ in range(http_replay._MOST_STREAMS - 1):
        streams.open().add(None)
    assert streams.find("1-0") == (first, 1)
    assert streams.find("2-0") is None
    streams.open()
    assert streams.find("1-0") is None
    assert streams.find("3-0") is not None


def test_few_bytes_are_kept_of_one_stream() -> None:
    """Its oldest events are forgotten, and whoever has not seen them cannot come back."""
    streams = Streams()
    with patch.object(http_replay, "_MOST_BYTES", 1000):
        stream = streams.open()
        stream.add(None)
        for _ in range(20):
            stream.add(b"x" * 100)
    assert stream.size <= 1000
    assert streams.find("1-0") is None
    assert streams.find("1-19") is not None
    assert len(stream.after(20)) == 1
    assert stream.after(20) == [event_of(b"x" * 100, id=b"1-20").raw]


def test_few_bytes_are_kept_of_all_streams() -> None:
    """However many grow side by side."""
    streams = Streams()
    with patch.object(http_replay, "_MOST_BYTES", 1000):
        opened = [streams.open() for _ in range(10)]
        for stream in opened:
            stream.add(None)
            stream.add(b"x" * 400)
    kept = [stream for stream in opened if streams.find(f"{stream.name}-0") is not None]
    assert kept == opened[-2:]


def test_a_client_that_only_gets_a_part_hears_the_upstream_once(tmp_path: Path) -> None:
    """The call is made once, however often its stream is taken up again."""

    async def work() -> None:
        async with rigged("http", "child", KEPT, tmp_path) as rig:
            async with rig.stream(stepping(rig, 1, then="hang")) as stream:
                last = fields(await stream.block())["id"].decode()
            for _ in range(3):
                async with rig.stream(method="GET", last_event_id=last) as stream:
                    assert progress_in([await stream.block()]) == [1]
            await rig.tell("notifications/release")
            assert len(await resumed(rig, last)) == 2
            await until_heard(rig, b"notifications/release")
            assert sum(b'"tools/call"' in raw for raw in rig.heard) == 1
            assert not any(b"notifications/cancelled" in raw for raw in rig.heard)

    asyncio.run(work())
