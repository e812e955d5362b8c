"""What the operator allows a call: attempts, time, company; and rules that change meanwhile."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tests.gateway import puppet
from tests.gateway.rig import Rig, plan, rigged
from tests.gateway.verdicts import LABEL, check_error, ran, until_run

from mcp_envelope.gateway.reload import Reloader
from mcp_envelope.gateway.settings import Rules
from mcp_envelope.gateway.settings_file import Given, load
from mcp_envelope.pipeline import exchange

KEPT = "2025-11-25"
#: Ends at its first starts, as many as the last word says, and then is the puppet.
SHAKY = """
import sys
with open(sys.argv[1], "ab+") as starts:
    starts.write(b".")
    count = starts.tell()
if count <= int(sys.argv[3]):
    sys.exit(1)
sys.argv[1:] = [sys.argv[2]]
with open(PUPPET) as code:
    exec(compile(code.read(), PUPPET, "exec"))
"""


def shaky(folder: Path, failures: int) -> tuple[str, ...]:
    """The command of a puppet whose first starts fail."""
    code = SHAKY.replace("PUPPET", repr(puppet.__file__))
    starts, log = str(folder / "starts"), str(folder / "heard")
    return (sys.executable, "-I", "-S", "-c", code, starts, log, str(failures))


@pytest.mark.parametrize(
    "retries,failures,starts,answered",
    [(0, 1, 1, False), (1, 1, 2, True), (1, 9, 2, False), (2, 2, 3, True)],
)
@pytest.mark.parametrize("door", ["http", "stdio"])
def test_an_upstream_that_is_not_there_is_tried_again(
    door: str, retries: int, failures: int, starts: int, answered: bool, tmp_path: Path
) -> None:
    """As often as ``retries`` says, and no more."""
    rules = Rules(retries=retries)

    async def work() -> None:
        command = shaky(tmp_path, failures)
        async with rigged(
            door, "child", KEPT, tmp_path, hands=False, rules=rules, command=command
        ) as rig:
            said = await rig.shake_hands()
            assert ("result" in said.message) == answered, said.raw
            if not answered:
                check_error(rig, said, "UPSTREAM_UNAVAILABLE", 5030, retryable=True)
        assert len((tmp_path / "starts").read_bytes()) == starts

    asyncio.run(work())


@pytest.mark.parametrize(
    "upstream,does",
    [
        ("child", plan(then="die")),
        ("http", plan(then="die")),
        ("http", plan(b"x", how="500")),
        ("http", plan(b"x", how="502")),
    ],
    ids=["child dies", "connection ends", "500", "502"],
)
@pytest.mark.parametrize("door", ["http", "stdio"])
def test_what_has_reached_the_upstream_is_never_sent_again(
    door: str, upstream: str, does: dict[str, Any], tmp_path: Path
) -> None:
    """OUTCOME_UNKNOWN, however many retries there are: the tool may have acted."""

    async def work() -> None:
        async with rigged(door, upstream, KEPT, tmp_path, rules=Rules(retries=5)) as rig:
            said = await rig.ask(rig.call(plan=does))
            check_error(rig, said, "OUTCOME_UNKNOWN", 5021)
            assert ran(rig) == 1

    with patch.object(exchange, "_PAUSES", (0.0,)):
        asyncio.run(work())


@pytest.mark.parametrize("upstream", ["child", "http"])
@pytest.mark.parametrize("door", ["http", "stdio"])
def test_a_tool_has_a_time_limit_of_its_own(door: str, upstream: str, tmp_path: Path) -> None:
    """Which holds for no other: there a call may take as long as it likes."""
    tools = {"brief": Rules(timeout=0.05)}

    async def work() -> None:
        async with rigged(door, upstream, KEPT, tmp_path, rules=Rules(), tools=tools) as rig:
            said = await rig.ask(rig.call("brief", plan=plan(then="hang")))
            check_error(rig, said, "TIMEOUT", 5040)
            before = ran(rig)
            asked = await rig.begin(rig.call("free", plan=plan(then="hang")))
            await until_run(rig, before + 1)
            waiting = asyncio.ensure_future(asked)
            done, _ = await asyncio.wait([waiting], timeout=0.1)
            assert not done
            await rig.tell("notifications/release")
            assert "result" in (await waiting).message

    asyncio.run(work())


async def answers(rig: Rig, asked: list[asyncio.Task[Any]], released: int) -> None:
    """Release what runs, until everything is answered."""
    while not all(task.done() for task in asked):
        await until_run(rig, released)
        await rig.tell("notifications/release")
        await asyncio.wait(asked, timeout=0.02)
    for task in asked:
        assert "result" in task.result().message


@pytest.mark.parametrize(
    "limits,names,at_once",
    [
        ({"rules": Rules(concurrency=2)}, ["free", "picky", "brief", "free"], 2),
        ({"tools": {"brief": Rules(concurrency=1)}}, ["brief", "brief", "free", "free"], 3),
        (
            {"rules": Rules(concurrency=2), "tools": {"brief": Rules(concurrency=1)}},
            ["brief", "free", "brief", "free"],
            2,
        ),
        ({"rules": Rules()}, ["free"] * 5, 5),
    ],
    ids=["upstream", "tool", "both", "none"],
)
def test_so_many_calls_are_under_way_at_once(
    limits: dict[str, Any], names: list[str], at_once: int, tmp_path: Path
) -> None:
    """Of an upstream, and of a tool of its; the others wait for their turn and get it."""

    async def work() -> None:
        async with rigged("http", "child", KEPT, tmp_path, **({"rules": Rules()} | limits)) as rig:
            hang = plan(then="hang")
            calls = [rig.call(name, {"text": "x"}, plan=hang) for name in names]
            asked = [asyncio.create_task(rig.ask(call)) for call in calls]
            await until_run(rig, at_once)
            await rig.ask(rig.request("ping"))
            await asyncio.wait(asked, timeout=0.05)
            assert ran(rig) == at_once
            await answers(rig, asked, at_once)
            assert ran(rig) == len(names)

    asyncio.run(work())


def test_rules_that_change_hold_for_the_next_call(tmp_path: Path) -> None:
    """From the file: the label, the checks, the limits; what is under way goes on as it began."""
    file = tmp_path / "settings.toml"

    def write(rules: str) -> None:
        text = '[upstreams.puppet]\ncommand = "x"\n'
        file.with_suffix(".new").write_text(text + rules, encoding="utf-8")
        file.with_suffix(".new").replace(file)

    async def work() -> None:
        async with rigged("http", "child", KEPT, tmp_path, rules=Rules()) as rig:
            gateway = rig.gateway
            given = Given(config=str(file))
            write("")
            started = replace(gateway.settings, path=str(file))
            reloader = Reloader(started, lambda: load(given).settings, gateway.apply)
            running = asyncio.create_task(rig.ask(rig.call(plan=plan(then="hang"))))
            await until_run(rig, 1)
            write(
                'rules.label = "off"\nrules.input = "off"\nrules.concurrency = 2\n'
                "tools.brief.timeout = 0.05\n"
            )
            assert reloader.look()
            said = await rig.ask(rig.call("picky", {"text": 7}))
            assert "result" in said.message
            assert LABEL not in said.raw
            said = await rig.ask(rig.call("brief", plan=plan(then="hang")))
            check_error(rig, said, "TIMEOUT", 5040)
            write('rules.input = "strict"\nrules.concurrency = 3\n')
            assert reloader.look()
            said = await rig.ask(rig.call())
            assert LABEL in said.raw
            said = await rig.ask(rig.call("picky", {"text": 7}))
            assert said.message["result"]["isError"] is True
            await rig.tell("notifications/release")
            assert "result" in (await running).message
            assert gateway.routes["puppet"].settings.command != ("x",)

    asyncio.run(work())
