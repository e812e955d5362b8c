"""Several servers behind one door introduce themselves and list what they have as one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.crew import ABSENT, DEADLINE, Crew, Parts, crew, page, tools
from tests.gateway.rig import REVISIONS, STATELESS, plan

KINDS = [
    pytest.param(door, revision, marks=[pytest.mark.slow] if revision == REVISIONS[0] else [])
    for door in ("stdio", "http")
    for revision in REVISIONS
]
SOME = [("stdio", "2025-11-25"), ("http", STATELESS)]
OPENING = {"2025-06-18": "initialize", "2025-11-25": "initialize", STATELESS: "server/discover"}
INFO = "io.modelcontextprotocol/serverInfo"


def handshake(rig: Crew, **capabilities: Any) -> Any:
    """The request that opens a conversation."""
    params = {
        "protocolVersion": rig.revision,
        "capabilities": capabilities,
        "clientInfo": {"name": "crew", "version": "1"},
    }
    return rig.request(OPENING[rig.revision], {} if rig.revision == STATELESS else params)


@pytest.mark.parametrize("door,revision", KINDS)
def test_an_introduction_has_what_any_of_them_can_do(
    door: str, revision: str, tmp_path: Path
) -> None:
    """Capabilities are joined, instructions stand under the server's name, the name is ours."""
    parts: Parts = {
        "a": {
            "capabilities": {"tools": {}, "prompts": {"listChanged": False}},
            "instructions": "Do A.",
            "caching": {"ttlMs": 500, "cacheScope": "public"},
        },
        "b": {
            "capabilities": {"prompts": {"listChanged": True}, "vendor/x": {"y": [1.0]}},
            "instructions": "Do B.",
            "caching": {"ttlMs": 900, "cacheScope": "private"},
        },
    }

    async def work() -> None:
        async with crew(door, revision, tmp_path, parts, hands=False) as rig:
            result = (await rig.ask(handshake(rig))).message["result"]
            found = result["capabilities"]
            assert found["tools"] == {}
            assert found["prompts"] == {"listChanged": True}
            assert found["vendor/x"] == {"y": [1.0]}
            assert result["instructions"] == "# a\nDo A.\n\n# b\nDo B."
            place = "extensions" if revision == STATELESS else "experimental"
            assert found[place]["dev.mcp-envelope/record"]["modes"] == ["meta", "off"]
            if revision == STATELESS:
                assert result["_meta"][INFO]["name"] == "mcp-envelope"
                assert (result["ttlMs"], result["cacheScope"]) == (500, "private")
                assert result["resultType"] == "complete"
            else:
                assert result["protocolVersion"] == revision
                assert result["serverInfo"]["name"] == "mcp-envelope"

    asyncio.run(work())


def test_the_oldest_version_is_agreed_on_and_said_again(tmp_path: Path) -> None:
    """Whoever says initialize twice gets the same answer; servers hear it once."""

    async def work() -> None:
        parts = {"a": {"version": "2025-06-18"}, "b": {}}
        async with crew("stdio", "2025-11-25", tmp_path, parts, hands=False) as rig:
            first = (await rig.ask(handshake(rig))).message["result"]
            again = (await rig.ask(handshake(rig))).message["result"]
            assert first == again
            assert first["protocolVersion"] == "2025-06-18"
            await rig.tell("notifications/initialized")
            for server in parts:
                await rig.until(server, "notifications/initialized")
                assert len(rig.read_by(server, "initialize")) == 1

    asyncio.run(work())


@pytest.mark.parametrize("door,revision", SOME)
def test_a_client_can_turn_the_label_off(door: str, revision: str, tmp_path: Path) -> None:
    """In its capabilities, as with one server."""

    async def work() -> None:
        asked = {"experimental": {"dev.mcp-envelope/record": {"mode": "off"}}}
        async with crew(door, revision, tmp_path, {"a": {}, "b": {}}, hands=False) as rig:
            hello = handshake(rig, **asked)
            await rig.ask(hello)
            call = rig.call("b__free")
            if revision == STATELESS:
                name = "io.modelcontextprotocol/clientCapabilities"
                call["params"]["_meta"][name] = {"extensions": asked["experimental"]}
            result = (await rig.ask(call)).message["result"]
            assert "_meta" not in result
            assert (await rig.ask(rig.call("b__free", {}) | {"id": 900})).messages

    asyncio.run(work())


ENTRY = b'{"x-vendor":[1.0,1e2],"inputSchema":{"type":"object"},"name":"%s","n":9007199254740993.0}'


@pytest.mark.parametrize("door,revision", KINDS)
def test_lists_are_joined_with_all_their_pages(door: str, revision: str, tmp_path: Path) -> None:
    """Each entry keeps its bytes, but for its name; the shortest life, the narrowest scope."""
    odd = '"result":{"tools":[%s],"nextCursor":"1","ttlMs":70,"cacheScope":"public"}'
    parts: Parts = {
        "a": {"answers": {"tools/list": [
            odd % (ENTRY % b"one").decode(),
            tools("two", "three__more", ttlMs=50, cacheScope="public"),
        ]}},
        "b.c": {"answers": {"tools/list": tools(*map(str, range(200)), ttlMs=60)}},
    }  # fmt: skip

    async def work() -> None:
        async with crew(door, revision, tmp_path, parts) as rig:
            said = await rig.ask(rig.request("tools/list"))
            assert ENTRY % b"a__one" in said.raw
            result = said.message["result"]
            names = [each["name"] for each in result["tools"]]
            expected = ["a__one", "a__two", "a__three__more"]
            assert names == expected + [f"b_c__{number}" for number in range(200)]
            assert "nextCursor" not in result
            assert ABSENT not in result.get("_meta", {})
            if revision == STATELESS:
                assert (result["ttlMs"], result["cacheScope"]) == (50, "private")
            error = await rig.error("tools/list", {"cursor": "1"})
            assert error["code"] == -32602
            assert "one page" in error["data"]["detail"]

    asyncio.run(work())


@pytest.mark.parametrize("door,revision", SOME)
def test_other_lists_are_joined_likewise(door: str, revision: str, tmp_path: Path) -> None:
    """Prompts get names, URIs stay; a server without a list is not absent from it."""
    able: dict[str, Any] = {"prompts": {}, "resources": {}}
    parts: Parts = {
        "a": {"capabilities": able, "answers": {
            "prompts/list": page("prompts", {"name": "p", "title": "P"}),
            "resources/list": page("resources", {"uri": "x://1", "name": "r"}),
        }},
        "b": {"capabilities": able, "answers": {
            "prompts/list": page("prompts", {"name": "p"}),
            "resources/list": page("resources", {"uri": "x://1", "name": "r"}),
            "resources/templates/list": page("resourceTemplates", {"uriTemplate": "x://{n}"}),
        }},
        "c": {},
    }  # fmt: skip

    async def work() -> None:
        async with crew(door, revision, tmp_path, parts) as rig:
            found = await rig.result("prompts/list")
            assert [each["name"] for each in found["prompts"]] == ["a__p", "b__p"]
            assert ABSENT not in found.get("_meta", {})
            found = await rig.result("resources/list")
            assert [each["uri"] for each in found["resources"]] == ["x://1", "x://1"]
            found = await rig.result("resources/templates/list")
            assert found["resourceTemplates"] == [{"uriTemplate": "x://{n}"}]
            assert (await rig.error("tasks/list"))["code"] == -32601

    asyncio.run(work())


BAD = {
    "an error": '"error":{"code":-32603,"message":"no"}',
    "no list": '"result":{"tools":{"a":1}}',
    "no object": '"result":[]',
    "no result": '"result":null',
}


@pytest.mark.parametrize("door,revision", SOME)
def test_one_that_answers_badly_is_absent_and_no_more(
    door: str, revision: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its absence is in the log and in `_meta`; its calls go on."""
    answer = {"tools": None}

    async def work() -> None:
        parts = {name: {"answers": {"tools/list": text}} for name, text in BAD.items()}
        parts = {name.replace(" ", "-"): part for name, part in parts.items()}
        async with crew(door, revision, tmp_path, {**parts, "good": answer}) as rig:
            result = await rig.result("tools/list")
            assert result["tools"][0]["name"] == "good__free"
            assert result["_meta"][ABSENT] == list(parts)
            assert "an-error is absent" in caplog.text
            said = await rig.ask(rig.call("an-error__free"))
            assert "result" in said.message

    asyncio.run(work())


@pytest.mark.parametrize("door,revision", SOME)
def test_if_all_refuse_the_client_hears_the_first(door: str, revision: str, tmp_path: Path) -> None:
    """In its words, not as if nobody were there."""
    text = '"error":{"code":-32050,"message":"not now","data":{"vendor":1.0}}'

    async def work() -> None:
        part = {"answers": {"tools/list": text}}
        async with crew(door, revision, tmp_path, {"a": part, "b": part}) as rig:
            said = await rig.ask(rig.request("tools/list"))
            assert text.encode() in said.raw

    asyncio.run(work())


@pytest.mark.parametrize("door,revision", KINDS)
def test_one_that_is_slow_or_dead_holds_up_nobody(door: str, revision: str, tmp_path: Path) -> None:
    """The others are listed, called and asked at once; what is waited for is bounded."""
    parts: Parts = {
        "good": {},
        "slow": {"silent": ["tools/list"]},
        "mute": {"silent": ["initialize", "server/discover", "tools/list"]},
        "dead": {"alive": str(tmp_path / "never")},
    }

    async def work() -> None:
        clock = asyncio.get_running_loop().time
        async with crew(door, revision, tmp_path, parts, hands=False) as rig:
            began = clock()
            hello = (await rig.ask(handshake(rig))).message["result"]
            assert hello["_meta"][ABSENT] == ["mute", "dead"]
            assert hello["capabilities"]["tools"] == {"listChanged": True}
            if door == "http" and revision != STATELESS:
                await rig.shake_hands()
            result = await rig.result("tools/list")
            assert {each["name"].partition("__")[0] for each in result["tools"]} == {"good"}
            assert result["_meta"][ABSENT] == ["slow", "mute", "dead"]
            assert clock() - began < 3 * DEADLINE + 1
            began = clock()
            assert "result" in (await rig.ask(rig.call("good__free"))).message
            assert clock() - began < DEADLINE

    asyncio.run(work())


def test_one_that_left_a_handshake_unanswered_is_not_waited_for_each_time(tmp_path: Path) -> None:
    """A list goes out at once; a cancelled call to it ends, and is recorded."""

    async def work() -> None:
        parts = {"good": {}, "mute": {"silent": ["initialize"]}}
        clock = asyncio.get_running_loop().time
        async with crew("stdio", "2025-11-25", tmp_path, parts) as rig:
            await asyncio.sleep(0.05)
            began = clock()
            result = await rig.result("tools/list")
            assert result["_meta"][ABSENT] == ["mute"]
            assert clock() - began < DEADLINE / 2
            start = len(rig.book.lines)
            call = rig.call("mute__free")
            rig.write(json.dumps(call).encode())
            await asyncio.sleep(0.05)
            await rig.tell("notifications/cancelled", requestId=call["id"])
            found = await rig.book.after(start, 1)
            assert found[-1]["outcome"] == "CANCELLED"
            assert found[-1]["tool"] == "mute__free"
            assert "result" in (await rig.ask(rig.request("ping"))).message

    asyncio.run(work())


def test_a_call_that_waits_when_the_gateway_stops_is_recorded(tmp_path: Path) -> None:
    """Nothing was sent, and the client and the record are told so."""

    async def work() -> None:
        parts = {"good": {}, "mute": {"silent": ["initialize"]}}
        async with crew("stdio", "2025-11-25", tmp_path, parts) as rig:
            await asyncio.sleep(0.05)
            start = len(rig.book.lines)
            rig.write(json.dumps(rig.call("mute__free")).encode())
            await asyncio.sleep(0.05)
            assert rig.stop is not None
            await rig.stop()
            found = await rig.book.after(start, 1)
            assert found[0]["event"] == "refused"
            assert found[0]["outcome"] == "UPSTREAM_UNAVAILABLE"

    asyncio.run(work())


def test_what_is_asked_of_many_is_taken_back_when_time_is_over(tmp_path: Path) -> None:
    """A server that is slow to list its tools is told that nobody waits any more."""

    async def work() -> None:
        parts = {"good": {}, "slow": {"silent": ["tools/list"]}}
        async with crew("stdio", "2025-11-25", tmp_path, parts) as rig:
            await rig.result("tools/list")
            told = await rig.until("slow", "notifications/cancelled")
            asked = rig.read_by("slow", "tools/list")
            assert told[0]["params"]["requestId"] == asked[0]["id"]

    asyncio.run(work())


@pytest.mark.parametrize("how", ["late", "lost"])
def test_one_that_comes_back_is_announced(how: str, tmp_path: Path) -> None:
    """Who was absent at the start, or from a list, is in the next list; the client is told."""
    alive = tmp_path / "alive"
    part = {
        "alive": str(alive),
        "deadly": ["tools/die"],
        "capabilities": {"tools": {}, "logging": {}},
    }
    part["answers"] = {"logging/setLevel": '"result":{}'}

    async def work() -> None:
        if how == "lost":
            alive.touch()
        good = {"capabilities": {"tools": {}, "logging": {}}, "answers": part["answers"]}
        async with crew("stdio", "2025-11-25", tmp_path, {"good": good, "late": part}) as rig:
            await rig.result("logging/setLevel", {"level": "debug"})
            if how == "lost":
                alive.unlink()
                call = rig.call("late__free")
                call["params"]["plan"] = plan(then="die")
                said = await rig.ask(call)
                assert "error" in said.message, said.raw
            result = await rig.result("tools/list")
            assert result["_meta"][ABSENT] == ["late"]
            alive.touch()
            assert (await rig.line())["method"] == "notifications/tools/list_changed"
            result = await rig.result("tools/list")
            assert ABSENT not in result.get("_meta", {})
            assert result["tools"][-1]["name"] == "late__headed"
            found = await rig.until("late", None, 4)
            methods = [each.get("method") for each in found]
            assert methods.index("initialize") < methods.index("notifications/initialized")
            await rig.until("late", "logging/setLevel")

    asyncio.run(work())


def test_over_http_lists_are_held_to_the_rules_too(tmp_path: Path) -> None:
    """Headers repeat the body, and each request says who it is."""

    async def work() -> None:
        async with crew("http", STATELESS, tmp_path, {"a": {}, "b": {}}) as rig:
            for method in ("tools/list", "server/discover", "subscriptions/listen"):
                message = rig.request(method)
                said = await rig.ask(message, mcp_method="prompts/list")
                assert said.http is not None
                assert said.http.status == 400
                assert said.message["error"]["code"] == -32020
                message["params"].pop("_meta")
                said = await rig.send(json.dumps(message).encode(), message)
                assert said.http is not None
                assert said.http.status == 400
                assert said.message["error"]["code"] == -32602
            said = await rig.ask(rig.request("vendor/unknown"))
            assert said.http is not None
            assert said.http.status == 404
            assert said.message["error"]["code"] == -32601

    asyncio.run(work())


@pytest.mark.parametrize("door,revision", SOME)
def test_servers_over_http_and_on_pipes_stand_side_by_side(
    door: str, revision: str, tmp_path: Path
) -> None:
    """Lists, calls and errors are the same whatever a server is reached by."""
    parts: Parts = {
        "web": {"over": "http", "answers": {"tools/list": tools("one__x")}},
        "slow": {"over": "http", "answers": {"tools/list": BAD["no list"]}},
        "pipes": {},
    }

    async def work() -> None:
        async with crew(door, revision, tmp_path, parts) as rig:
            result = await rig.result("tools/list")
            assert [each["name"] for each in result["tools"]][:2] == ["web__one__x", "pipes__free"]
            assert result["_meta"][ABSENT] == ["slow"]
            for name in ("web__one__x", "pipes__free", "slow__free"):
                result = await rig.result("tools/call", {"name": name, "arguments": {}})
                assert result["content"][0]["text"] == "done"

    asyncio.run(work())
