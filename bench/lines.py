"""Calls over standard input and output: latency, and the time to the first answer."""

from __future__ import annotations

import select
import statistics
import time
from contextlib import ExitStack

import orjson
from parties import INSTANT, demand_right, ours
from rig import HERE, PYTHON, Cores, RigError, Running, started
from wrk import call, opening

_PATIENCE = 30.0


def command_lines(cores: Cores) -> dict[str, list[str]]:
    """The command line of each that is compared; the server behind is on the client's core."""
    behind = ["taskset", "-c", str(cores.outer), *INSTANT]
    return {
        "direct": INSTANT,
        "line relay": [PYTHON, str(HERE / "line_relay.py"), *behind],
        "ours, memory": ours("memory:", "--", *behind),
        "ours, jsonl": ours("jsonl:calls.jsonl", "--", *behind),
    }


class Pipe:
    """A client of one process."""

    def __init__(self, name: str, running: Running) -> None:
        self.name = name
        self.running = running
        self._rest = b""
        self._ids = 0

    def open(self, tools: tuple[str, ...]) -> None:
        """Shake hands, and see that the tools are answered as they must."""
        self.ask(opening()[0])
        self._write(orjson.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        for tool in tools:
            said = orjson.loads(self.ask(call(tool, 1, stateless=False)))
            demand_right(tool, said, self.name)

    def latencies(self, tool: str, count: int) -> list[float]:
        """Milliseconds of so many calls, one after the other."""
        found = []
        for _ in range(count):
            self._ids += 1
            body = call(tool, self._ids, stateless=False)
            began = time.perf_counter()
            self.ask(body)
            found.append((time.perf_counter() - began) * 1000)
        return found

    def ask(self, body: bytes) -> bytes:
        """Send a line, and wait for one."""
        self._write(body)
        assert self.running.process.stdout is not None
        pipe = self.running.process.stdout.fileno()
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            if not select.select([pipe], [], [], _PATIENCE)[0]:
                raise RigError(f"{self.name} does not answer:\n{self.running.stderr()}")
            data = self.running.process.stdout.read(1024 * 1024)
            if not data:
                raise RigError(f"{self.name} has ended:\n{self.running.stderr()}")
            parts.append(data)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line

    def _write(self, body: bytes) -> None:
        assert self.running.process.stdin is not None
        data = body + b"\n"
        while data:
            data = data[self.running.process.stdin.write(data) or 0 :]


def compare(cores: Cores, rounds: int, counts: dict[str, int]) -> list[dict[str, object]]:
    """Medians of the rounds' median latencies, and of those beside the direct one's."""
    found: dict[tuple[str, str], list[list[float]]] = {}
    with ExitStack() as stack:
        pipes = []
        for name, line in command_lines(cores).items():
            running = stack.enter_context(started(line, cores.measured, pipes=True))
            pipes.append(Pipe(name, running))
            pipes[-1].open(tuple(counts))
        for _ in range(rounds):
            for tool, count in counts.items():
                for pipe in pipes:
                    found.setdefault((tool, pipe.name), []).append(pipe.latencies(tool, count))
    return [_row(tool, name, found) for tool, name in found]


def _row(
    tool: str, name: str, found: dict[tuple[str, str], list[list[float]]]
) -> dict[str, object]:
    mine = [statistics.median(each) for each in found[tool, name]]
    direct = [statistics.median(each) for each in found[tool, "direct"]]
    relay = [statistics.median(each) for each in found[tool, "line relay"]]
    added = [one - other for one, other in zip(mine, direct, strict=True)]
    base = [one - other for one, other in zip(relay, direct, strict=True)]
    ratios = [one / other if other > 0 else 0.0 for one, other in zip(added, base, strict=True)]
    return {
        "tool": tool,
        "party": name,
        "p50_ms": statistics.median(mine),
        "p99_ms": statistics.median(
            [sorted(each)[len(each) * 99 // 100] for each in found[tool, name]]
        ),
        "added_p50_ms": statistics.median(added),
        "added_of_relay": statistics.median(ratios),
    }


def first_answer(name: str, line: list[str], core: int) -> float:
    """Seconds from starting a process to the first call that it has answered rightly."""
    began = time.perf_counter()
    with started(line, core, pipes=True) as running:
        pipe = Pipe(name, running)
        pipe.open(("look",))
        return time.perf_counter() - began
