"""SIGKILL at random points: whatever was done or answered is in the ledger, and it holds.

Each campaign is some gateways one after another on one ledger, killed while they start, under
load, or while they stop; between them what the end of the machine may leave behind is left
behind. FAULTS_SEED repeats a run: it is printed first.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from tests.faults.clients import Pipe
from tests.faults.crowd import Books, Crowd
from tests.faults.ledgers import calls_in, lines_at, told_by_verb
from tests.faults.scene import POWER, STDIO, Scene, run, scene, until

SEED = os.environ.get("FAULTS_SEED") or str(time.time_ns())
HASTY = "tests.faults.hasty"
#: Of a campaign in the fast suite and in the slow one: how many kills.
KILLS, MANY_KILLS = 5, 10
#: Scheme, door, what is behind it, durability.
CASES = (
    ("sqlite", "http", "http", "process"),
    ("sqlite", "stdio", "stdio", "process"),
    ("jsonl", "http", "http", "process"),
    ("sqlite", "http", "stdio", "power"),
    ("jsonl", "stdio", "http", "process"),
)


@dataclass
class Campaign:
    """Gateways on one ledger, each of which is killed."""

    here: Scene
    door: str
    words: list[str]
    chance: Random
    durability: str
    crowd: Crowd = field(default_factory=Crowd)
    lines: list[bytes] = field(default_factory=list)
    data: bytes = b""
    taken: float = 0.5
    module: str = "mcp_envelope"
    tally: dict[str, int] = field(default_factory=dict)

    async def go(self, kills: int) -> None:
        """Kill so many gateways, and let one more end in order."""
        for _ in range(kills):
            way = self.chance.choices(
                [self.killed_at_start, self.killed_under_load, self.killed_at_stop], [1, 6, 1]
            )[0]
            self.count(way.__name__)
            await way()
            await self.check()
            if self.chance.random() < 0.6:
                self.leave_a_tear()
        self.leave_a_tear()
        await self.start()
        assert await self.here.stop() == 0
        await self.here.none_alive()
        await self.check()
        assert calls_in(Books(self.lines).entries)[-1]["event"] == "stopped"
        await self.search()
        if self.here.scheme == "jsonl":
            assert b"bytes of a line never finished" in self.here.log
            assert "torn tail" in await self.here.verified()
            assert await self.here.verified("--strict", code=1)

    @property
    def published(self) -> Path:
        """Where the newest checkpoint is kept, for when lines vanish from the end."""
        return self.here.state / "published"

    def count(self, what: str, much: int = 1) -> None:
        """For the figures."""
        self.tally[what] = self.tally.get(what, 0) + much

    async def start(self) -> None:
        """A gateway that is there."""
        began = time.monotonic()
        await self.launch()
        if self.door == "http":
            await self.here.listening()
        else:
            while b"MCP on" not in self.here.log:
                await self.here.logged()
        self.taken = time.monotonic() - began

    async def launch(self) -> None:
        """A gateway that starts."""
        every = str(self.chance.choice((5, 30, 1_000)))
        environment = {
            "MCP_ENVELOPE_RECORD__CHECKPOINT_LINES": every,
            "MCP_ENVELOPE_RECORD__PUBLISH_FILE": str(self.published),
        }
        if self.durability == "power":
            environment.update(POWER)
        http = self.door == "http"
        module = self.module
        await self.here.launch(*self.words, http=http, environment=environment, module=module)

    async def killed_at_start(self) -> None:
        """Anywhere between the first instruction and the first call."""
        await self.launch()
        await asyncio.sleep(self.chance.uniform(0.4, 1.1) * self.taken)
        await self.kill()

    async def killed_under_load(self) -> None:
        """With calls in all states."""
        await self.start()
        clients = self.clients()
        await self.some_calls()
        await asyncio.sleep(self.chance.uniform(0.0, 0.02))
        await self.kill()
        await asyncio.gather(*clients)

    async def killed_at_stop(self) -> None:
        """With the last lines and what the ledger does when it is closed under way."""
        await self.start()
        clients = self.clients()
        await self.some_calls()
        self.here.gateway.terminate()
        await asyncio.sleep(self.chance.uniform(0.0, 0.05))
        await self.kill()
        await asyncio.gather(*clients)

    async def some_calls(self) -> None:
        """Wait until some calls more were made: how many takes no notice of a slow machine."""
        wanted = len(self.crowd.told) + self.chance.randint(0, 80)
        await until(lambda: len(self.crowd.told) >= wanted, 10)

    def clients(self) -> list[asyncio.Task[None]]:
        """The load."""
        if self.door == "stdio":
            return [asyncio.create_task(self.crowd.over_stdio(Pipe(self.here.gateway)))]
        port = self.here.port
        return [asyncio.create_task(self.crowd.over_http(port)) for _ in range(6)]

    async def kill(self) -> None:
        """Kill the gateway; its children end by themselves."""
        if self.here.gateway.returncode is None:
            self.here.gateway.kill()
        await self.here.ended()
        await self.here.none_alive()

    async def check(self) -> None:
        """Compare what ledger, clients and servers say, and see that nothing was rewritten."""
        assert b"Traceback" not in self.here.log
        if not self.here.ledger.exists():
            assert not self.lines
            return
        if self.here.scheme == "jsonl":
            data = self.here.ledger.read_bytes()
            assert data.startswith(self.data)
            self.data = data
        lines = lines_at(self.here.ledger)
        assert lines[: len(self.lines)] == self.lines
        self.lines = lines
        books = Books(lines)
        books.compare(self.crowd, self.here.notes("got"))
        if any(entry["event"] == "checkpoint" for entry in books.entries):
            kept = ["--checkpoint", str(self.published)] if self.published.exists() else []
            await self.here.verified("--key", str(self.here.public_key), *kept)
        elif lines:
            await self.here.verified()

    async def search(self) -> None:
        """See that the index knows each call, however often it was cut off."""
        words = (self.here.url, self.here.state, "--json", "--limit", "0")
        said = json.loads(await asyncio.to_thread(told_by_verb, "query", *words))
        found = {each["request_id"]: each["event"] for each in said["entries"]}
        books = Books(self.lines)
        ends = {entry["request_id"]: "admitted" for entry in books.admitted.values()}
        ends |= {entry["request_id"]: "settled" for entry in books.settled.values()}
        assert found == ends

    def leave_a_tear(self) -> None:
        """What a machine that loses its power may leave behind the last whole line."""
        path = self.here.ledger
        torn = self.chance.choice(self.lines or [b'{"v":1'])[: self.chance.randint(1, 400)]
        if self.here.scheme == "sqlite":
            path = path.with_name(path.name + "-wal")
            torn *= self.chance.choice((1, 30))
        if path.exists():
            self.count("torn tails")
            with path.open("ab") as file:
                file.write(torn)
            if self.here.scheme == "jsonl":
                self.data += torn

    def figures(self) -> str:
        """What happened."""
        books = Books(self.lines)
        asked, answered = len(self.crowd.arguments), len(self.crowd.told)
        done = len(self.here.notes("got"))
        return (
            f"{self.tally}: {asked} calls asked, {done} done, {answered} answered; ledger: "
            f"{len(self.lines)} lines, {len(books.admitted)} admitted, {books.dangling} dangling"
        )


def campaign(number: int, kills: int, folder: Path) -> None:
    """One campaign, by its number."""
    scheme, door, behind, durability = CASES[number % len(CASES)]
    print(f"FAULTS_SEED={SEED} campaign {number}: {scheme}, {door} in, {behind} out, {durability}")

    async def work() -> None:
        async with scene(folder, scheme) as here:
            words = ["--", *STDIO]
            if behind == "http":
                words = ["--upstream", await here.serve_http()]
            chance = Random(f"{SEED}/{number}")
            fought = Campaign(here, door, words, chance, durability, Crowd(chance))
            await fought.go(kills)
            print(fought.figures())

    run(work(), 30.0 + 10.0 * kills)


@pytest.mark.parametrize("number", range(5))
def test_killed(number: int, tmp_path: Path) -> None:
    """25 kills: no call was done or answered without its lines, and the ledger holds each time."""
    campaign(number, KILLS, tmp_path)


def test_haste_is_found(tmp_path: Path) -> None:
    """A gateway that calls the tool before it has recorded so does not get through this."""

    async def work() -> None:
        async with scene(tmp_path, "sqlite") as here:
            words = ["--upstream", await here.serve_http()]
            hasty = Campaign(here, "http", words, Random(1), "process", module=HASTY)
            with pytest.raises(AssertionError, match="never admitted"):
                await hasty.go(5)

    run(work(), 60)


@pytest.mark.parametrize("times", [4, pytest.param(60, marks=pytest.mark.slow)])
def test_killed_while_it_begins(times: int, tmp_path: Path) -> None:
    """Whenever it is killed while it makes its key and its ledger, the next one can go on."""

    async def work() -> None:
        chance = Random(SEED)
        print(f"FAULTS_SEED={SEED}")
        for number in range(times):
            folder = tmp_path / str(number)
            folder.mkdir()
            async with scene(folder, "sqlite") as here:
                fought = Campaign(here, "http", ["--", *STDIO], chance, "process", Crowd(chance))
                await fought.launch()
                files = [here.public_key.with_suffix(".key"), here.ledger]
                seen = files[number % 2]
                while not list(seen.parent.glob(f"{seen.name}*")):  # noqa: ASYNC110 - no event
                    await asyncio.sleep(0)
                await asyncio.sleep(chance.uniform(0.0, 0.015))
                await fought.kill()
                await fought.start()
                await asyncio.gather(*(fought.crowd.over_http(here.port, 3) for _ in range(2)))
                assert await here.stop() == 0
                assert fought.crowd.outcomes() == {"ok": 6}
                Books(lines_at(here.ledger)).compare(fought.crowd, here.notes("got"))
                await here.verified("--strict", "--key", str(here.public_key))

    run(work(), 20.0 * times)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(50))
def test_killed_many_times(number: int, tmp_path: Path) -> None:
    """500 kills, likewise."""
    campaign(5 + number, MANY_KILLS, tmp_path)
