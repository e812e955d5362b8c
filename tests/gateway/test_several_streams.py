"""What several servers say by themselves, and what goes to all of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.crew import Crew, Parts, crew
from tests.gateway.rig import STATELESS, Book, plan

from mcp_envelope.core.frame import frame_of
from mcp_envelope.gateway import gathering, questions
from mcp_envelope.gateway.gathering import Inbox
from mcp_envelope.gateway.questions import Questions

ID = "io.modelcontextprotocol/subscriptionId"
OLDER = [pytest.param("2025-06-18", marks=pytest.mark.slow), "2025-11-25"]
CHANGED = b'{"jsonrpc":"2.0","method":"notifications/%b/list_changed","params":{"_meta":{"%b":%b}}}'


async def halt(rig: Crew) -> None:
    """Stop the gateway: at the end of input it would wait for what is under way."""
    assert rig.stop is not None
    await rig.stop()


def question(method: str, id: str, **params: Any) -> bytes:
    """A server's question, before it answers."""
    message = {"jsonrpc": "2.0", "id": json.loads(id), "method": method, "params": params}
    return json.dumps(message).encode()


def asking(rig: Crew, server: str, *says: bytes, then: str = "hang") -> bytes:
    """A call in whose course a server says something, and which ends when it is told."""
    return json.dumps(rig.call(f"{server}__free", plan=plan(*says, then=then))).encode()


@pytest.mark.parametrize("revision", OLDER)
def test_questions_of_two_servers_with_one_id_are_told_apart(revision: str, tmp_path: Path) -> None:
    """Sampling, elicitation, roots and ping: each server gets its answer, under its own id."""
    methods = ("sampling/createMessage", "elicitation/create", "roots/list", "ping")

    async def work() -> None:
        async with crew("stdio", revision, tmp_path, {"a": {}, "b": {}}) as rig:
            for number, method in enumerate(methods):
                for server in "ab":
                    token = {"_meta": {"progressToken": "t"}}
                    rig.write(asking(rig, server, question(method, "7", of=server, **token)))
                asked = [await rig.line(), await rig.line()]
                assert len({each["id"] for each in asked}) == 2
                assert {each["method"] for each in asked} == {method}
                for each in reversed(asked):
                    shown = each["params"]["_meta"]["progressToken"]
                    await rig.tell("notifications/progress", progressToken=shown, progress=1)
                    await rig.answer(each["id"], {"of": each["params"]["of"]})
                for server in "ab":
                    heard = await rig.until(server, "notifications/progress", number + 1)
                    assert heard[-1]["params"]["progressToken"] == "t"
                    await answered(rig, server, number + 1)
                await rig.tell("notifications/release")
                assert "result" in await rig.line()
                assert "result" in await rig.line()

    asyncio.run(work())


async def answered(rig: Crew, server: str, count: int) -> None:
    """A server has got that many answers, all its own."""
    async with asyncio.timeout(5):
        found: list[Any] = []
        while len(found) < count:
            await asyncio.sleep(0.01)
            found = [each for each in rig.read_by(server) if "result" in each]
    assert len(found) == count
    assert all(each["id"] == 7 and each["result"] == {"of": server} for each in found)


def test_a_question_that_is_taken_back_is_named_as_the_client_knows_it(tmp_path: Path) -> None:
    """And the answer to a question that nobody asked reaches nobody."""
    cancelled = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}'

    async def work() -> None:
        async with crew("stdio", "2025-11-25", tmp_path, {"a": {}, "b": {}}) as rig:
            rig.write(asking(rig, "a", question("roots/list", "7"), cancelled))
            asked, taken_back = await rig.line(), await rig.line()
            assert taken_back["params"]["requestId"] == asked["id"]
            for wrong in (7, "7", "a/99", "b/1"):
                await rig.answer(wrong, {})
            await rig.tell("notifications/progress", progressToken="none", progress=1)
            await rig.tell("notifications/release")
            assert "result" in await rig.line()
            for server in "ab":
                assert not [each for each in rig.read_by(server) if "result" in each]
                assert not rig.read_by(server, "notifications/progress")

    asyncio.run(work())


def test_over_http_a_question_rides_on_its_call(tmp_path: Path) -> None:
    """Its answer is POSTed, and finds the server."""
    text = question("elicitation/create", '"q"', of="b")

    async def work() -> None:
        async with crew("http", "2025-11-25", tmp_path, {"a": {}, "b": {}}) as rig:
            call = json.loads(asking(rig, "b", text))
            asking_now = asyncio.ensure_future(rig.ask(call))
            await rig.until("b", "tools/call")
            await asyncio.sleep(0.05)
            await rig.answer("b/1", {"of": "b"})
            found: list[Any] = []
            async with asyncio.timeout(5):
                while not found:
                    found = [each for each in rig.read_by("b") if "result" in each]
                    await asyncio.sleep(0.01)
            assert found == [{"jsonrpc": "2.0", "id": "q", "result": {"of": "b"}}]
            await rig.tell("notifications/release")
            messages = [json.loads(each) for each in (await asking_now).messages]
            assert [each.get("method") for each in messages] == ["elicitation/create", None]
            assert messages[0]["id"] == "b/1"

    asyncio.run(work())


@pytest.mark.parametrize("door", ["stdio", "http"])
def test_what_goes_to_all_goes_to_all(door: str, tmp_path: Path) -> None:
    """Notifications of the client's, each once, and none before the handshake is over."""

    async def work() -> None:
        async with crew(door, "2025-11-25", tmp_path, {"a": {}, "b": {}}) as rig:
            await rig.tell("notifications/roots/list_changed")
            for server in "ab":
                await rig.until(server, "notifications/roots/list_changed")
                methods = [each.get("method") for each in rig.read_by(server)]
                assert methods == [
                    "initialize", "notifications/initialized", "notifications/roots/list_changed"
                ]  # fmt: skip

    asyncio.run(work())


@pytest.mark.parametrize("revision", OLDER)
def test_what_belongs_to_no_call_is_heard(revision: str, tmp_path: Path) -> None:
    """From each server, whichever speaks."""

    async def work() -> None:
        async with crew("stdio", revision, tmp_path, {"a": {}, "b": {}}) as rig:
            for server, what in (("b", b"tools"), ("a", b"prompts")):
                text = CHANGED % (what, b"x", b"1")
                rig.write(
                    asking(rig, server, text, b'{"jsonrpc":"2.0","id":@ID@,"result":{}}', then="")
                )
                found = [await rig.line(), await rig.line()]
                methods = {each.get("method") for each in found}
                assert f"notifications/{what.decode()}/list_changed" in methods

    asyncio.run(work())


async def stream(rig: Crew, server: str, what: bytes, subscription: object) -> None:
    """Let a server say on a subscription that a list of its has changed."""
    name = json.dumps(rig.read_by(server, "subscriptions/listen")[-1]["id"]).encode()
    text = CHANGED % (what, ID.encode(), name)
    rig.write(asking(rig, server, text, b'{"jsonrpc":"2.0","id":@ID@,"result":{}}', then=""))


LISTENS = {"a": {"listens": ["toolsListChanged", "resourceSubscriptions"]},
           "b": {"listens": ["toolsListChanged", "promptsListChanged"]}, "c": {}}  # fmt: skip
WANTED = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True,
          "resourceSubscriptions": ["x://1"]}  # fmt: skip


def test_a_subscription_over_several_is_one(tmp_path: Path) -> None:
    """Acknowledged first and once, by what any agrees to; a cancellation ends it everywhere."""

    async def work() -> None:
        async with crew("stdio", STATELESS, tmp_path, LISTENS) as rig:
            listen = rig.request("subscriptions/listen", {"notifications": WANTED})
            rig.write(json.dumps(listen).encode())
            told = await rig.line()
            assert told["method"] == "notifications/subscriptions/acknowledged"
            assert told["params"]["_meta"] == {ID: listen["id"]}
            wanted = {name: value for name, value in WANTED.items() if "resourcesL" not in name}
            assert told["params"]["notifications"] == wanted
            for server, what in (("b", b"prompts"), ("a", b"tools")):
                await stream(rig, server, what, listen["id"])
                found = [await rig.line(), await rig.line()]
                changed = next(each for each in found if "method" in each)
                assert changed["params"]["_meta"][ID] == listen["id"]
            await rig.tell("notifications/cancelled", requestId=listen["id"])
            for server in "ab":
                await rig.until(server, "notifications/cancelled")
            assert "result" in (await rig.ask(rig.request("ping"))).message

    asyncio.run(work())


def test_a_subscription_outlives_one_of_its_servers(tmp_path: Path) -> None:
    """It is followed again when it is back, and the client is told to look."""

    async def work() -> None:
        async with crew("stdio", STATELESS, tmp_path, LISTENS) as rig:
            listen = rig.request("subscriptions/listen", {"notifications": WANTED})
            rig.write(json.dumps(listen).encode())
            await rig.line()
            rig.write(asking(rig, "a", then="die"))
            found = [await rig.line(), await rig.line()]
            assert {each.get("method") for each in found} == {
                None, "notifications/tools/list_changed"
            }  # fmt: skip
            await rig.until("a", "subscriptions/listen", 2)
            await stream(rig, "b", b"prompts", listen["id"])
            found = [await rig.line(), await rig.line()]
            assert "notifications/prompts/list_changed" in {each.get("method") for each in found}
            await halt(rig)

    asyncio.run(work())


def test_over_http_hanging_up_ends_a_subscription_everywhere(tmp_path: Path) -> None:
    """Each client's own: two may use one id."""

    async def work() -> None:
        async with crew("http", STATELESS, tmp_path, LISTENS) as rig:
            listen = rig.request("subscriptions/listen", {"notifications": WANTED})
            both = [asyncio.ensure_future(rig.ask(listen)) for _ in range(2)]
            for server in "ab":
                await rig.until(server, "subscriptions/listen", 2)
            await asyncio.sleep(0.1)
            both[0].cancel()
            for server in "ab":
                await rig.until(server, "notifications/cancelled")
            assert not both[1].done()
            both[1].cancel()
            for server in "ab":
                await rig.until(server, "notifications/cancelled", 2)
            await asyncio.wait(both)

    asyncio.run(work())


def test_a_subscription_that_all_refuse_is_refused(tmp_path: Path) -> None:
    """In the words of the first."""

    async def work() -> None:
        async with crew("http", STATELESS, tmp_path, {"a": {}, "b": {}}) as rig:
            said = await rig.ask(rig.request("subscriptions/listen", {"notifications": WANTED}))
            assert said.message["error"]["code"] == -32601
            assert said.http is not None
            assert said.http.status == 404

    asyncio.run(work())


def test_what_nobody_reads_is_dropped_and_questions_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So memory is bounded, by count and by size, and no server waits for ever."""
    monkeypatch.setattr(gathering, "_MOST_KEPT", 3)
    monkeypatch.setattr(gathering, "_MOST_BYTES", 500)
    dropped: list[Any] = []
    inbox = Inbox(dropped.append)
    for number in range(5):
        inbox.put(frame_of({"jsonrpc": "2.0", "id": number, "method": "ping"}))
    assert [each.id for each in dropped] == [0, 1]
    inbox.put(frame_of({"jsonrpc": "2.0", "id": 9, "method": "ping", "params": {"x": "x" * 600}}))
    assert [each.id for each in dropped] == [0, 1, 2, 3, 4, 9]

    monkeypatch.setattr(questions, "_MOST", 3)
    asked = Questions()
    for number in range(5):
        meta = {"_meta": {"progressToken": number}}
        question = {"jsonrpc": "2.0", "id": number, "method": "ping", "params": meta}
        asked.to_client("a", frame_of(question))
    for number in range(1, 6):
        answer = frame_of({"jsonrpc": "2.0", "id": f"a/{number}", "result": {}})
        found = asked.to_server(answer)
        assert (found is None) == (number < 3)
        assert found is None or found[1].id == number - 1
    assert not any((asked._asked, asked._shown, asked._tokens))


@pytest.mark.parametrize("door", ["http"])
def test_a_question_that_no_client_listens_for_is_answered(
    door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client without a GET stream does not make a server wait for ever."""
    monkeypatch.setattr(gathering, "_MOST_KEPT", 1)

    async def work() -> None:
        async with crew(door, "2025-11-25", tmp_path, {"a": {}, "b": {}}) as rig:
            done = b'{"jsonrpc":"2.0","id":@ID@,"result":{}}'
            late = [question("roots/list", str(number)) for number in (7, 8)]
            await rig.ask(json.loads(asking(rig, "a", done, *late, then="")))
            found: list[Any] = []
            async with asyncio.timeout(5):
                while not found:
                    found = [each for each in rig.read_by("a") if "error" in each]
                    await asyncio.sleep(0.01)
            assert found[0]["id"] == 7

    asyncio.run(work())


@pytest.mark.parametrize("door,revision", [("stdio", "2025-11-25"), ("http", "2025-11-25"),
                                           ("http", STATELESS)])  # fmt: skip
def test_nothing_is_left_when_a_conversation_ends(door: str, revision: str, tmp_path: Path) -> None:
    """No task, whatever was going on: a call, a handshake, a return that is waited for."""
    parts: Parts = {"a": {"listens": []}, "mute": {"silent": ["initialize", "tools/list"]},
             "dead": {"alive": str(tmp_path / "never")}}  # fmt: skip

    async def work() -> None:
        before = asyncio.all_tasks()
        async with crew(door, revision, tmp_path, parts) as rig:
            await rig.result("tools/list")
            if door == "stdio":
                rig.write(asking(rig, "a"))
                rig.write(asking(rig, "mute"))
                await rig.until("a", "tools/call")
                await halt(rig)
        for _ in range(5):
            await asyncio.sleep(0)
        left = [task for task in asyncio.all_tasks() - before if "gateway" in repr(task.get_coro())]
        assert not left
        assert isinstance(rig.book, Book)

    asyncio.run(work())
