"""How long a capability decision takes: 150 patterns that narrow one METHOD, distinct kinds.

    python bench/capability.py [--rounds N] [--json] [--check]

Every shape of pattern is asked about kinds that it allows (hit) and kinds that it does not (miss,
the common case, since what is not granted is denied), each given as text, which the decision then
reads, and as a `Kind`. The bounds are for these two; `parse` shows what building a `Kind` from the
text first would cost altogether. Rounds are interleaved; the figures are medians over the
rounds, in microseconds of CPU time per decision, the loop included. Within a round no kind comes
twice.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from time import thread_time_ns
from typing import TypeVar

from mcp_envelope.core.capability import Capabilities
from mcp_envelope.core.kind import Kind

T = TypeVar("T")

PATTERNS = 150
KINDS = 1500
CALL = "mcp/request:tools/call:"
READ = "mcp/request:resources/read:"

# Shape: what narrows the CONTEXT of pattern i, a name that it allows, one that none allows.
SHAPES: dict[str, tuple[str, str, str, str, float]] = {
    "prefix": (CALL, "read_{i}_*", "read_{i}_file{n}", "write_{i}_file{n}", 2.0),
    "prefix, near": (CALL, "read_{i}_*", "read_{i}_file{n}", "read_{i}x_file{n}", 2.0),
    "exact": (CALL, "read_{i}", "read_{i}", "read_{i}_file{n}", 2.0),
    "suffix": (CALL, "*_suffix_{i}", "tool{n}_suffix_{i}", "tool{n}_suffix_{i}x", 10.0),
    "a*b": (CALL, "read_*_{i}_end", "read_{n}_{i}_end", "read_{n}_{i}_fin", 10.0),
    "a*b*c": (CALL, "read*_{i}_*end", "read_{n}_{i}_the_end", "read-{n}_{i}-the_end", 10.0),
    "*mid*": (CALL, "*_mid{i}_*", "tool{n}_mid{i}_rest", "tool{n}_mid{i}-rest", 10.0),
    "*a*b*": (CALL, "*a{i}_*b*", "xa{i}_{n}_b_rest", "xa{i}_{n}_c_rest", 10.0),
    "uri prefix": (
        READ,
        "file:///srv/data/{i}/*",
        "file:///srv/data/{i}/year/{n}.txt",
        "file:///srv/data/{i}/../{n}.txt",
        2.0,
    ),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: a shape of pattern, the verdict, how the kind was given, and the bound."""

    shape: str
    verdict: str
    given: str
    microseconds: float
    bound: float


@dataclass(frozen=True, slots=True)
class _Case:
    shape: str
    verdict: str
    given: str
    bound: float
    run: Callable[[], int]


def _over(decide: Callable[[T], bool], kinds: Sequence[T]) -> Callable[[], int]:
    return lambda: sum([decide(kind) for kind in kinds])


def _parsing(grants: Capabilities) -> Callable[[str], bool]:
    return lambda text: grants.allows(Kind.parse(text))


def _cases() -> Iterable[_Case]:
    for shape, (head, pattern, hit, miss, bound) in SHAPES.items():
        grants = Capabilities([head + pattern.format(i=i) for i in range(PATTERNS)])
        for verdict, name in (("hit", hit), ("miss", miss)):
            # A whole name leaves no room for distinct ones beyond the patterns' own.
            count = PATTERNS if "{n}" not in name else KINDS
            texts = [head + name.format(i=n % PATTERNS, n=n) for n in range(count)]
            kinds = [Kind.parse(text) for text in texts]
            runs = {
                "text": _over(grants.allows, texts),
                "Kind": _over(grants.allows, kinds),
                "parse": _over(_parsing(grants), texts),
            }
            for given, run in runs.items():
                wanted = count if verdict == "hit" else 0
                if run() != wanted:
                    raise AssertionError(f"{shape} {verdict} {given}: wrong verdicts")
                yield _Case(shape, verdict, given, bound, _per_decision(run, count))


def _per_decision(run: Callable[[], int], count: int) -> Callable[[], int]:
    def picoseconds() -> int:
        start = thread_time_ns()
        run()
        return (thread_time_ns() - start) * 1000 // count

    return picoseconds


def measure(rounds: int = 15) -> list[Row]:
    """All figures, from ``rounds`` interleaved rounds."""
    cases = list(_cases())
    taken: list[list[int]] = [[] for _ in cases]
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for case, times in zip(cases, taken, strict=True):
                times.append(case.run())
    finally:
        gc.enable()
    return [
        Row(
            case.shape,
            case.verdict,
            case.given,
            round(statistics.median(times) / 1e6, 3),
            case.bound,
        )
        for case, times in zip(cases, taken, strict=True)
    ]


def _table(rows: Sequence[Row]) -> str:
    lines = [f"{'µs per decision':<16}{'':>6}{'text':>8}{'Kind':>8}{'parse':>8}{'bound':>8}"]
    for at in range(0, len(rows), 3):
        three = rows[at : at + 3]
        figures = "".join(f"{row.microseconds:>8.2f}" for row in three)
        first = three[0]
        lines.append(f"{first.shape:<16}{first.verdict:>6}{figures}{first.bound:>8.1f}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; with ``--check`` exit 1 where a bound is passed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--check", action="store_true", help="exit 1 where a bound is passed")
    options = parser.parse_args(arguments)
    rows = measure(options.rounds)
    if options.json:
        print(json.dumps({"patterns": PATTERNS, "rows": [asdict(row) for row in rows]}))
    else:
        print(_table(rows))
    return int(
        options.check and any(row.given != "parse" and row.microseconds > row.bound for row in rows)
    )


if __name__ == "__main__":
    sys.exit(main())
