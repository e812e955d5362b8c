"""What is known of a server's tools is as new as it has to be, and never more than is known."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.puppet import TOOLS
from tests.gateway.rig import STATELESS, Rig, plan, rigged
from tests.gateway.verdicts import check_error, check_tool_error, ran

from mcp_envelope.gateway.settings import Rules

KEPT = "2025-11-25"
NAME = "dev.mcp-envelope/record"
REFUSE = Rules(unknown_tools="refuse")
CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
DONE = b'{"jsonrpc":"2.0","id":@ID@,"result":{"content":[]}}'
NEW = {"name": "new", "inputSchema": {"type": "object", "required": ["n"]}}
NUMBER = {"type": "object", "properties": {"text": {"type": "integer"}}}
#: ``picky`` wants a number now.
OTHER = [each | {"inputSchema": NUMBER} if each["name"] == "picky" else each for each in TOOLS]


async def change(rig: Rig, tools: list[dict[str, Any]], how: str) -> None:
    """Let the server have other tools, and say so, or not."""
    if how == "on the stream of a GET":
        assert rig.end.listens is not None
        rig.end.puppet.tools = tools
        await rig.end.listens.wait()
        rig.end.announce(CHANGED)
        if rig.door == "stdio":
            assert await rig.source.readline() == CHANGED + b"\n"
        return
    says = [CHANGED, DONE] if how == "on the way" else [DONE]
    await rig.ask(rig.call("free", {}, plan=plan(*says, how="sse") | {"tools": tools}))


WAYS = [
    (door, upstream, revision, how)
    for door in ("http", "stdio")
    for upstream in ("child", "http")
    for revision in (KEPT, STATELESS)
    for how in ("on the way", "not at all")
]
WAYS.append(("stdio", "http", KEPT, "on the stream of a GET"))


@pytest.mark.parametrize("door,upstream,revision,how", WAYS)
def test_a_tool_that_a_server_adds_can_be_called_at_once(
    door: str, upstream: str, revision: str, how: str, tmp_path: Path
) -> None:
    """And is checked by its schema; one that was taken away is none any more."""

    async def work() -> None:
        async with rigged(door, upstream, revision, tmp_path, rules=REFUSE, hands=False) as rig:
            rig.end.listens = asyncio.Event()
            if revision != STATELESS:
                await rig.shake_hands()
            await rig.ask(rig.call())
            await change(rig, [*TOOLS[1:], NEW], how)
            said = await rig.ask(rig.call("new", {"n": 1}))
            assert "result" in said.message, said.raw
            assert said.message["result"]["_meta"][NAME]["warnings"] == []
            before = ran(rig)
            check_tool_error(rig, await rig.ask(rig.call("new", {})), "/params/arguments")
            # Nobody listens to a child's own words where its client speaks HTTP and does not ask.
            if how != "not at all" and (door, upstream) != ("http", "child"):
                check_error(rig, await rig.ask(rig.call("free")), "TOOL_NOT_FOUND", -32602)
            assert ran(rig) == before

    asyncio.run(work())


def test_a_client_that_listens_is_told_of_new_tools_and_so_is_the_gateway(tmp_path: Path) -> None:
    """On the stream that the client opened with GET, from the upstream's own."""

    async def work() -> None:
        async with rigged("http", "http", KEPT, tmp_path, rules=REFUSE, hands=False) as rig:
            rig.end.listens = asyncio.Event()
            await rig.shake_hands()
            await rig.ask(rig.call())
            async with rig.stream(method="GET", accept="text/event-stream") as stream:
                await change(rig, [*TOOLS[1:], NEW], "on the stream of a GET")
                assert await stream.block() == b"data: " + CHANGED
                assert "result" in (await rig.ask(rig.call("new", {"n": 1}))).message
                check_error(rig, await rig.ask(rig.call("free")), "TOOL_NOT_FOUND", -32602)

    asyncio.run(work())


@pytest.mark.parametrize("door,upstream,revision,how", WAYS)
def test_nothing_is_refused_for_what_a_schema_used_to_say(
    door: str, upstream: str, revision: str, how: str, tmp_path: Path
) -> None:
    """Before arguments are refused the tool is looked up anew."""

    async def work() -> None:
        async with rigged(door, upstream, revision, tmp_path, rules=REFUSE, hands=False) as rig:
            rig.end.listens = asyncio.Event()
            if revision != STATELESS:
                await rig.shake_hands()
            before = {"text": "x"}
            assert "result" in (await rig.ask(rig.call("picky", before))).message
            await change(rig, OTHER, how)
            said = await rig.ask(rig.call("picky", {"text": 7}))
            assert said.message["result"].get("isError") is None, said.raw
            check_tool_error(rig, await rig.ask(rig.call("picky", before)), "/params/arguments")

    asyncio.run(work())


def test_no_result_is_refused_for_what_a_schema_used_to_say(tmp_path: Path) -> None:
    """Nor is one kept back that the tool promises by now."""
    loose = [each | {"outputSchema": {"type": "object"}} for each in TOOLS]
    answer = b'{"jsonrpc":"2.0","id":@ID@,"result":{"content":[],"structuredContent":{"n":"x"}}}'

    async def work() -> None:
        async with rigged("stdio", "child", KEPT, tmp_path, rules=Rules(output="strict")) as rig:
            said = await rig.ask(rig.call("promising", {}, plan=plan(answer)))
            check_tool_error(rig, said, "/result/structuredContent/n")
            does = plan(answer) | {"tools": loose}
            said = await rig.ask(rig.call("promising", {}, plan=does))
            assert said.message["result"]["structuredContent"] == {"n": "x"}

    asyncio.run(work())


def test_a_flood_of_refusals_shares_its_questions(tmp_path: Path) -> None:
    """Calls that come while the list is asked for do not each ask for it."""

    async def work() -> None:
        async with rigged("http", "child", STATELESS, tmp_path, rules=REFUSE) as rig:
            asked = [rig.ask(rig.call("nobody")) for _ in range(20)]
            for said in await asyncio.gather(*asked):
                assert said.message["error"]["code"] == -32602
            lists = [raw for raw in rig.heard if json.loads(raw)["method"] == "tools/list"]
            assert 1 <= len(lists) < 20

    asyncio.run(work())


def doubling(levels: int) -> Any:
    """A schema of which each part stands for two of the next: short to read, endless to apply."""
    place = "#/properties/text/$defs"
    parts: dict[str, Any] = {
        f"p{each}": {"allOf": [{"$ref": f"{place}/p{each + 1}"}] * 2} for each in range(levels)
    }
    return {"$defs": parts | {f"p{levels}": {"type": "string"}}, "$ref": f"{place}/p0"}


UNUSABLE = {
    "remote": {"$ref": "https://evil.example/schema.json"},
    "file": {"$ref": "file:///etc/passwd"},
    "nowhere": {"$ref": "#/$defs/none"},
    "circle": {"$ref": "#/properties/text"},
    "pattern": {"type": "string", "pattern": "("},
    "no schema": {"type": "strung"},
    "too much work": doubling(40),
}


@pytest.mark.parametrize("side", ["input", "output"])
@pytest.mark.parametrize("schema", UNUSABLE)
def test_a_schema_that_cannot_be_used_checks_nothing(
    schema: str, side: str, tmp_path: Path
) -> None:
    """The call passes; the label and the record say that it was not checked."""
    whole = {"type": "object", "properties": {"text": UNUSABLE[schema]}}
    tools = [each | {f"{side}Schema": whole} for each in TOOLS]
    answer = b'{"jsonrpc":"2.0","id":@ID@,"result":{"content":[],"structuredContent":{"text":"x"}}}'

    async def work() -> None:
        rules = Rules(output="strict")
        async with rigged("http", "http", STATELESS, tmp_path, rules=rules) as rig:
            rig.end.puppet.tools = tools
            start = len(rig.book.lines)
            said = await rig.ask(rig.call("free", {"text": "x"}, plan=plan(answer)))
            assert said.message["result"]["structuredContent"] == {"text": "x"}
            (warning,) = said.message["result"]["_meta"][NAME]["warnings"]
            assert warning.startswith(f"{side} not checked: ")
            assert rig.book.entries(start)[-1]["warnings"] == [warning]

    asyncio.run(work())
