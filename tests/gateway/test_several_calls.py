"""Each call goes to the one of several servers that it is for, and to no other."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.crew import Crew, crew, page, tools
from tests.gateway.rig import REVISIONS, STATELESS, answering, plan

from mcp_envelope.gateway.templates import best_template

KINDS = [
    pytest.param(door, revision, marks=[pytest.mark.slow] if revision == REVISIONS[0] else [])
    for door in ("stdio", "http")
    for revision in REVISIONS
]
SOME = [("stdio", "2025-11-25"), ("http", STATELESS)]
ABLE = {"tools": {}, "prompts": {}, "resources": {"subscribe": True}, "completions": {}}
EMPTY = '"result":{"resultType":"complete"}'


def who(name: str) -> dict[str, Any]:
    """The part of a server that says its name to everything."""
    said = f'"result":{{"resultType":"complete","who":"{name}"}}'
    methods = ("prompts/get", "resources/read", "resources/subscribe", "resources/unsubscribe",
               "completion/complete", "tasks/get", "tasks/result", "tasks/cancel")  # fmt: skip
    return {"capabilities": ABLE, "answers": dict.fromkeys(methods, said)}


@pytest.mark.parametrize("door,revision", KINDS)
def test_tools_and_prompts_are_found_by_their_names(
    door: str, revision: str, tmp_path: Path
) -> None:
    """The server gets its own name for them; the record has that which the client said."""

    async def work() -> None:
        async with crew(door, revision, tmp_path, {"a": who("a"), "b.c": who("b.c")}) as rig:
            start = len(rig.book.lines)
            result = await rig.result("tools/call", {"name": "b_c__free__x", "arguments": {}})
            assert result["content"][0]["text"] == "done"
            heard = (await rig.until("b.c", "tools/call"))[0]
            assert heard["params"]["name"] == "free__x"
            result = await rig.result("prompts/get", {"name": "a__p"})
            assert result["who"] == "a"
            assert rig.read_by("a", "prompts/get")[0]["params"]["name"] == "p"
            assert not rig.read_by("b.c", "prompts/get")
            assert not rig.read_by("a", "tools/call")
            lines = rig.book.entries(start)
            assert [line["event"] for line in lines] == ["admitted", "settled"] * 2
            assert {line["tool"] for line in lines[:2]} == {"b_c__free__x"}
            assert "b_c__free__x" in lines[0]["kind"]
            assert {line["door"] for line in lines} == {door}
            assert {line["peer"] for line in lines} == {"local" if door == "stdio" else "anonymous"}

    asyncio.run(work())


@pytest.mark.parametrize("door,revision", KINDS)
def test_what_is_for_none_of_them_is_refused_and_recorded(
    door: str, revision: str, tmp_path: Path
) -> None:
    """Unknown names, methods, resources and tasks: nothing of them reaches a server."""

    async def work() -> None:
        async with crew(door, revision, tmp_path, {"a": who("a"), "b": who("b")}) as rig:
            start = len(rig.book.lines)
            for name in ("free", "c__free", "A__free", "a_free", "__free"):
                error = await rig.error("tools/call", {"name": name, "arguments": {}})
                assert error["code"] == -32602, name
                assert "a__…" in error["data"]["hint"]
            lines = rig.book.entries(start)
            assert [each["outcome"] for each in lines] == ["TOOL_NOT_FOUND"] * 5
            assert [each["tool"] for each in lines][:2] == ["free", "c__free"]
            assert {each["door"] for each in lines} == {door}
            assert (await rig.error("vendor/method"))["code"] == -32601
            error = await rig.error("prompts/get", {"name": "p"})
            assert error["code"] == -32602
            assert not rig.read_by("a", "tools/call") + rig.read_by("b", "tools/call")

    asyncio.run(work())


@pytest.mark.parametrize("door,revision", SOME)
def test_completions_go_where_their_reference_is(door: str, revision: str, tmp_path: Path) -> None:
    """To the server of the prompt, under its own name, or of the template."""
    b = who("b")
    b["answers"]["resources/templates/list"] = page(
        "resourceTemplates", {"uriTemplate": "b://{x}", "name": "t"}
    )

    async def work() -> None:
        async with crew(door, revision, tmp_path, {"a": who("a"), "b": b}) as rig:
            argument = {"name": "x", "value": ""}
            ref = {"type": "ref/prompt", "name": "a__p"}
            params: dict[str, Any] = {"ref": ref, "argument": argument}
            assert (await rig.result("completion/complete", params))["who"] == "a"
            assert rig.read_by("a", "completion/complete")[0]["params"]["ref"]["name"] == "p"
            ref = {"type": "ref/resource", "uri": "b://{x}"}
            params = {"ref": ref, "argument": argument}
            assert (await rig.result("completion/complete", params))["who"] == "b"

    asyncio.run(work())


@pytest.mark.parametrize("door,revision", SOME)
def test_resources_are_read_where_they_are(door: str, revision: str, tmp_path: Path) -> None:
    """Listed ones first, of two the one that the settings name first; then the best template."""
    parts = {name: who(name) for name in ("a", "b", "c")}
    uris = {"a": ["x://both"], "b": ["x://both", "x://b"], "c": []}
    templates = {"a": ["file:///{path}"], "b": ["file:///deep/{path}.md"],
                 "c": ["file:///deep/{path}.txt", "x://{n}"]}  # fmt: skip
    for name, part in parts.items():
        answers = part["answers"]
        found = [{"uri": uri, "name": "r"} for uri in uris[name]]
        answers["resources/list"] = page("resources", *found)
        found = [{"uriTemplate": each, "name": "t"} for each in templates[name]]
        answers["resources/templates/list"] = page("resourceTemplates", *found)
    expected = {
        "x://b": "b", "x://both": "a", "x://other": "c", "file:///top.md": "a",
        "file:///deep/1.md": "b", "file:///deep/1.txt": "c",
    }  # fmt: skip

    async def work() -> None:
        async with crew(door, revision, tmp_path, parts) as rig:
            methods = ["resources/read"]
            if revision != STATELESS:
                methods += ["resources/subscribe", "resources/unsubscribe"]
            for uri, owner in expected.items():
                for method in methods:
                    result = await rig.result(method, {"uri": uri})
                    assert result["who"] == owner, uri
                assert rig.read_by(owner, "resources/read")[-1]["params"]["uri"] == uri
            error = await rig.error("resources/read", {"uri": "y://none"})
            assert error["code"] == -32602

    asyncio.run(work())


@pytest.mark.parametrize("door,revision", SOME)
def test_what_is_listed_nowhere_may_still_be_read(door: str, revision: str, tmp_path: Path) -> None:
    """A link in a tool's result says whose it is; and the only server with resources has all."""
    parts = {"a": who("a"), "b": who("b"), "c": {}}
    listed = {"resources/list": page("resources"), "resources/templates/list": "[]"}
    listed["resources/templates/list"] = page("resourceTemplates")
    for name in ("a", "b"):
        parts[name]["answers"] |= listed

    async def work() -> None:
        async with crew(door, revision, tmp_path, parts) as rig:
            link = b'"result":{"content":[{"type":"resource_link","uri":"z://1","name":"l"}]}'
            await rig.ask(rig.call("b__free", plan=answering(link)))
            assert (await rig.result("resources/read", {"uri": "z://1"}))["who"] == "b"
            assert (
                "error" in (await rig.ask(rig.request("resources/read", {"uri": "z://2"}))).message
            )
        folder = tmp_path / "again"
        folder.mkdir()
        async with crew(door, revision, folder, {"b": parts["b"], "c": {}}) as rig:
            assert (await rig.result("resources/read", {"uri": "z://2"}))["who"] == "b"

    asyncio.run(work())


def test_of_two_templates_the_better_fits() -> None:
    """All that is fixed must be there, then the longer beginning counts, then who is first."""
    found = [("a://{x}", "a"), ("a://{x}", "b"), ("a://b/{x}/c", "c"), ("a://{+x}/c{?q}", "d")]
    assert best_template("a://x", found) == "a"
    assert best_template("a://b/x/c", found) == "c"
    assert best_template("a://b/x", found) == "a"
    assert best_template("a://x/c", found) == "d"
    assert best_template("b://x", found) is None
    assert best_template("a://b/", [("a://b/{x}/c", "c")]) == "c"


@pytest.mark.parametrize("door,revision", [("stdio", "2025-11-25"), ("http", "2025-11-25"),
                                           ("http", STATELESS)])  # fmt: skip
def test_tasks_are_followed_where_they_run(door: str, revision: str, tmp_path: Path) -> None:
    """By the id that the answer to a call told; one that is not known is asked for."""
    a, b = who("a"), who("b")
    for part in (a, b):
        part["capabilities"] = {"tools": {}, "tasks": {}}
    error = '"error":{"code":-32602,"message":"no such task"}'
    b["answers"]["tasks/get"] = error
    a["answers"]["tasks/list"] = page("tasks", {"taskId": "t1"})
    b["answers"]["tasks/list"] = page("tasks", {"taskId": "t2"})

    async def work() -> None:
        async with crew(door, revision, tmp_path, {"a": a, "b": b}) as rig:
            task = b'"result":{"task":{"taskId":"t9","status":"working"}}'
            if revision == STATELESS:
                task = b'"result":{"resultType":"task","taskId":"t9","status":"working"}'
            await rig.ask(rig.call("b__free", plan=answering(task)))
            assert (await rig.error("tasks/get", {"taskId": "t9"}))["message"] == "no such task"
            for method in ("tasks/result", "tasks/cancel"):
                assert (await rig.result(method, {"taskId": "t9"}))["who"] == "b"
            assert (await rig.result("tasks/cancel", {"taskId": "strange"}))["who"] == "a"
            found = await rig.result("tasks/list")
            assert [each["taskId"] for each in found["tasks"]] == ["t1", "t2"]
            assert (await rig.result("tasks/result", {"taskId": "t2"}))["who"] == "b"
            error = await rig.error("tasks/cancel", {})
            assert error["code"] == -32602
            assert "task" in error["data"]["detail"]

    asyncio.run(work())


def test_a_task_that_nobody_has_is_refused(tmp_path: Path) -> None:
    """After all were asked."""
    part = {"answers": {"tasks/get": '"error":{"code":-32602,"message":"no"}'}}

    async def work() -> None:
        async with crew("http", STATELESS, tmp_path, {"a": part, "b": part}) as rig:
            error = await rig.error("tasks/get", {"taskId": "gone"})
            assert error["data"]["detail"] == "no server has this task"
            assert rig.read_by("b", "tasks/get")

    asyncio.run(work())


@pytest.mark.parametrize("door", ["stdio", "http"])
def test_levels_go_to_all_that_have_logs(door: str, tmp_path: Path) -> None:
    """What one of them says against a level the client hears; ping is the gateway's."""
    logs = {"capabilities": {"logging": {}}, "answers": {"logging/setLevel": '"result":{}'}}
    picky = {**logs, "answers": {"logging/setLevel": '"error":{"code":-32602,"message":"odd"}'}}

    async def work() -> None:
        async with crew(door, "2025-11-25", tmp_path, {"a": logs, "b": logs, "c": {}}) as rig:
            assert await rig.result("logging/setLevel", {"level": "info"}) == {}
            assert await rig.result("ping") == {}
            assert rig.read_by("a", "logging/setLevel")[0]["params"] == {"level": "info"}
            assert rig.read_by("b", "logging/setLevel")
            assert not rig.read_by("c", "logging/setLevel") + rig.read_by("c", "ping")
        folder = tmp_path / "again"
        folder.mkdir()
        async with crew(door, "2025-11-25", folder, {"a": logs, "b": picky}) as rig:
            assert (await rig.error("logging/setLevel", {"level": "x"}))["message"] == "odd"

    asyncio.run(work())


def test_an_id_is_one_calls_only(tmp_path: Path) -> None:
    """Whichever servers two calls go to: the client could not tell their answers apart."""

    async def work() -> None:
        async with crew("stdio", "2025-11-25", tmp_path, {"a": {}, "b": {}}) as rig:
            first = rig.call("a__free", plan=plan(then="hang"))
            rig.write(json.dumps(first).encode())
            await rig.until("a", "tools/call")
            said = await rig.ask({**rig.call("b__free"), "id": first["id"]})
            assert "under way" in said.message["error"]["data"]["detail"]
            assert not rig.read_by("b", "tools/call")
            await rig.tell("notifications/release")
            assert "result" in await rig.line()

    asyncio.run(work())


@pytest.mark.parametrize("door,revision", KINDS)
def test_progress_and_logs_stay_with_their_calls(door: str, revision: str, tmp_path: Path) -> None:
    """Two calls in two servers at once; where clients share children, even with one token."""
    token = 7 if (door, revision) == ("http", STATELESS) else None

    async def ask(rig: Crew, server: str) -> list[Any]:
        say = [
            b'{"jsonrpc":"2.0","method":"notifications/progress",'
            b'"params":{"progressToken":@TOKEN@,"progress":1.0,"message":"%b"}}' % server.encode(),
            b'{"jsonrpc":"2.0","method":"notifications/message",'
            b'"params":{"level":"info","data":"%b"}}' % server.encode(),
            b'{"jsonrpc":"2.0","id":@ID@,"result":{"content":[]}}',
        ]
        call = rig.call(f"{server}__free", plan=plan(*say))
        call["params"].setdefault("_meta", {})["progressToken"] = token or f"of {server}"
        call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "info"
        said = await rig.ask(call)
        return [json.loads(each) for each in said.messages]

    async def work() -> None:
        async with crew(door, revision, tmp_path, {"a": {}, "b": {}}) as rig:
            if door == "stdio":
                both = [await ask(rig, "a"), await ask(rig, "b")]
            else:
                both = list(await asyncio.gather(ask(rig, "a"), ask(rig, "b")))
            for server, found in zip("ab", both, strict=True):
                assert found[0]["params"]["message"] == server
                assert found[0]["params"]["progressToken"] == (token or f"of {server}")
                assert found[1]["params"]["data"] == server
                assert "result" in found[2]

    asyncio.run(work())


@pytest.mark.parametrize("door,revision", KINDS)
def test_a_cancelled_call_is_cancelled_in_its_server_alone(
    door: str, revision: str, tmp_path: Path
) -> None:
    """By a notification; over HTTP in 2026-07-28 by hanging up."""

    async def work() -> None:
        async with crew(door, revision, tmp_path, {"a": {}, "b": {}}) as rig:
            call = rig.call("b__free", plan=plan(then="hang"))
            asking = None
            if door == "http":
                asking = asyncio.ensure_future(rig.ask(call))
            else:
                rig.write(json.dumps(call).encode())
            sent = (await rig.until("b", "tools/call"))[0]
            if door == "http" and revision == STATELESS:
                assert asking is not None
                await rig.tell("notifications/cancelled", requestId=call["id"])
                await asyncio.sleep(0.06)  # the door looks after that long whether he is there
                assert not rig.read_by("b", "notifications/cancelled")
                asking.cancel()
            else:
                await rig.tell("notifications/cancelled", requestId=call["id"], reason="no")
            told = (await rig.until("b", "notifications/cancelled"))[0]
            assert told["params"]["requestId"] == sent["id"]
            lines = await rig.book.after(0, 3)
            assert lines[-1]["outcome"] == "CANCELLED"
            assert not rig.read_by("a", "notifications/cancelled")
            if asking is not None:
                asking.cancel()
                await asyncio.wait([asking])

    asyncio.run(work())


def test_names_that_begin_with_nothing_are_tools_of_their_own(tmp_path: Path) -> None:
    """Only the first `__` divides, so a tool may begin with one, and have no name at all."""

    async def work() -> None:
        parts = {"a": {"answers": {"tools/list": tools("_x", "__y", "")}}, "b": {}}
        async with crew("stdio", "2025-11-25", tmp_path, parts) as rig:
            for name in ("_x", "__y", ""):
                await rig.result("tools/call", {"name": f"a__{name}"})
            names = [each["params"]["name"] for each in rig.read_by("a", "tools/call")]
            assert names == ["_x", "__y", ""]

    asyncio.run(work())
