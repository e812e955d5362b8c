"""Real servers side by side behind one door answer as they do alone, under longer names."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.gateway_process import command, gateway

from .cast import LEGACY, MODERN, PEERS, World, furnish
from .driver import Json, Step, differences, drive, over_http, over_stdio

pytestmark = [
    pytest.mark.peers,
    pytest.mark.requires("peers:node", "peers:servers", "git"),
    pytest.mark.xdist_group("peers-several"),
]

#: Without it the client asks for a list of its own, before its first call.
LIST: Step = ("tools/list", {})
NAMES = ("time", "everything", "memory")
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*(Z|[+-]\d\d:\d\d)?|\d+:\d\d:\d\d [AP]M")
# Of what was sampled and elicited its own tests speak; subscriptions have no answer worth it.
_NOWHERE = "demo://no/such"
_CALLS = ("tools/call", "prompts/get", "resources/read", "completion/complete")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Files and a repository."""
    folder = tmp_path_factory.mktemp("several")
    furnish(folder)
    return World(folder, "http://127.0.0.1:1")


def heard(transport: Any, mode: str, steps: Sequence[Step]) -> Json:
    """What a client hears."""
    told = asyncio.run(asyncio.wait_for(drive(transport, mode, steps), 60))
    stable: Json = json.loads(_TIMES.sub("<time>", json.dumps(told)))
    return stable


def calls_of(name: str, world: World) -> list[Step]:
    """The calls of a server's part, but for what none has: that is refused in our words."""
    steps = PEERS[name].steps(world)
    return [step for step in steps if step[0] in _CALLS and step[1].get("uri") != _NOWHERE]


def behind(name: str, step: Step) -> Step:
    """The same, under the name that it has behind the gateway."""
    method, params = step
    longer: Json = {key: f"{name}__{params[key]}" for key in ("name", "prompt") if key in params}
    return method, {**params, **longer}


@contextlib.contextmanager
def door(kind: str, world: World, names: Sequence[str] = NAMES) -> Iterator[Any]:
    """A transport to a gateway with these servers."""
    servers = {}
    for name in names:
        program, *arguments = PEERS[name].command(world)
        servers[name] = {"command": program, "args": arguments}
    file = Path(world.folder) / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    if kind == "stdio":
        yield over_stdio(command("--from", str(file)))
    else:
        with gateway("--from", str(file)) as running:
            yield over_http(running.url)


def answers(told: Json, count: int) -> list[Any]:
    """The last answers."""
    return list(told["answers"].values())[-count:]


@pytest.mark.parametrize("mode", [LEGACY, "auto"])
@pytest.mark.parametrize("kind", ["stdio", "http"])
def test_three_at_once_answer_as_each_alone(world: World, kind: str, mode: str) -> None:
    """Also to a client of both eras, of which two of the servers know only the older one."""
    alone: list[Any] = []
    steps: list[Step] = []
    for name in NAMES:
        its = calls_of(name, world)
        told = heard(over_stdio(PEERS[name].command(world)), LEGACY, [LIST, *its])
        alone += answers(told, len(its))
        steps += [behind(name, step) for step in its]
    with door(kind, world) as transport:
        told = heard(transport, mode, [LIST, *steps])
    assert not differences(alone, answers(told, len(steps)))
    listed = answers(told, len(steps) + 1)[0]["result"]["tools"]
    assert {each["name"].partition("__")[0] for each in listed} == set(NAMES)


@pytest.mark.parametrize("kind", ["stdio", "http"])
def test_two_of_the_new_era_are_spoken_to_in_it(world: World, kind: str) -> None:
    """Nothing keeps a client of 2026-07-28 from it."""
    names = ("time", "git")
    steps = [behind(name, step) for name in names for step in calls_of(name, world)]
    with door(kind, world, names) as transport:
        told = heard(transport, MODERN, [LIST, *steps])
    found = answers(told, len(steps) + 1)
    assert all(each["result"]["resultType"] == "complete" for each in found if "result" in each)
    assert sum("result" in each for each in found) > len(found) / 2
    assert {each["name"].partition("__")[0] for each in found[0]["result"]["tools"]} == set(names)
    with door(kind, world, names) as transport:
        told = heard(transport, "auto", [LIST])
    assert answers(told, 1)[0]["result"]["resultType"] == "complete"
