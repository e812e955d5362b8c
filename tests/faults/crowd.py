"""Clients that put load on a gateway until it is gone, and remember all that they were told."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random
from typing import Any

from tests.faults.clients import Http, Message, Pipe, Speech
from tests.faults.ledgers import Entry
from tests.faults.scene import until
from tests.faults.script import MODERN
from tests.stores.chain import follow

GONE = (asyncio.IncompleteReadError, ConnectionError)
LABEL = "dev.mcp-envelope/record"


def digest_of(arguments: object) -> str:
    """What the ledger says of arguments: of texts and integers, whose canonical form is plain."""
    text = json.dumps(arguments, separators=(",", ":"), sort_keys=True)
    return f"sha256:{sha256(text.encode()).hexdigest()}"


@dataclass(frozen=True)
class Told:
    """How a call ended for its client: the code, and the label that came with the result."""

    outcome: str
    label: dict[str, Any] | None
    after: float


def told_by(message: Message, after: float = 0.0) -> Told:
    """What an answer says."""
    if "error" in message:
        return Told(str(message["error"]["data"]["code"]), None, after)
    result = message["result"]
    return Told("ok", result.get("_meta", {}).get(LABEL), after)


@dataclass
class Crowd:
    """Clients of one gateway, or of several one after another. No two calls have a nonce alike."""

    chance: Random = field(default_factory=lambda: Random(1))
    most_ms: int = 12
    arguments: dict[str, dict[str, Any]] = field(default_factory=dict)
    told: dict[str, Told] = field(default_factory=dict)
    lost: int = 0
    enough: bool = False
    prefix: str = "n"

    def call(self, speech: Speech, id: int, ms: int | None = None) -> tuple[str, Message]:
        """A new call with its nonce."""
        nonce = f"{self.prefix}{len(self.arguments)}"
        wait = self.chance.randint(0, self.most_ms) if ms is None else ms
        self.arguments[nonce] = {"nonce": nonce, "ms": wait}
        return nonce, speech.call(id, "slow", **self.arguments[nonce])

    async def over_http(self, port: int, calls: int = 100_000, revision: str = MODERN) -> None:
        """One client: calls one after another, as long as the connection holds."""
        http, speech = Http(port), Speech(revision, logs=False)
        try:
            await speech.open(http)
            for id in range(1, calls + 1):
                if self.enough:
                    break
                if (await self.ask(http, speech, id)).outcome != "ok":
                    await asyncio.sleep(0.01)
        except GONE:
            self.lost += 1
        finally:
            http.close()

    async def ask(self, http: Http, speech: Speech, id: int = 1, ms: int | None = None) -> Told:
        """One call."""
        nonce, message = self.call(speech, id, ms)
        clock = asyncio.get_running_loop().time
        began = clock()
        response = await speech.post(http, message)
        last = response.messages[-1]
        assert last["id"] == id, response
        self.told[nonce] = told_by(last, clock() - began)
        return self.told[nonce]

    async def over_stdio(self, pipe: Pipe, side_by_side: int = 8) -> None:
        """One client: so many calls at once, as long as there is an output."""
        speech, waiting = Speech(MODERN, logs=False), dict[int, str]()
        try:
            for id in range(1, 100_000):
                nonce, message = self.call(speech, id)
                waiting[id] = nonce
                pipe.send(message)
                if len(waiting) == side_by_side:
                    answer = await pipe.read()
                    if answer is None:
                        break
                    self.told[waiting.pop(answer["id"])] = told_by(answer)
        except (*GONE, AssertionError):  # the last line may be half of one
            self.lost += 1
        while waiting and (answer := await _rest(pipe)) is not None:
            self.told[waiting.pop(answer["id"])] = told_by(answer)

    def outcomes(self) -> Counter[str]:
        """How often there was which end."""
        return Counter(told.outcome for told in self.told.values())

    async def until_ok(self, count: int) -> None:
        """Wait until so many calls were answered well."""
        await self.until_told(lambda ends: ends["ok"] >= count)

    async def until_told(self, holds: Callable[[Counter[str]], bool], within: float = 10.0) -> None:
        """Wait until clients were told so much."""
        await until(lambda: holds(self.outcomes()), within)


async def _rest(pipe: Pipe) -> Message | None:
    try:
        return await pipe.read()
    except (*GONE, AssertionError):
        return None


class Books:
    """What a ledger says of calls: each admitted once, and settled once at most, after that."""

    def __init__(self, lines: list[bytes]) -> None:
        self.lines = lines
        self.entries = follow(lines)
        self.admitted: dict[str, Entry] = {}
        self.settled: dict[str, Entry] = {}
        requests: dict[str, str] = {}
        for entry in self.entries:
            if entry["event"] == "admitted":
                digest = entry["input"]["digest"]
                assert digest not in self.admitted, f"{digest} is admitted twice"
                assert entry["request_id"] not in requests
                self.admitted[digest] = entry
                requests[entry["request_id"]] = digest
            elif entry["event"] == "settled":
                digest = requests[entry["request_id"]]
                assert digest not in self.settled, f"{digest} is settled twice"
                assert entry["input"]["digest"] == digest
                self.settled[digest] = entry

    @property
    def dangling(self) -> int:
        """How many calls have no end."""
        return len(self.admitted) - len(self.settled)

    def compare(self, crowd: Crowd, got: list[str]) -> None:
        """See that whatever was done or answered is in the ledger.

        ``got`` are the nonces that reached the upstream, as it counted them itself.
        """
        digests = {nonce: digest_of(given) for nonce, given in crowd.arguments.items()}
        times = Counter(got)
        for nonce, count in times.items():
            assert count == 1, f"{nonce} was done {count} times"
            assert digests[nonce] in self.admitted, f"{nonce} was done, and was never admitted"
        for nonce, told in crowd.told.items():
            self._compare(nonce, digests[nonce], told, reached=nonce in times)

    def _compare(self, nonce: str, digest: str, told: Told, *, reached: bool) -> None:
        if told.outcome == "RECORD_UNAVAILABLE":
            assert not reached, f"{nonce} was done without a record"
            assert digest not in self.settled
        elif told.outcome == "OUTCOME_UNKNOWN":
            assert digest in self.admitted
        else:
            assert digest in self.settled, f"{nonce} was answered, and never settled"
            assert self.settled[digest]["outcome"] == told.outcome
        if told.outcome == "ok":
            # The label is a receipt: this line with this digest is in the ledger.
            assert reached
            assert told.label is not None
            line = self.lines[told.label["seq"]]
            assert f"sha256:{sha256(line).hexdigest()}" == told.label["digest"]
            assert told.label["request_id"] == self.settled[digest]["request_id"]
