"""A conversation with a child of its own: each message finds its place, unchanged."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.upstreams.conftest import Run
from tests.upstreams.peers import (
    META,
    ask,
    following,
    frames,
    link,
    notification,
    request,
    upstream,
    values,
)  # fmt: skip

from mcp_envelope.core.document import parse
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, frame_of, read_frame
from mcp_envelope.core.link import Link
from mcp_envelope.upstreams.replies import Call


def _asking(id: object, method: str = "roots/list") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method}


def _telling(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def test_ids_of_all_kinds_are_told_apart(run: Run) -> None:
    """7, "7", 0 and an empty text are four requests, each with its own answer."""

    async def work() -> None:
        async with link() as opened:
            ids: list[object] = [7, "7", 0, ""]
            sent = [await opened.send(request(id, "hang", name=repr(id)), {}) for id in ids]
            with pytest.raises(EnvelopeError, match="in use"):
                await opened.send(request("7", "echo"), {})
            for id in reversed(ids):
                await ask(opened, "other", "release", name=repr(id))
            for id, reply in zip(ids, sent, strict=True):
                (answer,) = await values(reply)
                assert answer["id"] == id
                assert type(answer["id"]) is type(id)
                assert (reply.status, dict(reply.headers), reply.streams) == (200, {}, None)

    run(work())


def test_bytes_are_passed_on_as_they_are(run: Run) -> None:
    """Spelling of numbers, escapes and unknown members survive in both directions."""
    raw = b'{"vendor":1.0, "id":1,\r\n"jsonrpc":"2.0","method":"seen",'
    raw += b'"params":{"x":1.50,"y":"\\u00e9"}}'
    said = '{"result":{"a":1.0,"b":12345678901234567890,"c":null}, "jsonrpc":"2.0","id":2 }'

    async def work() -> None:
        async with link() as opened:
            (answer,) = await values(await opened.send(read_frame(raw), {}))
            assert answer["result"]["seen"] == [raw.decode().replace("\r\n", "  ") + "\n"]
            (frame,) = await frames(await opened.send(request(2, "raw", text=said + "\r\n"), {}))
            assert frame.raw == said.encode()

    run(work())


def test_progress_goes_to_its_request(run: Run) -> None:
    """Of requests side by side each has the progress of its own token, in order, answer last."""

    async def work() -> None:
        async with link() as opened:
            tokens: list[object] = [1, "1", 0, "x"]
            replies = [
                await opened.send(
                    request(i, "steps", {"progressToken": token}, count=20, mark=i), {}
                )
                for i, token in enumerate(tokens)
            ]
            for i, token in enumerate(tokens):
                *progress, answer = await values(replies[i])
                assert [p["params"]["progress"] for p in progress] == list(range(20))
                assert all(p["params"]["progressToken"] == token for p in progress)
                assert all(type(p["params"]["progressToken"]) is type(token) for p in progress)
                assert answer["result"]["mark"] == i

    run(work())


def test_what_names_no_request(run: Run) -> None:
    """It goes onto the only request there is, before its answer; else to whoever listens."""
    log = _telling("notifications/message", level="info", data="x")
    change = _telling("notifications/tools/list_changed")

    async def work() -> None:
        async with link() as opened:
            listening = await opened.listen({})
            own = await opened.send(request("mcp-envelope/1", "hang", name="own"), {})
            found = await values(
                await opened.send(request(1, "say", values=[log, change, _asking(1)]), {})
            )
            assert found[:-1] == [log, _asking(1)]
            assert await following(listening) == change
            waiting = await opened.send(request(2, "hang"), {})
            found = await values(await opened.send(request(3, "say", values=[log, _asking(3)]), {}))
            assert len(found) == 1
            assert await following(listening) == log
            assert await following(listening) == _asking(3)
            await waiting.close()
            await own.close()

    run(work())


def test_logs_go_to_who_asked_for_them(run: Run) -> None:
    """In 2026-07-28 logs go to the one request that wants some, changes to their subscription."""

    async def work() -> None:
        async with link() as opened:
            listening = await opened.send(request("sub", "subscriptions/listen"), {})
            await opened.send(request(1, "hang"), {})
            meta = {META + "logLevel": "info"}
            found = await values(
                await opened.send(request(2, "steps", meta, count=3, mark="m"), {})
            )
            assert [m["method"] for m in found[:-1]] == ["notifications/message"] * 3
            first, second = await following(listening), await following(listening)
            assert first["method"] == "notifications/subscriptions/acknowledged"
            assert second["method"] == "notifications/tools/list_changed"
            over = _telling("notifications/cancelled", requestId="sub")
            await ask(opened, 3, "say", values=[over])
            assert await values(listening) == [over]

    run(work())


def test_questions_of_the_server_are_answered(run: Run) -> None:
    """A server's request may have the id of one of ours; the answer to it goes to the server."""

    async def work() -> None:
        async with link() as opened:
            waiting = await opened.send(request(7, "hang", name="a"), {})
            # The peer answers "say" only after both questions.
            reply = await opened.send(request(8, "say", values=[_asking(7), _asking("7")]), {})
            await values(reply)
            listening = await opened.listen({})
            for id in (7, "7"):
                assert await following(listening) == _asking(id)
                answer = frame_of({"jsonrpc": "2.0", "id": id, "result": {}})
                for _ in range(2):  # the second is nobody's, and stays here
                    assert (await opened.send(answer, {})).status == 202
            seen = (await ask(opened, 9, "seen"))["seen"]
            assert sum('"result"' in line for line in seen) == 2
            await ask(opened, 10, "release", name="a")
            assert (await following(waiting))["result"] == {"released": True}

    run(work())


def test_mail_waits_for_a_listener(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """A thousand messages wait for somebody to listen; of more the oldest are dropped."""

    async def work() -> None:
        async with link() as opened:
            await opened.send(request(1, "hang"), {})
            await ask(opened, 2, "flood", count=1_003)
            listening = await opened.listen({})
            data = [(await following(listening))["params"]["data"] for _ in range(1_000)]
            assert data == [str(number) for number in range(3, 1_003)]
            await listening.close()
            await ask(opened, 3, "flood", count=1)
            again = await opened.listen({})
            assert (await following(again))["params"]["data"] == "0"
            waiting = asyncio.ensure_future(anext(aiter(again)))
            await asyncio.sleep(0)
            await opened.close()
            with pytest.raises(StopAsyncIteration):
                await waiting

    run(work())
    assert "nobody listened" in caplog.text


def test_a_slow_consumer_stops_the_child(run: Run) -> None:
    """What is not taken is not read: the child waits, and then nothing is missing."""

    async def work() -> None:
        async with link() as opened:
            count = 5_000
            reply = await opened.send(request(1, "flood", count=count, size=500), {})
            first = await following(reply)
            assert isinstance(reply, Call)
            while not reply.held:  # noqa: ASYNC110 - the test's own timeout bounds it
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.05)
            assert 1_000 < len(reply) < 1_500
            found = [first, *await values(reply)]
            assert [m["params"]["data"].rstrip("x") for m in found[:-1]] == [
                str(number) for number in range(count)
            ]
            slow = await opened.send(request(2, "flood", count=count, size=500), {})
            await following(slow)
            await slow.close()
            assert (await ask(opened, 3, "echo"))["pid"]

    run(work())


def test_a_child_that_ends_while_it_is_not_read_loses_nothing(run: Run) -> None:
    """What a child wrote before its end is read in full, however slowly."""

    async def work() -> None:
        async with link() as opened:
            reply = await opened.send(request(1, "flood", count=1_300, size=10), {})
            dying = await opened.send(request(2, "die", code=4), {})
            assert len(await frames(reply)) >= 1
            with pytest.raises(EnvelopeError, match="exit code 4"):
                await values(dying)

    run(work())


def test_closing_a_reply_cancels(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """The child is told, once; what it still says to it is dropped without a word."""

    async def work() -> None:
        async with link() as opened:
            meta = {"progressToken": "t"}
            waiting = await opened.send(request(1, "hang", meta, name="a"), {})
            await waiting.close()
            await waiting.close()
            told = await opened.send(request(2, "hang", name="b"), {})
            accepted = await opened.send(
                notification("notifications/cancelled", requestId=2, reason="mine"), {}
            )
            assert accepted.status == 202
            assert await values(accepted) == []
            await accepted.close()
            await told.close()
            late = _telling("notifications/progress", progressToken="t", progress=1)
            found = await values(await opened.send(request(3, "say", values=[late]), {}))
            assert len(found) == 1
            await ask(opened, 4, "release", name="a")
            await ask(opened, 5, "release", name="b")
            seen = (await ask(opened, 6, "seen"))["seen"]
            cancelled = [parse(line.encode()).value for line in seen if "cancelled" in line]
            assert [c["params"]["requestId"] for c in cancelled] == [1, 2]
            assert cancelled[1]["params"]["reason"] == "mine"

    run(work())
    assert not caplog.records


def test_garbage_is_logged_and_dropped(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """What is no message disturbs nobody, unless it was an answer: that call then ends."""
    text = 'hello \x1b[31m\r\n\r\n\n[1]\n{"id":1}\n{"jsonrpc":"2.0","id":99,"result":{}}\n'

    async def work() -> None:
        async with link() as opened:
            found = await values(await opened.send(request(1, "raw", text=text, answer=True), {}))
            assert len(found) == 1
            spoilt = '{"jsonrpc":"2.0","id":@ID@,"result":{"x":NaN}}\n'
            with pytest.raises(EnvelopeError, match="cannot be accepted") as caught:
                await ask(opened, 2, "raw", text=spoilt)
            assert caught.value.code == "OUTCOME_UNKNOWN"
            assert (await ask(opened, 3, "echo"))["pid"]

    with caplog.at_level(logging.WARNING):
        run(work())
    assert len(caplog.records) == 5
    assert "\x1b" not in caplog.text


async def _open(opened: Link) -> None:
    """Open a conversation of an older revision."""
    await ask(opened, 0, "initialize", protocolVersion="2025-11-25")
    await opened.send(notification("notifications/initialized"), {})
    await ask(opened, 1, "logging/setLevel", level="error")
    await ask(opened, 2, "logging/setLevel", level="debug")


async def _crash(opened: Link) -> None:
    with pytest.raises(EnvelopeError, match="exit code 1"):
        await ask(opened, "crash", "die", code=1)


def test_a_conversation_survives_a_restart(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """A new child is told once how the conversation began, before what is sent to it next."""

    async def work() -> None:
        async with link() as opened:
            await _open(opened)
            listening = await opened.listen({})
            await _crash(opened)
            # These are for the child that is gone, and start no other.
            await opened.send(notification("notifications/cancelled", requestId=1), {})
            asks = [asyncio.create_task(ask(opened, i, "echo")) for i in range(5)]
            found = await asyncio.gather(*asks)
            assert len({answer["pid"] for answer in found}) == 1
            seen = [parse(line.encode()).value for line in (await ask(opened, 9, "seen"))["seen"]]
            assert [m["method"] for m in seen[:3]] == [
                "initialize", "notifications/initialized", "logging/setLevel",
            ]  # fmt: skip
            assert seen[0]["params"] == {"protocolVersion": "2025-11-25"}
            assert seen[2]["params"] == {"level": "debug"}
            assert [m["method"] for m in seen[3:]] == ["echo"] * 5 + ["seen"]
            nothing = asyncio.ensure_future(following(listening))
            await asyncio.sleep(0)
            assert not nothing.done()
            nothing.cancel()

    run(work())
    assert "opened anew" in caplog.text


def test_a_new_beginning_is_not_preceded_by_the_old(run: Run) -> None:
    """A client that initializes again after a crash is not spoken for."""

    async def work() -> None:
        async with link() as opened:
            await _open(opened)
            await _crash(opened)
            await ask(opened, 0, "initialize", protocolVersion="2025-06-18")
            assert len((await ask(opened, 1, "seen"))["seen"]) == 2

    run(work())


def test_a_restart_that_is_refused(run: Run, tmp_path: Path) -> None:
    """If the new child does not take part, whoever waits gets UPSTREAM_UNAVAILABLE."""
    code = (
        "import json,os,sys\n"
        "first = not os.path.exists(sys.argv[1])\n"
        "open(sys.argv[1], 'w').close()\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line)\n"
        "    if m['method'] == 'die': os._exit(1)\n"
        "    a = {'result': {}} if first else {'error': {'code': 1, 'message': 'no'}}\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], **a}), flush=True)\n"
    )

    async def work() -> None:
        async with upstream(sys.executable, "-c", code, str(tmp_path / uuid4().hex)) as made:
            opened = await made.connect(stateless=False)
            await ask(opened, 0, "initialize")
            await _crash(opened)
            asks = [asyncio.create_task(ask(opened, i, "echo")) for i in range(3)]
            for failed in await asyncio.gather(*asks, return_exceptions=True):
                assert isinstance(failed, EnvelopeError)
                assert failed.code == "UPSTREAM_UNAVAILABLE"
                assert "refused initialize" in failed.message

    run(work())


def test_closing_while_it_starts_again(run: Run, tmp_path: Path) -> None:
    """Whoever waits for a child that never answers is told when the conversation is closed."""
    code = (
        "import json, os, sys, time\n"
        "if os.path.exists(sys.argv[1]): time.sleep(60)\n"
        "open(sys.argv[1], 'w').close()\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line)\n"
        "    if m['method'] == 'die': os._exit(1)\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': {}}), flush=True)\n"
    )

    async def work() -> None:
        place = str(tmp_path / uuid4().hex)
        async with upstream(sys.executable, "-S", "-c", code, place, grace=0.2) as made:
            opened = await made.connect(stateless=False)
            await ask(opened, 0, "initialize")
            await _crash(opened)
            asks = [asyncio.create_task(ask(opened, i, "echo")) for i in range(3)]
            await asyncio.sleep(0.1)
        for failed in await asyncio.gather(*asks, return_exceptions=True):
            assert isinstance(failed, EnvelopeError)
            assert failed.code == "UPSTREAM_UNAVAILABLE"

    run(work())


def test_many_at_once(run: Run) -> None:
    """200 requests over four conversations, with interleaved progress: all is where it belongs."""

    async def work() -> None:
        async with upstream() as made:
            links = [await made.connect(stateless=False) for _ in range(4)]

            async def one(opened: Link, number: int) -> None:
                frame: Frame = request(
                    number, "steps", {"progressToken": number}, count=5, mark=number
                )
                *progress, answer = await values(await opened.send(frame, {}))
                assert [p["params"]["progress"] for p in progress] == list(range(5))
                assert {p["params"]["progressToken"] for p in progress} == {number}
                assert (answer["id"], answer["result"]["mark"]) == (number, number)

            async with asyncio.TaskGroup() as group:
                for number in range(200):
                    group.create_task(one(links[number % 4], number // 4))

    run(work())
