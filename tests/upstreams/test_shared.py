"""Conversations that share children: nobody notices the others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.upstreams.conftest import Run
from tests.upstreams.peers import (
    META,
    ask,
    ended,
    following,
    frames,
    link,
    notification,
    request,
    upstream,
    values,
)  # fmt: skip

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import read_frame
from mcp_envelope.core.link import Link
from mcp_envelope.upstreams import room

_LOGS = {META + "logLevel": "info"}


def _telling(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def test_ids_and_tokens_of_clients_do_not_clash(run: Run) -> None:
    """Each client has its own 7, "7" and 0, as ids and as progress tokens, on one child."""

    async def work() -> None:
        async with upstream() as made:
            ids: list[object] = [7, "7", 0]
            links = [await made.connect(stateless=True) for _ in range(3)]
            sent = [
                (id, number, await opened.send(
                    request(id, "steps", {"progressToken": id}, count=10, mark=number), {}))
                for number, opened in enumerate(links) for id in ids
            ]  # fmt: skip
            pids = set()
            for id, number, reply in sent:
                *progress, answer = await values(reply)
                assert [p["params"]["progress"] for p in progress] == list(range(10))
                tokens = [p["params"]["progressToken"] for p in progress]
                assert all(token == id and type(token) is type(id) for token in tokens)
                assert answer["id"] == id
                assert type(answer["id"]) is type(id)
                assert answer["result"]["mark"] == number
                pids.add(answer["result"]["pid"])
            assert len(pids) == 1

    run(work())


def test_only_ids_and_tokens_are_touched(run: Run) -> None:
    """All other bytes of a message and of its answer stay what they were."""
    raw = (
        '{"vendor":1.0, "id":%s,"method":"seen", "jsonrpc":"2.0",\n'
        '"params":{"x":1.50,"_meta":{"a":"\\u00e9","progressToken":%s}} }'
    )
    said = '{"result":{"a":1.0,"b":12345678901234567890,"c":null}, "jsonrpc":"2.0","id":%s }'

    async def work() -> None:
        async with link(stateless=True) as opened:
            frame = read_frame((raw % ('"mine"', '"t"')).encode())
            (answer,) = await values(await opened.send(frame, {}))
            assert answer["id"] == "mine"
            assert answer["result"]["seen"] == [(raw % (1, 1)).replace("\n", " ") + "\n"]
            sent = request("mine", "raw", text=said % "@ID@" + "\n")
            (frame,) = await frames(await opened.send(sent, {}))
            assert frame.raw == (said % '"mine"').encode()

    run(work())


def test_subscriptions_are_told_apart(run: Run) -> None:
    """What belongs to a subscription reaches its client under the client's own id."""

    async def work() -> None:
        async with upstream() as made:
            links = [await made.connect(stateless=True) for _ in range(2)]
            frame = request("sub", "subscriptions/listen", {**_LOGS, "other": 1})
            replies = [await opened.send(frame, {}) for opened in links]
            for reply in replies:
                for method in ("subscriptions/acknowledged", "tools/list_changed"):
                    message = await following(reply)
                    assert message["method"] == f"notifications/{method}"
                    assert message["params"]["_meta"] == {META + "subscriptionId": "sub"}
            seen = (await ask(links[0], 1, "seen"))["seen"]
            assert len(seen) == 3  # one child: subscriptions do not keep logs to themselves
            assert all("logLevel" not in line and '"other":1' in line for line in seen[:2])
            # The server ends the first one by a cancellation, the second one by an answer.
            over = _telling("notifications/cancelled", requestId=1)
            meta = {META + "subscriptionId": 2}
            answer = {"jsonrpc": "2.0", "id": 2, "result": {"_meta": meta}}
            await ask(links[0], 2, "say", values=[over, answer])
            (first,) = await values(replies[0])
            assert first["params"]["requestId"] == "sub"
            (second,) = await values(replies[1])
            assert second["id"] == "sub"
            assert second["result"]["_meta"] == {META + "subscriptionId": "sub"}

    run(work())


def test_logs_reach_only_who_asked(run: Run) -> None:
    """Of requests side by side that ask for logs, each is with another child."""

    async def work() -> None:
        async with upstream(processes=3, idle=0.05) as made:
            links = [await made.connect(stateless=True) for _ in range(8)]

            async def one(number: int) -> int:
                frame = request(1, "steps", _LOGS, count=10, mark=number)
                *logs, answer = await values(await links[number].send(frame, {}))
                assert [log["params"]["data"] for log in logs] == [number] * 10
                assert answer["result"]["mark"] == number
                pid: int = answer["result"]["pid"]
                return pid

            pids = set(await asyncio.gather(*(one(number) for number in range(8))))
            assert len(pids) == 3
            first = (await ask(links[0], 1, "echo"))["pid"]
            for pid in pids - {first}:
                assert await ended(pid)
            assert (await ask(links[0], 1, "echo"))["pid"] == first

    run(work())


def test_logs_of_the_cancelled_are_nobodys(run: Run) -> None:
    """Who asks for logs after a cancelled request that did gets none of its logs."""
    log = _telling("notifications/message", level="info", data="not yours")

    async def work() -> None:
        async with link(stateless=True, processes=1) as opened:
            waiting = await opened.send(request(1, "hang", _LOGS, name="a"), {})
            turn = asyncio.create_task(opened.send(request(2, "echo", _LOGS), {}))
            await asyncio.sleep(0)
            assert not turn.done()
            await waiting.close()
            await values(await turn)
            assert (
                len(await values(await opened.send(request(3, "say", _LOGS, values=[log]), {})))
                == 1
            )
            await ask(opened, 4, "release", name="a")
            assert (
                len(await values(await opened.send(request(5, "say", _LOGS, values=[log]), {})))
                == 2
            )

    run(work())


def test_whoever_waits_its_turn_may_give_up(run: Run) -> None:
    """A request that waits for a child can be cancelled in each way, and others go on."""

    async def work() -> None:
        async with upstream(processes=1) as made:
            opened = await made.connect(stateless=True)
            other = await made.connect(stateless=True)
            waiting = await opened.send(request(1, "hang", _LOGS, name="a"), {})
            turns = [
                asyncio.create_task(one.send(request(id, "echo", _LOGS), {}))
                for id, one in enumerate([opened, opened, other, opened], 2)
            ]
            await asyncio.sleep(0)
            turns[0].cancel()
            await opened.send(notification("notifications/cancelled", requestId=3), {})
            await other.close()
            await ask(opened, 9, "release", name="a")
            assert len(await values(waiting)) == 1
            found = await asyncio.gather(*turns, return_exceptions=True)
            assert isinstance(found[0], asyncio.CancelledError)
            assert isinstance(found[1], EnvelopeError)
            assert found[1].code == "CANCELLED"
            assert isinstance(found[2], EnvelopeError)
            assert not isinstance(found[3], BaseException)
            assert len(await values(found[3])) == 1

    run(work())


def test_a_crash_gives_others_their_turn(run: Run) -> None:
    """Who waits for a child that crashes goes on with the next one."""

    async def work() -> None:
        async with link(stateless=True, processes=1) as opened:
            hung = await opened.send(request(1, "hang", _LOGS), {})
            turn = asyncio.create_task(opened.send(request(2, "echo", _LOGS), {}))
            dying = await opened.send(request(3, "die", code=9), {})
            for reply in (hung, dying):
                with pytest.raises(EnvelopeError, match="exit code 9"):
                    await values(reply)
            assert len(await values(await turn)) == 1

    run(work())


def test_closing_ends_the_waiting(run: Run) -> None:
    """Who still waits its turn when the upstream is closed is told so."""

    async def work() -> None:
        async with upstream(processes=1) as made:
            opened = await made.connect(stateless=True)
            await opened.send(request(1, "hang", _LOGS), {})
            turn = asyncio.create_task(opened.send(request(2, "echo", _LOGS), {}))
            await asyncio.sleep(0)
        with pytest.raises(EnvelopeError, match="closed"):
            await turn

    run(work())


def test_what_is_nobodys_is_dropped(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """It is never shown to a client that it may not be meant for; questions are refused."""
    stray = [
        _telling("notifications/message", level="info", data="x"),
        _telling("notifications/tools/list_changed"),
        _telling("notifications/progress", progressToken="x", progress=1),
        _telling("notifications/progress", progressToken={}, progress=1),
        _telling("notifications/cancelled", requestId=True),
        _telling("notifications/x", _meta={META + "subscriptionId": [1]}),
        {"jsonrpc": "2.0", "id": 99, "result": {}},
        {"jsonrpc": "2.0", "id": "1", "result": {}},
        {"jsonrpc": "2.0", "id": "q", "method": "roots/list"},
    ]

    async def work() -> None:
        async with link(stateless=True) as opened:
            listening = await opened.listen({})
            nothing = asyncio.ensure_future(values(listening))
            assert len(await values(await opened.send(request(1, "say", values=stray), {}))) == 1
            with pytest.raises(EnvelopeError, match="cannot be accepted"):
                await ask(opened, 1, "raw", text='{"jsonrpc":"2.0","id":@ID@,"result":NaN}\n')
            seen = (await ask(opened, 2, "seen"))["seen"]
            (refused,) = [line for line in seen if '"error"' in line]
            assert '"id":"q"' in refused
            assert "-32601" in refused
            await opened.close()
            assert await nothing == []

    run(work())
    assert len(caplog.records) == len(stray) + 1


def test_cancellations_name_the_right_request(run: Run) -> None:
    """A client's cancellation reaches the child under the child's id, or not at all."""

    async def work() -> None:
        async with upstream() as made:
            one, two = [await made.connect(stateless=True) for _ in range(2)]
            await one.send(request(7, "hang", name="a"), {})
            closed = await two.send(request(7, "hang", name="b"), {})
            for id in ("7", 8, None):
                await one.send(notification("notifications/cancelled", requestId=id), {})
            await one.send(notification("notifications/cancelled", requestId=7, reason="r"), {})
            await closed.close()
            seen = [
                line
                for line in (await ask(one, 1, "seen"))["seen"]
                if "notifications/cancel" in line
            ]
            assert len(seen) == 2
            assert '"requestId":1' in seen[0]
            assert '"reason":"r"' in seen[0]
            assert '"requestId":2' in seen[1]

    run(work())


def test_a_slow_consumer_stalls_nobody(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call of one that does not read ends with TOO_LARGE, those of others go on."""
    monkeypatch.setattr(room, "_MOST", 500)

    async def work() -> None:
        async with upstream() as made:
            one, two = [await made.connect(stateless=True) for _ in range(2)]
            slow = await one.send(request(1, "flood", _LOGS, count=2_000), {})
            assert (await ask(two, 1, "echo"))["pid"]
            with pytest.raises(EnvelopeError, match="taken in time") as caught:
                await values(slow)
            assert caught.value.code == "TOO_LARGE"
            seen = (await ask(two, 2, "seen"))["seen"]
            assert sum("notifications/cancelled" in line for line in seen) == 1

    run(work())


def test_many_at_once(run: Run) -> None:
    """200 requests of four clients with interleaved progress: nothing lost, doubled or mixed."""

    async def work() -> None:
        async with upstream() as made:
            links = [await made.connect(stateless=True) for _ in range(4)]

            async def one(opened: Link, client: int, number: int) -> None:
                mark = f"{client}/{number}"
                frame = request(number, "steps", {"progressToken": number}, count=5, mark=mark)
                *progress, answer = await values(await opened.send(frame, {}))
                assert [p["params"]["progress"] for p in progress] == list(range(5))
                assert {p["params"]["progressToken"] for p in progress} == {number}
                assert (answer["id"], answer["result"]["mark"]) == (number, mark)

            async with asyncio.TaskGroup() as group:
                for number in range(200):
                    group.create_task(one(links[number % 4], number % 4, number // 4))

    run(work())
