"""What writing a ledger costs: each line, alone and beside others, and as the ledger grows."""

from __future__ import annotations

import asyncio
import gc
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import uvloop
from ledger_lines import calls, free_bytes, latencies, opened

from mcp_envelope.core.ports import Durability

SMALL: Final = 10_000
#: Bytes that a line takes on the disk, generously, with the index of its search.
A_LINE: Final = 2_000
_T = TypeVar("_T")


@dataclass(frozen=True)
class Kind:
    """A way to keep a ledger."""

    name: str
    scheme: str
    durability: Durability = "process"


KINDS: Final = (
    Kind("no ledger", "none"),
    Kind("memory", "memory"),
    Kind("jsonl", "jsonl"),
    Kind("sqlite", "sqlite"),
    Kind("jsonl, power", "jsonl", "power"),
    Kind("sqlite, power", "sqlite", "power"),
)


@dataclass(frozen=True)
class Cost:
    """What a call's two lines take, in microseconds, medians of rounds, and its latency."""

    cpu_us: float
    wall_us: float
    p50_ms: float
    p99_ms: float


def run(work: Coroutine[Any, Any, _T]) -> _T:
    """Run it on the loop that the gateway runs on."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def costs(folder: Path, rounds: int, count: int) -> dict[str, Cost]:
    """What each kind of ledger costs, by turns in each round."""
    return run(_costs(folder, rounds, count))


async def _costs(folder: Path, rounds: int, count: int) -> dict[str, Cost]:
    ledgers = {
        kind: opened(kind.scheme, folder / f"{n}", kind.durability) for n, kind in enumerate(KINDS)
    }
    cpu: dict[Kind, list[float]] = {kind: [] for kind in KINDS}
    wall: dict[Kind, list[float]] = {kind: [] for kind in KINDS}
    late: dict[Kind, list[float]] = {kind: [] for kind in KINDS}
    for number in range(rounds + 1):
        for kind, ledger in ledgers.items():
            first = number * count * 2
            taken = await _taken(ledger, first, count)
            alone = await latencies(ledger, first + count, min(200, count))
            if number:  # the first round is to get warm
                cpu[kind].append(taken[0])
                wall[kind].append(taken[1])
                late[kind] += alone
    for ledger in ledgers.values():
        await ledger.close()
    return {
        kind.name: Cost(
            statistics.median(cpu[kind]),
            statistics.median(wall[kind]),
            statistics.median(late[kind]),
            statistics.quantiles(late[kind], n=100)[98],
        )
        for kind in KINDS
    }


async def _taken(ledger: Any, first: int, count: int, at_once: int = 16) -> tuple[float, float]:
    """Microseconds a call: of processor time, of all threads, and on the clock."""
    gc.collect()
    used, began = time.process_time_ns(), time.perf_counter_ns()
    await calls(ledger, first, count, at_once)
    ended, done = time.perf_counter_ns(), time.process_time_ns()
    return (done - used) / count / 1e3, (ended - began) / count / 1e3


class NoRoomError(Exception):
    """The disk is too small for a ledger of that size."""


def grown(folder: Path, lines: int) -> Path:
    """A ledger of that many lines: made, unless it is there. NoRoomError if it does not fit."""
    path = folder / f"grown-{lines}.db"
    done = path.with_suffix(".done")
    if not done.exists():
        for old in folder.glob(f"{path.name}*"):
            old.unlink()
        free = free_bytes(folder)
        if free < lines * A_LINE:
            raise NoRoomError(
                f"{lines:,} lines need {lines * A_LINE / 1e9:.1f} GB, and {folder} has "
                f"{free / 1e9:.1f} GB left"
            )
        run(_grow(path, lines))
        done.touch()
    return path


async def _grow(path: Path, lines: int) -> None:
    ledger = opened("sqlite", path)
    began, step = time.monotonic(), 50_000
    try:
        for first in range(0, lines // 2, step):
            count = min(step, lines // 2 - first)
            await calls(ledger, first, count, 1_000)
            rate = (first + count) * 2 / (time.monotonic() - began)
            say(f"{(first + count) * 2:,} of {lines:,} lines are written, {rate:,.0f} a second")
    finally:
        await ledger.close()


@dataclass(frozen=True)
class Growth:
    """The cost of a call in a small ledger and in a large one, and the median of their ratios."""

    small_us: float
    large_us: float
    ratio: float
    wall_ratio: float


def growth(folder: Path, large: Path, rounds: int, count: int) -> Growth:
    """What a call costs in a ledger of 10,000 lines, made anew each time, and in a large one."""
    small = grown(folder, SMALL)
    return run(_growth(small, large, rounds, count))


async def _growth(small: Path, large: Path, rounds: int, count: int) -> Growth:
    pairs: list[tuple[tuple[float, float], tuple[float, float]]] = []
    ledger = opened("sqlite", large)
    try:
        await calls(ledger, 10**7, 500, 16)
        for number in range(rounds):
            with tempfile.TemporaryDirectory(dir=small.parent) as place:
                copy = Path(place) / small.name
                shutil.copy(small, copy)
                other = opened("sqlite", copy)
                await calls(other, 10**7, 500, 16)
                mine = await _taken(other, 2 * 10**7, count)
                await other.close()
            pairs.append((mine, await _taken(ledger, 10**7 + (number + 1) * count, count)))
    finally:
        await ledger.close()
    return Growth(
        statistics.median(mine[0] for mine, _ in pairs),
        statistics.median(theirs[0] for _, theirs in pairs),
        statistics.median(theirs[0] / mine[0] for mine, theirs in pairs),
        statistics.median(theirs[1] / mine[1] for mine, theirs in pairs),
    )


def opening_ms(path: Path, rounds: int) -> float:
    """Milliseconds until a ledger is open for writing."""

    async def once() -> float:
        began = time.perf_counter()
        ledger = opened("sqlite", path)
        taken = (time.perf_counter() - began) * 1e3
        await ledger.close()
        return taken

    return statistics.median(run(once()) for _ in range(rounds))


def say(text: str) -> None:
    """Progress, for people."""
    if sys.stderr.isatty():
        print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)
