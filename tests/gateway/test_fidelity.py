"""What passes through the gateway stays as it was written, byte for byte, but for our label."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.rig import REVISIONS, STATELESS, Rig, Said, answering, plan, rigged
from tests.gateway.verdicts import LABEL, Stage, unlabelled, until_run
from tests.gateway.wire import endpoint, post

import mcp_envelope as me
from mcp_envelope.core.mcp_headers import decode_value
from mcp_envelope.gateway.settings import Rules

KINDS = list(product(("http", "stdio"), ("child", "http"), REVISIONS))
#: Clients that share a child: their ids and tokens are told apart on the way, and written anew.
SHARED = ("http", "child", STATELESS)
OLDER = REVISIONS[:2]
BREAKS = bytes.maketrans(b"\r\n", b"  ")


@pytest.fixture(scope="module", params=KINDS, ids="-".join)
def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """Each door before each upstream in each revision."""
    door, upstream, revision = request.param
    folder = tmp_path_factory.mktemp("rig")
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        made = rigged(door, upstream, revision, folder, rules=Rules(unknown_tools="pass"))
        rig = runner.run(stack.enter_async_context(made))
        yield Stage(runner, rig)
        runner.run(stack.aclose())


RESULTS = {
    "numbers": b'{"structuredContent":{"a":1.0,"b":1e2,"c":-0,"d":12345678901234567890,"e":1E-7,'
    b'"f":0.10,"g":-0.0,"h":[1.50]},"content":[]}',
    "null": b'{"content":[],"structuredContent":null}',
    "a list": b'{"content":[],"structuredContent":[1.0,null,""]}',
    "escapes": b'{"content":[{"type":"text","text":"\\u00e9\\/\\ud83d\\ude00\\u0000\xc3\xa9"}]}',
    "order": b'{"z":1,"content":[],"a":{},"vendor/x":[1,2],"Content":null,"":""}',
    "space": b'{ "z" : 1 ,\t"content":[ ] , "a" :{ }  }',
    "own meta": b'{"content":[],"_meta":{"vendor/k":{"x":1.0},"":null},"b":1}',
    "empty meta": b'{"_meta":{},"content":[]}',
    "spaced meta": b'{"_meta": { "a" : 1 } ,"content":[]}',
    "deep": b'{"content":[],"x":' + b"[" * 150 + b"]" * 150 + b"}",
    "deep objects": b'{"content":[],"x":' + b'{"y":' * 150 + b"0" + b"}" * 150 + b"}",
    "empty": b"{}",
    "nothing": b'{"content":[{"type":"text","text":""}],"resultType":"complete"}',
    "unicode": '{"content":[],"x":"\u2028\u2029\ufeff\U0001f600","größe":"測試"}'.encode(),
    "quotes": b'{"content":[],"\\"result\\":{\\"_meta\\":1}":"\\\\","_meta":{"a\\"b":"}"}}',
}
UNTOUCHED = {
    "meta null": b'{"jsonrpc":"2.0","id":@ID@,"result":{"content":[],"_meta":null}}',
    "meta 7": b'{"jsonrpc":"2.0","id":@ID@,"result":{"content":[],"_meta":7}}',
    "error": b'{"jsonrpc":"2.0","id":@ID@,"error":{"message":"","code":-1,"data":null,"x":1.0}}',
    "error last": b'{"error":{"code":1,"message":"m"},"v":[1e2],"id":@ID@,"jsonrpc":"2.0"}',
    "question": b'{"jsonrpc":"2.0","id":@ID@,"result":{"resultType":"input_required",'
    b'"requestState":"\\u0041","inputRequests":{"a":1.0}}}',
}
ODD = (
    b'{"id":@ID@,"vendor":[1.0,-0],"params":{"name":"free","arguments":{"z":1e2,"a":"\\u00e9\\/",'
    b'"n":12345678901234567890, "e":"", "x":null},"_meta":@META@,"other":{}},'
    b'"method":"@METHOD@","jsonrpc":"2.0"}'
)


def written(rig: Rig, text: bytes, method: str, meta: dict[str, Any]) -> tuple[bytes, Any]:
    """A request just as it is to be sent, and what it says."""
    if rig.revision == STATELESS:
        meta = rig.identity() | meta
    rig.count += 1
    raw = text.replace(b"@ID@", b'"c-%d"' % rig.count).replace(b"@METHOD@", method.encode())
    raw = raw.replace(b"@META@", json.dumps(meta).encode())
    return raw, json.loads(raw)


def with_id(raw: bytes, sent: bytes, rig: Rig) -> bytes:
    """What was sent as it must be heard: of clients that share a child the ids are told apart."""
    if (rig.door, rig.upstream, rig.revision) == SHARED:
        return sent.replace(b'"c-%d"' % rig.count, str(json.loads(raw)["id"]).encode(), 1)
    return sent


def test_results_keep_their_bytes(stage: Stage) -> None:
    """Only our key of `_meta` is added."""

    async def work(rig: Rig) -> None:
        wrong = {}
        for name, text in RESULTS.items():
            said = await rig.ask(rig.call(plan=answering(b'"result":' + text)))
            expected = b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (rig.count, text)
            got = unlabelled(said.raw, had_meta=b'"_meta":' in text.replace(b'\\"_meta', b""))
            if got != expected:
                wrong[name] = (got, expected)
        assert not wrong

    stage.play(work)


def test_answers_that_are_no_final_results_are_not_touched(stage: Stage) -> None:
    """Errors, questions back, and results whose `_meta` cannot hold a label."""

    async def work(rig: Rig) -> None:
        wrong = {}
        for name, text in UNTOUCHED.items():
            said = await rig.ask(rig.call(plan=plan(text)))
            expected = text.replace(b"@ID@", str(rig.count).encode())
            if said.raw != expected:
                wrong[name] = (said.raw, expected)
        assert not wrong

    stage.play(work)


def test_it_does_not_matter_in_which_pieces_a_request_arrives(stage: Stage) -> None:
    """A byte at a time, with characters torn apart; over HTTP in chunks of one byte."""

    async def work(rig: Rig) -> None:
        text = ODD.replace(b'"other"', '"größe 測試 \U0001f600"'.encode())
        raw, message = written(rig, text, "vendor/pieces", {})
        if rig.door == "http":
            response = await post(rig.port, raw, rig.head(message), bytewise=True)
            assert response.status in (200, 404)
        else:
            for number in range(len(raw)):
                os.write(rig.sink, raw[number : number + 1])
                await asyncio.sleep(0)
            rig.write(b"\r")
            await rig.read()
        heard = rig.heard[-1]
        assert heard.rstrip() == with_id(heard, raw, rig)

    stage.play(work)


@pytest.mark.parametrize("method", ["vendor/unheard-of", "tools/call", "ping"])
def test_requests_keep_their_bytes(stage: Stage, method: str) -> None:
    """Unknown methods and members, numbers, escapes, order and space."""

    async def work(rig: Rig) -> None:
        raw, message = written(rig, ODD, method, {"vendor/own": [None, ""]})
        await rig.send(raw, message)
        heard = rig.heard[-1]
        assert heard == with_id(heard, raw, rig)

    stage.play(work)


def test_notifications_keep_their_bytes(stage: Stage) -> None:
    """The ones that nobody has heard of, too."""

    async def work(rig: Rig) -> None:
        raw = b'{"v":1.0,"method":"notifications/vendor","params":{ "x":[-0] },"jsonrpc":"2.0"}'
        await rig.send(raw, json.loads(raw))
        await rig.ask(rig.request("ping"))
        assert rig.heard[-2] == raw

    stage.play(work)


@pytest.mark.parametrize(
    "stage", [kind for kind in KINDS if kind[0] == "http"], indirect=True, ids="-".join
)
def test_line_ends_within_a_message_are_nothing_but_space(stage: Stage) -> None:
    """A message over many lines reaches a child as one line, and HTTP as it is."""

    async def work(rig: Rig) -> None:
        text = ODD.replace(b",", b",\r\n").replace(b"{", b"{\n\t")
        raw, message = written(rig, text, "vendor/pretty", {})
        await rig.send(raw, message)
        heard = rig.heard[-1]
        expected = with_id(heard, raw, rig)
        assert heard == (expected.translate(BREAKS) if rig.upstream == "child" else expected)

    stage.play(work)


@pytest.mark.parametrize("how", ["json", "sse", "lines", "crlf", "bytes"])
@pytest.mark.parametrize(
    "stage", [kind for kind in KINDS if kind[1] == "http"], indirect=True, ids="-".join
)
def test_answers_over_http_may_be_written_in_any_way(stage: Stage, how: str) -> None:
    """As a body or a stream, over several lines, with CRLF, a byte at a time."""

    async def work(rig: Rig) -> None:
        text = '{\n "content": [],\n\t"größe": "測試 \U0001f600",\n "n": 1.0\n}'.encode()
        note = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t"}}'
        answer = b'{"jsonrpc":"2.0",\n"id":@ID@,"result":%b}' % text
        if how in ("sse", "bytes"):  # a field of an event is one line
            answer = answer.translate(BREAKS)
        says = (answer,) if how == "json" else (note, answer)
        said = await rig.ask(rig.call(plan=plan(*says, how=how), _meta={"progressToken": "t"}))
        expected = answer.replace(b"@ID@", str(rig.count).encode())
        if rig.door == "stdio":
            expected = expected.translate(BREAKS)
        assert unlabelled(said.raw, had_meta=False) == expected
        assert said.messages[:-1] == list(says[:-1])

    stage.play(work)


IDS = (b"7", b'"7"', b"0", b'""', b"-1", b'"\\u00e9\xc3\xa9"', b"12345678901234567890", b"8.0",
       b'"%b"' % (b"x" * 5_000), b'"mcp-envelope"')  # fmt: skip


def anew(text: bytes, rig: Rig) -> bytes:
    """An id or token as the client finds it again: as it was written, or at least as it was."""
    if (rig.door, rig.upstream, rig.revision) != SHARED:
        return text
    return json.dumps(json.loads(text), ensure_ascii=False).encode()


def test_ids_are_those_of_the_client(stage: Stage) -> None:
    """Of several calls under way each is answered with its id, as it was written."""

    async def work(rig: Rig) -> None:
        first = len(rig.heard)
        texts = []
        for id in IDS:
            message = rig.call(plan=plan(then="hang")) | {"id": "@"}
            texts.append((json.dumps(message).encode().replace(b'"@"', id), message))
        asked = []
        for raw, message in texts:
            if rig.door == "http":
                asked.append(asyncio.create_task(rig.send(raw, message)))
            else:
                rig.write(raw)
        await until_run(rig, sum(b'"tools/call"' in raw for raw in rig.heard[:first]) + len(IDS))
        await rig.tell("notifications/release")
        if rig.door == "http":
            got = [(await each).raw for each in asked]
        else:
            got = [(await rig.read())[-1] for _ in IDS]
        ids = sorted(raw.partition(b'"id":')[2].partition(b',"result"')[0] for raw in got)
        assert ids == sorted(anew(id, rig) for id in IDS)

    stage.play(work)


@pytest.mark.parametrize(
    "stage", [kind for kind in KINDS if kind[2] != STATELESS], indirect=True, ids="-".join
)
def test_an_id_of_the_servers_may_be_one_of_the_clients(stage: Stage) -> None:
    """Ids are per direction: a question with the id of a call under way is another thing."""

    async def work(rig: Rig) -> None:
        question = b'{"method":"roots/list","jsonrpc":"2.0","id":@ID@,"v":1.0}'
        answer = b'{"jsonrpc":"2.0","id":@ID@,"result":{}}'
        said = await rig.ask(rig.call(plan=plan(question, answer, how="sse")))
        assert said.messages[0] == question.replace(b"@ID@", str(rig.count).encode())
        assert "result" in said.message
        reply = b'{"result":{"roots":[ ],"x":-0},"id":%d,"jsonrpc":"2.0"}' % rig.count
        back = await rig.send(reply, json.loads(reply))
        assert back.http is None or back.http.status == 202
        await rig.ask(rig.request("ping"))
        assert rig.heard[-2] == reply

    stage.play(work)


def test_progress_is_told_with_the_clients_own_token(stage: Stage) -> None:
    """With its bytes, before the answer, in order."""

    async def work(rig: Rig) -> None:
        notes = [
            b'{"method":"notifications/progress","params":{"progressToken":@TOKEN@,"progress":'
            b'%d.0,"total":1e2,"v":null},"jsonrpc":"2.0"}' % number
            for number in range(5)
        ]
        answer = b'{"jsonrpc":"2.0","id":@ID@,"result":{"content":[]}}'
        for token in (b'"t\\u00e9"', b"7"):
            message = rig.call(plan=plan(*notes, answer, how="sse"))
            message["params"].setdefault("_meta", {})["progressToken"] = "@"
            raw = json.dumps(message).encode().replace(b'"@"', token)
            said = await rig.send(raw, message)
            assert said.messages[:-1] == [
                note.replace(b"@TOKEN@", anew(token, rig)) for note in notes
            ]

    stage.play(work)


def test_what_is_large_passes_whole(stage: Stage) -> None:
    """A result of 5 MB, and a list of 200 tools."""

    async def work(rig: Rig) -> None:
        big = answering(b'"result":{"content":[],"pad":"@PAD@"}') | {"pad": 5_000_000}
        said = await rig.ask(rig.call(plan=big))
        assert len(said.message["result"]["pad"]) == 5_000_000
        tools = b",".join(
            b'{"name":"t%d","x":1.0,"inputSchema":{"type": "object"}}' % n for n in range(200)
        )
        listed = b'"result":{"tools":[%b],"ttlMs":1e3,"nextCursor":"\\u0041"}' % tools
        said = await rig.ask(rig.request("tools/list", {"plan": answering(listed)}))
        assert said.raw == b'{"jsonrpc":"2.0","id":%d,%b}' % (rig.count, listed)

    stage.play(work)


def test_a_tool_may_have_any_name(stage: Stage) -> None:
    """Beyond ASCII, too, which headers can only hold wrapped."""

    async def work(rig: Rig) -> None:
        said = await rig.ask(rig.call("größe 測試"))
        assert "result" in said.message
        if rig.upstream == "http" and rig.revision == STATELESS:
            assert decode_value(rig.end.heard[-1][0]["mcp-name"]) == "größe 測試"

    stage.play(work)


@pytest.mark.parametrize(
    "revision", [*(pytest.param(each, marks=pytest.mark.slow) for each in OLDER), STATELESS]
)
def test_two_gateways_in_a_row_are_as_true_as_one(revision: str, tmp_path: Path) -> None:
    """HTTP, then pipes, then HTTP: the second is a process of its own."""

    async def work() -> None:
        async with endpoint() as end:
            url = f"http://127.0.0.1:{end.port}/mcp"
            words = ("-m", "mcp_envelope", "run", "--ledger", "memory:", "--upstream", url)
            async with rigged(
                "http", "child", revision, tmp_path, command=(sys.executable, *words)
            ) as rig:
                for name, text in RESULTS.items():
                    said = await rig.ask(rig.call(plan=answering(b'"result":' + text)))
                    had = b'"_meta":' in text.replace(b'\\"_meta', b"")
                    expected = b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (rig.count, text)
                    assert unlabelled(said.raw, had_meta=had) == expected, name
                    label = said.message["result"]["_meta"]["dev.mcp-envelope/record"]
                    assert label["upstream"]["schema_version"] == label["schema_version"]
                raw, message = written(rig, ODD, "tools/call", {"vendor/own": [None, ""]})
                await rig.send(raw, message)
                heard = end.heard[-1][1]
                assert heard == with_id(heard, raw, rig)

    asyncio.run(work())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind[2] != OLDER[0]], ids="-".join)
def test_one_of_several_is_as_true_as_the_only_one(
    kind: tuple[str, str, str], tmp_path: Path
) -> None:
    """Of a call only the name of its tool is another one; of an answer only our label."""

    async def work() -> None:
        async with rigged(*kind, tmp_path, twin=True) as rig:
            for name, text in RESULTS.items():
                said = await rig.ask(rig.call("puppet__free", plan=answering(b'"result":' + text)))
                had = b'"_meta":' in text.replace(b'\\"_meta', b"")
                expected = b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (rig.count, text)
                assert unlabelled(said.raw, had_meta=had) == expected, name
            for text in UNTOUCHED.values():
                said = await rig.ask(rig.call("puppet__free", plan=plan(text)))
                assert said.raw == text.replace(b"@ID@", str(rig.count).encode())
            odd = ODD.replace(b'"free"', b'"puppet__free"')
            raw, message = written(rig, odd, "tools/call", {"vendor/own": [None, ""]})
            await rig.send(raw, message)
            heard = [each for each in rig.heard if b'"vendor/own"' in each]
            sent = raw.replace(b"puppet__", b"")
            assert len(heard) == 1
            assert heard == [with_id(each, sent, rig) for each in heard]

    asyncio.run(work())


def test_what_is_sealed_already_is_recognised(stage: Stage) -> None:
    """Another gateway's label is kept inside of ours, and a tool's own envelope is named."""

    async def work(rig: Rig) -> None:
        envelope = json.dumps(me.wrap({"n": 1})).encode()
        result = b'"result":{"content":[],"_meta":{%b{"seq":4}},"structuredContent":%b}'
        said: Said = await rig.ask(rig.call(plan=answering(result % (LABEL, envelope))))
        label = said.message["result"]["_meta"]["dev.mcp-envelope/record"]
        assert label["upstream"] == {"seq": 4}
        assert label["envelope"] == "provenance/0.1"
        assert said.raw.endswith(b',"structuredContent":%b}}' % envelope)

    stage.play(work)
