"""What reading a ledger costs: verifying it, searching it, proving that a line is in it."""

from __future__ import annotations

import contextlib
import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ledger_lines import BEGAN, STEP_MS, TOOLS
from rig import PYTHON, ROOT, Cores, RigError, pinned

from mcp_envelope.core.ports import Source
from mcp_envelope.core.proving import inclusion, line_at, newest_checkpoint
from mcp_envelope.core.search import Search
from mcp_envelope.stores import read_ledger
from mcp_envelope.stores.index import Index
from mcp_envelope.stores.index_search import find

_ONE_FILE: Final = ROOT / "src" / "mcp_envelope" / "verify_ledger.py"
_OURS: Final = (PYTHON, "-m", "mcp_envelope", "ledger")
_HOUR: Final = 3_600_000
_TURNS: Final = 20


@dataclass(frozen=True)
class Run:
    """One run of a verifier: lines a second of processor time, and the most memory in MiB."""

    lines: int
    rate: float
    memory: float


def verifications(small: Path, large: Path) -> Iterator[tuple[str, Run, Run]]:
    """Each verifier by name, over both ledgers."""
    for name, run in (("mcp-envelope ledger verify", _ours), ("verify_ledger.py", _one_file)):
        yield name, run(small), run(large)


def _ours(path: Path) -> Run:
    return _waited([*_OURS, "verify", f"sqlite:{path}"], _count(path))


def _one_file(path: Path) -> Run:
    """It reads JSON Lines: what the export writes, without a file in between."""
    export = [*_OURS, "export", f"sqlite:{path}"]
    cores = Cores.found()
    with subprocess.Popen(pinned(cores.outer, export), stdout=subprocess.PIPE) as exporting:
        assert exporting.stdout is not None
        line = [PYTHON, str(_ONE_FILE), "/dev/stdin"]
        return _waited(line, _count(path), exporting.stdout.fileno())


def _waited(line: Sequence[str], lines: int, stdin: int = subprocess.DEVNULL) -> Run:
    """Run a verifier on one core, and see what it took."""
    full = pinned(Cores.found().measured, list(line))
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(full, stdin=stdin, stdout=said, stderr=said)
        ended, status, used = os.wait4(process.pid, os.WNOHANG)
        memory = 0.0
        while not ended:
            # What `wait4` says of memory begins with what this process here occupies.
            memory = max(memory, _most_memory(process.pid))
            time.sleep(0.01)
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            text = said.read().decode(errors="replace")[-500:]
            raise RigError(f"{line} ended with {process.returncode}: {text}")
    return Run(lines, lines / (used.ru_utime + used.ru_stime), memory)


def _most_memory(pid: int) -> float:
    """Mebibytes that a process has occupied at most so far."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def _count(path: Path) -> int:
    with contextlib.closing(read_ledger(f"sqlite:{path}")) as source:
        first, end = source.bounds()
        return end - first


#: What a row says: what was measured, the figure, its unit, the goal, whether more is better,
#: and what else there is to say.
Figure = tuple[str, float, str, float | None, bool, str]


def figures(path: Path, *, is_quick: bool) -> Iterator[Figure]:
    """Index, queries and proofs of a ledger."""
    times = 5 if is_quick else 31
    began = time.perf_counter()
    with contextlib.closing(read_ledger(f"sqlite:{path}")) as source:
        _, end = source.bounds()
        opened = (time.perf_counter() - began) * 1e3
        yield f"opening {end:,} lines to read", opened, "ms", None, False, ""
        yield from _indexing(path, source, end)
        yield from _queries(source, end, times)
        yield from _proofs(source, end, times)


def _indexing(path: Path, source: Source, end: int) -> Iterator[Figure]:
    """What the index takes of each call's two lines, apart from writing them."""
    beside = path.with_name(path.name + ".index")
    for old in beside.parent.glob(beside.name + "*"):
        old.unlink()
    with contextlib.closing(Index(source)) as index:
        used, began = time.process_time(), time.perf_counter()
        for _ in range(_TURNS):
            index.turn()  # as the gateway has it follow
        lines = index.lines
        taken = (time.process_time() - used) / max(lines, 1) * 2e6
        yield "index, apart: two lines", taken, "µs CPU", None, False, f"over {lines:,} lines"
        index.follow()
        whole = time.perf_counter() - began
        size = sum(one.stat().st_size for one in beside.parent.glob(beside.name + "*"))
        said = f"{whole:.0f} s for all, {size / end:.0f} bytes a line"
        yield "index, apart: lines a second", end / whole, "lines/s", None, False, said


def _queries(source: Source, end: int, times: int) -> Iterator[Figure]:
    chance = random.Random(7)
    last = BEGAN * 1_000 + end // 2 * STEP_MS
    with contextlib.closing(Index(source)) as index:
        index.follow()

        def in_an_hour(tool: str, begin: int) -> Search:
            return Search(tool=tool, since=begin, until=begin + _HOUR)

        def ever(tool: str, _: int) -> Search:
            return Search(tool=tool)

        def failed(tool: str, begin: int) -> Search:
            return Search(tool=tool, outcome="EXECUTION_FAILED", since=begin)

        for name, goal, made in (
            ("tool and an hour", 100.0, in_an_hour),
            ("tool, newest 100", None, ever),
            ("tool, outcome and since", None, failed),
        ):
            taken, hits = [], 0
            for _ in range(times):
                search = made(chance.choice(TOOLS), chance.randrange(BEGAN * 1_000, last))
                began = time.perf_counter()
                index.follow()
                found = find(index, search)
                hits += len(list(found))
                taken.append((time.perf_counter() - began) * 1e3)
            yield _of(f"query by {name}", taken, goal, f"{hits / times:.0f} hits")


def _proofs(source: Source, end: int, times: int) -> Iterator[Figure]:
    chance = random.Random(7)
    newest = newest_checkpoint(source)
    assert newest is not None

    def prove() -> None:
        seq = chance.randrange(newest.seq)
        line = line_at(source, seq)
        assert line is not None
        inclusion(source, seq, line, newest)

    yield _of("one proof", [_ms(prove) for _ in range(times)], 10.0, "")
    yield _of(
        "the newest checkpoint",
        [_ms(lambda: newest_checkpoint(source)) for _ in range(times)],
        None,
        "",
    )


def _ms(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1e3


def _of(what: str, taken: Sequence[float], goal: float | None, note: str) -> Figure:
    most = f"{max(taken):.1f} ms at most"
    return what, statistics.median(taken), "ms", goal, False, f"{note}, {most}" if note else most
