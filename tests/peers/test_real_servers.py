"""Real servers answer the same behind the gateway, apart from the record in `_meta`.

Each is asked directly over stdio (once an era), and then with the gateway in front: over stdio,
where the gateway takes the server's place in the client's settings, and over HTTP, where it makes
a web service of it.
"""

from __future__ import annotations

import asyncio
import functools
import json
import re
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.conformance.servers import announced
from tests.gateway_process import MARK, command, free_port, gateway, marked

from . import places
from .cast import LEGACY, PEERS, World, furnish, site
from .driver import Json, Step, differences, drive, over_http, over_stdio

pytestmark = [
    pytest.mark.peers,
    pytest.mark.requires("peers:node", "peers:servers", "git"),
]

# npm's everything-server puts the time of day and its session's id into some answers.
_VOLATILE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*(Z|[+-]\d\d:\d\d)?|\d+:\d\d:\d\d [AP]M"
    r"|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)
PAIRS = [
    pytest.param(name, era, marks=pytest.mark.xdist_group(f"peer-{name}"), id=f"{name}-{era}")
    for name, peer in PEERS.items()
    for era in peer.eras
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Files, a repository and a web site."""
    folder = tmp_path_factory.mktemp("world")
    furnish(folder)
    server = site()
    yield World(folder, f"http://127.0.0.1:{server.server_address[1]}")
    server.shutdown()
    server.server_close()


def heard(
    transport: Any, name: str, era: str, world: World, steps: Sequence[Step] | None = None
) -> Json:
    """What a client hears from a peer that is reached by ``transport``."""
    steps = PEERS[name].steps(world) if steps is None else steps
    told = asyncio.run(asyncio.wait_for(drive(transport, era, steps), 60))
    stable: Json = json.loads(_VOLATILE.sub("<volatile>", json.dumps(told)))
    return stable


@functools.cache
def directly(name: str, era: str, world: World) -> Json:
    """What it says without anything between."""
    return heard(over_stdio(PEERS[name].command(world)), name, era, world)


def wrapped(*words: str, mark: str = "") -> Any:
    """A transport to a server behind a gateway with a stdio door."""
    return over_stdio(command(*words), {MARK: mark} if mark else None)


@pytest.mark.parametrize("name,era", PAIRS)
def test_directly_it_answers_the_same_twice(world: World, name: str, era: str) -> None:
    """Every step is answered, most well; what differs later is not the server's doing."""
    first = directly(name, era, world)
    answers = first["answers"].values()
    assert len(answers) >= len(PEERS[name].steps(world))
    assert sum("result" in answer for answer in answers) > len(answers) / 2
    assert PEERS[name].proof in json.dumps(first, ensure_ascii=False)
    again = heard(over_stdio(PEERS[name].command(world)), name, era, world)
    assert not differences(first, again)


@pytest.mark.parametrize("name,era", PAIRS)
def test_over_stdio_it_answers_the_same(world: World, name: str, era: str) -> None:
    """The gateway takes the server's place in a client's settings, and leaves nothing behind."""
    mark = uuid.uuid4().hex
    transport = wrapped("--", *PEERS[name].command(world), mark=mark)
    through = heard(transport, name, era, world)
    assert not differences(directly(name, era, world), through)
    assert not marked(mark)


@pytest.mark.parametrize("name,era", PAIRS)
def test_over_http_it_answers_the_same(world: World, name: str, era: str) -> None:
    """The gateway makes a web service of a server that only knows stdio."""
    with gateway("--", *PEERS[name].command(world)) as running:
        through = heard(over_http(running.url), name, era, world)
    assert not differences(directly(name, era, world), through)


@pytest.mark.parametrize("name,era", PAIRS)
def test_what_it_refuses_is_refused(world: World, name: str, era: str) -> None:
    """A call that cannot be right is refused by the gateway, in whose words does not matter."""
    refused = PEERS[name].refused
    ways = (over_stdio(PEERS[name].command(world)), wrapped("--", *PEERS[name].command(world)))
    for transport in ways:
        answers = heard(transport, name, era, world, refused)["answers"].values()
        noes = [no for no in answers if "error" in no or no["result"].get("isError")]
        assert len(noes) == len(refused)


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    """Npm's everything-server over Streamable HTTP."""
    port = free_port()
    program = places.npm_program("mcp-server-everything")
    line = ["/usr/bin/env", f"PORT={port}", *program, "streamableHttp"]
    with announced(line, f"http://127.0.0.1:{port}/mcp") as url:
        yield url


@pytest.mark.xdist_group("peer-everything")
@pytest.mark.parametrize("door", ["http", "stdio"])
def test_a_web_server_answers_the_same(world: World, web: str, door: str) -> None:
    """A Streamable HTTP server behind the gateway, over HTTP and over stdio."""
    direct = heard(over_http(web), "everything", LEGACY, world)
    if door == "stdio":
        through = heard(wrapped("--upstream", web), "everything", LEGACY, world)
    else:
        with gateway("--upstream", web) as running:
            through = heard(over_http(running.url), "everything", LEGACY, world)
    assert not differences(direct, through)
