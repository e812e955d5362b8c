"""What the gateway costs, beside a bare forwarder and other proxies, in one run.

    python bench/gateway.py [--quick] [--json]

bench/README.md says what is compared and how to read it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import lines
import parties
from parties import ERAS, Party
from rig import Cores, RigError, await_port, free_port, started
from wrk import Driven, call, drive, headers, is_there

SIZES = {"200 B": "look", "10 KB of rows": "store", "10 KB of text": "write"}
CONCURRENCY = (1, 16)
#: Who has to be beaten by what factor in calls per second, at concurrency 16: issue 5.
GOALS = {"mcp-proxy": {"200 B": 10, "10 KB of rows": 20}, "FastMCP": {"200 B": 15}}
CPU_GOALS = {"200 B": 2.5, "10 KB of rows": 3.5}


@dataclass(frozen=True)
class Case:
    """What is sent: in which era, of which size, by how many at once."""

    era: str
    size: str
    concurrency: int


@dataclass(frozen=True)
class Taken:
    """One run of one party: what the driver saw, and microseconds of processor time per call."""

    driven: Driven
    cpu: float


Found = dict[tuple[Case, str], list[Taken]]


def over_http(everybody: list[Party], cores: Cores, options: argparse.Namespace) -> Found:
    """Rounds of all cases, in each of them every party in turn."""
    found: Found = {}
    cases = [
        Case(era, size, many) for era in ERAS for size in options.sizes for many in CONCURRENCY
    ]
    for number in range(options.rounds):
        for case in cases:
            for party in everybody:
                if case.era in party.eras:
                    taken = run_once(party, case, cores, options.seconds)
                    found.setdefault((case, party.name), []).append(taken)
        say(f"round {number + 1} of {options.rounds} is done")
    return found


def run_once(party: Party, case: Case, cores: Cores, seconds: int) -> Taken:
    """Send calls for some seconds, and see what they take."""
    party.running.demand_alive()
    stateless = case.era != "legacy"
    tool = SIZES[case.size]
    first, mark, last = call(tool, 0, stateless=stateless).partition(b'"id":0')
    before = party.running.cpu(tree=party.tree)
    driven = drive(
        party.port,
        (first + mark[:-1], last),
        headers(tool, party.sessions[case.era], stateless=stateless),
        core=cores.outer,
        concurrency=case.concurrency,
        seconds=seconds,
    )
    taken = party.running.cpu(tree=party.tree) - before
    return Taken(driven, taken / driven.calls * 1e6)


def http_rows(found: Found) -> list[dict[str, Any]]:
    """A row for each case and party: medians of the rounds, and medians of the rounds' ratios."""
    rows = []
    for (case, name), mine in found.items():
        direct, bare = found[case, "direct"], found[case, "forwarder"]
        rows.append(
            {
                "era": case.era,
                "size": case.size,
                "concurrency": case.concurrency,
                "party": name,
                "calls_per_s": _median(mine, lambda one: one.driven.rate),
                "p50_ms": _median(mine, lambda one: one.driven.p50),
                "p99_ms": _median(mine, lambda one: one.driven.p99),
                "added_p50_ms": _median_of_pairs(mine, direct, _added),
                "cpu_us": _median(mine, lambda one: one.cpu),
                "cpu_of_forwarder": _median_of_pairs(mine, bare, lambda a, b: a.cpu / b.cpu),
                "rate_of_forwarder": _median_of_pairs(mine, bare, _faster),
            }
            | {
                f"rate_of_{peer}": _median_of_pairs(mine, found[case, peer], _faster)
                for peer in GOALS
                if (case, peer) in found and name.startswith("ours")
            }
        )
    return rows


def _added(one: Taken, other: Taken) -> float:
    return one.driven.p50 - other.driven.p50


def _faster(one: Taken, other: Taken) -> float:
    return one.driven.rate / other.driven.rate


def _median(runs: list[Taken], of: Callable[[Taken], float]) -> float:
    return statistics.median(of(each) for each in runs)


def _median_of_pairs(
    mine: list[Taken], theirs: list[Taken], of: Callable[[Taken, Taken], float]
) -> float:
    return statistics.median(of(a, b) for a, b in zip(mine, theirs, strict=True))


def start_up(cores: Cores, times: int) -> dict[str, float]:
    """Seconds to the first call that was answered rightly, median, rounds interleaved."""
    found: dict[str, list[float]] = {}
    with ExitStack() as stack:
        behind = free_port()
        upstream = stack.enter_context(started(parties.upstream_line(behind), cores.outer))
        await_port(upstream, behind)
        over_http = parties.lines(f"http://127.0.0.1:{behind}/mcp", cores)
        for _ in range(times):
            for name, line in over_http.items():
                if name in parties.missing():
                    continue
                port = free_port()
                taken = parties.first_answer(line(port), port, cores.measured, name)
                found.setdefault(f"{name}, http", []).append(taken)
            for name, words in lines.command_lines(cores).items():
                taken = lines.first_answer(name, words, cores.measured)
                found.setdefault(f"{name}, stdio", []).append(taken)
    return {name: statistics.median(each) for name, each in found.items()}


def memory(cores: Cores, calls: int) -> dict[str, dict[str, float]]:
    """Mebibytes before the first call, after some thousand, and after all of them."""
    found: dict[str, dict[str, float]] = {}
    for name in ("ours, jsonl", "ours, memory"):
        with ExitStack() as stack:
            behind, port = free_port(), free_port()
            upstream = stack.enter_context(started(parties.upstream_line(behind), cores.outer))
            await_port(upstream, behind)
            line = parties.lines(f"http://127.0.0.1:{behind}/mcp", cores)[name](port)
            party = Party(name, port, stack.enter_context(started(line, cores.measured)))
            await_port(party.running, port)
            idle = party.running.memory()
            party.open()
            first = run_once(party, Case("legacy", "200 B", 16), cores, 2).driven.calls
            warm, done = party.running.memory(), first
            while done < calls:
                done += run_once(party, Case("legacy", "200 B", 16), cores, 4).driven.calls
            end = party.running.memory()
            found[name] = {"idle": idle, f"after {first:,}": warm, f"after {done:,}": end}
    return found


def report(rows: list[dict[str, Any]]) -> None:
    """The table of calls over HTTP, and the goals."""
    head = f"{'':<14}{'calls/s':>9}{'p50 ms':>8}{'p99 ms':>8}{'added':>8}{'CPU µs':>8}"
    head += f"{'CPU':>7}{'rate':>7}"
    shown = None
    for row in rows:
        case = (row["era"], row["size"], row["concurrency"])
        if case != shown:
            print(f"\n{row['size']}, {row['era']}, {row['concurrency']} at once\n{head}")
            shown = case
        print(
            f"{row['party']:<14}{row['calls_per_s']:>9,.0f}{row['p50_ms']:>8.2f}"
            f"{row['p99_ms']:>8.2f}{row['added_p50_ms']:>8.3f}{row['cpu_us']:>8.0f}"
            f"{row['cpu_of_forwarder']:>6.2f}×{row['rate_of_forwarder']:>6.2f}×{_goals(row)}"
        )


def _goals(row: dict[str, Any]) -> str:
    """What a row of ours shows of the goals of issue 5."""
    if not row["party"].startswith("ours"):
        return ""
    said = []
    most = CPU_GOALS.get(row["size"])
    if most is not None and row["concurrency"] == 16:
        said.append(f"CPU goal {most}×")
    if row["concurrency"] == 16:
        for peer, goals in GOALS.items():
            if f"rate_of_{peer}" in row:
                least = goals.get(row["size"])
                goal = f" (goal {least}×)" if least else ""
                said.append(f"{row[f'rate_of_{peer}']:.1f}× {peer}{goal}")
    else:
        said.append("added goal 0.35 ms" if row["size"] == "200 B" else "")
    return "   " + ", ".join(one for one in said if one)


def report_rest(found: dict[str, Any]) -> None:
    """The tables of what is not over HTTP."""
    print(f"\nstdio\n{'':<14}{'tool':>8}{'p50 ms':>9}{'p99 ms':>9}{'added':>9}{'of relay':>9}")
    for row in found["stdio"]:
        print(
            f"{row['party']:<14}{row['tool']:>8}{row['p50_ms']:>9.3f}{row['p99_ms']:>9.3f}"
            f"{row['added_p50_ms']:>9.3f}{row['added_of_relay']:>8.2f}×"
        )
    print("\nfrom start to the first call that was answered rightly (goal: 0.4 s)")
    for name, seconds in found["start_s"].items():
        print(f"  {name:<22}{seconds:>7.3f} s")
    print("\nmemory, MiB (goal: idle under 60, then flat)")
    for name, taken in found["memory_mib"].items():
        print(f"  {name:<14}" + ", ".join(f"{when} {size:.1f}" for when, size in taken.items()))


def say(text: str) -> None:
    """Tell how far it is, on standard error."""
    print(text, file=sys.stderr, flush=True)


def given() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="about two minutes")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--http-only", action="store_true", help="no stdio, start-up, memory")
    parser.add_argument("--rounds", type=int, help="how often each is measured")
    parser.add_argument("--seconds", type=int, help="how long each time")
    options = parser.parse_args()
    options.rounds = options.rounds or (2 if options.quick else 5)
    options.seconds = options.seconds or (1 if options.quick else 3)
    options.sizes = list(SIZES)[: 2 if options.quick else 3]
    return options


def main() -> int:
    """Measure, and print."""
    options = given()
    if not is_there():
        print("SKIPPED: `apt-get install -y wrk` (and taskset, of util-linux)", file=sys.stderr)
        return 0
    cores = Cores.found()
    if cores.outer == cores.measured:
        say("there is one core only: client, server and gateway share it")
    found: dict[str, Any] = {"load_before": os.getloadavg(), "cores": [cores.outer, cores.measured]}
    try:
        with ExitStack() as stack:
            everybody = parties.start_all(stack, cores)
            found["http"] = http_rows(over_http(everybody, cores, options))
        if not options.http_only:
            counts = {"look": 300 if options.quick else 1_000, "store": 100}
            found["stdio"] = lines.compare(cores, options.rounds + 1, counts)
            say("stdio is done")
            found["start_s"] = start_up(cores, 2 if options.quick else 5)
            say("start-up is done")
            found["memory_mib"] = memory(cores, 10_000 if options.quick else 100_000)
    except RigError as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(found, indent=1))
        return 0
    report(found["http"])
    if not options.http_only:
        report_rest(found)
    load = found["load_before"][0]
    print(f"\nCPU and rate are beside the forwarder's; load of the machine before: {load:.1f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
