"""Calls as the pipeline tells a ledger of them, and ledgers that are told."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from mcp_envelope.core.entry import Body, Facts, Receipt
from mcp_envelope.core.ports import Durability, Ledger, Sealing, Writing
from mcp_envelope.core.signing import Signer
from mcp_envelope.stores import STORES

TOOLS: Final = tuple(f"tool_{number}" for number in range(50))
#: Milliseconds of simulated time from call to call, and when the first one was.
STEP_MS: Final = 20
BEGAN: Final = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
INSTANCE: Final = "b17fa53e0c9d4f21"
_DEFINITIONS: Final = {tool: f"sha256:{sha256(tool.encode()).hexdigest()}" for tool in TOOLS}
_BODIES: Final = tuple(Body(sha256(b"%d" % number).hexdigest(), 180) for number in range(64))


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def time_of(call: int) -> str:
    """When a call was."""
    seconds, rest = divmod(call * STEP_MS, 1_000)
    return f"{_second(BEGAN + seconds)}.{rest:03d}Z"


def now() -> str:
    """The time of day, as the gateway asks for it."""
    seconds, rest = divmod(time.time_ns(), 1_000_000_000)
    return f"{_second(seconds)}.{rest // 1_000_000:03d}Z"


class Call:
    """One call: its two lines share all but how it ended."""

    __slots__ = ("_number", "_request_id", "_tool")

    def __init__(self, number: int) -> None:
        self._number = number
        self._tool = TOOLS[number * 7 % len(TOOLS)]
        self._request_id = f"{number:08x}-00ce-4c16-88a2-e52382137663"

    def admitted(self) -> Facts:
        """Before the tool is called."""
        return self._facts("admitted", time_of(self._number))

    def settled(self) -> Facts:
        """After it."""
        return self._facts(
            "settled",
            time_of(self._number),
            outcome="EXECUTION_FAILED" if self._number % 53 == 0 else "ok",
            duration_ms=12.345,
            output=_BODIES[self._number * 5 % 64],
        )

    def _facts(self, event: str, moment: str, **more: object) -> Facts:
        tool = self._tool
        return Facts(
            event=event,  # type: ignore[arg-type]
            time=moment,
            instance=INSTANCE,
            kind=f"mcp/request:tools/call:{tool}",
            tool=tool,
            definition=_DEFINITIONS[tool],
            peer=f"agent-{self._number % 7}",
            request_id=self._request_id,
            client_id=self._number,
            run_id=self._request_id,
            trace_id="4bf92f3577b34da6a3ce929d0e0e4736",
            door="http",
            dialect="mcp",
            input=_BODIES[self._number % 64],
            **more,  # type: ignore[arg-type]
        )


class NoLedger:
    """Takes everything and does nothing: what a call costs without its lines."""

    url = "none:"
    _receipt = Receipt(0, "")

    async def append(self, facts: Facts, bodies: Sequence[bytes] = ()) -> Receipt:
        """Do nothing."""
        return self._receipt

    async def seal(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""


def opened(scheme: str, path: Path, durability: Durability = "process") -> Ledger | NoLedger:
    """A ledger as the gateway opens it, with a checkpoint after every 1,000 lines."""
    if scheme == "none":
        return NoLedger()
    signer = Signer("bench", bytes(range(32)))
    sealing = Sealing(signers=(signer,), now=now, instance=INSTANCE)
    place = "" if scheme == "memory" else str(path)
    return STORES[scheme].open(place, Writing(durability=durability, sealing=sealing))


async def calls(ledger: Ledger | NoLedger, first: int, count: int, at_once: int) -> None:
    """Record that many calls, so many of them at a time."""
    numbers = iter(range(first, first + count))

    async def client() -> None:
        for number in numbers:
            call = Call(number)
            await ledger.append(call.admitted())
            await ledger.append(call.settled())

    await asyncio.gather(*(client() for _ in range(at_once)))


async def latencies(ledger: Ledger | NoLedger, first: int, count: int) -> list[float]:
    """Milliseconds that the two lines of a call take, one after another, nothing else going on."""
    found = []
    for number in range(first, first + count):
        await asyncio.sleep(0.0005)  # an idle loop, as it is between the calls of one client
        call = Call(number)
        began = time.perf_counter()
        await ledger.append(call.admitted())
        await ledger.append(call.settled())
        found.append((time.perf_counter() - began) * 1e3)
    return found


def free_bytes(folder: Path) -> int:
    """How much room there is."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
