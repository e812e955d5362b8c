"""What the record costs, as it is written and as it is read: interleaved rounds, medians, ratios.

    python bench/ledger.py [--quick] [--json] [--lines N] [--keep DIR]

bench/README.md says what is measured and how to read it. The exit status is always 0: figures
are for reading.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import ledger_reading as reading
import ledger_writing as writing
from ledger_writing import NoRoomError, say
from rig import RigError

LINES: Final = 5_000_000
QUICK_LINES: Final = 100_000


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. ``goal`` is what it has to be below, or above where ``more`` is better."""

    what: str
    figure: float
    unit: str
    goal: float | None = None
    more: bool = False
    note: str = ""

    @property
    def verdict(self) -> str:
        """Whether the goal is met; nothing where there is none."""
        if self.goal is None:
            return ""
        is_met = self.figure >= self.goal if self.more else self.figure <= self.goal
        return "met" if is_met else "MISSED"


def cost_rows(folder: Path, options: argparse.Namespace) -> list[Row]:
    """Two lines a call, in each kind of ledger."""
    found = writing.costs(folder, 5 if options.quick else 31, 1_000)
    rows = []
    for name, cost in found.items():
        is_default = name == "sqlite"
        wall = f"{cost.wall_us:.1f} µs on the clock"
        rows.append(
            Row(
                f"two lines, 16 at once: {name}",
                cost.cpu_us,
                "µs CPU",
                25.0 if is_default else None,
                note=wall,
            )
        )
    for name, cost in found.items():
        goal = 0.25 if name == "sqlite" else None
        rows.append(
            Row(
                f"two lines, alone, p50: {name}",
                cost.p50_ms,
                "ms",
                goal,
                note=f"p99 {cost.p99_ms:.3f} ms",
            )
        )
    return rows


def growth_rows(folder: Path, options: argparse.Namespace) -> list[Row]:
    """A call's lines in a large ledger, beside a small one; and opening it."""
    large = writing.grown(folder, options.lines)
    found = writing.growth(folder, large, 5 if options.quick else 15, 4_000)
    clock = f"{found.small_us:.1f} µs, then {found.large_us:.1f}; {found.wall_ratio:.2f}× by clock"
    what = f"two lines after {options.lines:,}, beside {writing.SMALL:,}"
    return [
        Row(what, found.ratio, "×", 1.15, note=clock),
        Row(f"opening {options.lines:,} lines to write", writing.opening_ms(large, 5), "ms"),
    ]


def verification_rows(folder: Path, options: argparse.Namespace) -> list[Row]:
    """Both verifiers, over a small ledger and a large one."""
    small, large = (writing.grown(folder, lines) for lines in (writing.SMALL, options.lines))
    rows = []
    for name, few, many in reading.verifications(small, large):
        memory = f"{few.memory:.0f} MiB for {few.lines:,} lines, {many.memory:.0f} for all"
        rows.append(Row(f"verification: {name}", many.rate, "lines/s", 100_000, True, memory))
    return rows


def reading_rows(folder: Path, options: argparse.Namespace) -> list[Row]:
    """Index, queries and proofs of a large ledger."""
    return [
        Row(*figure)
        for figure in reading.figures(writing.grown(folder, options.lines), is_quick=options.quick)
    ]


PARTS: Final[dict[str, Callable[[Path, argparse.Namespace], list[Row]]]] = {
    "costs": cost_rows,
    "growth": growth_rows,
    "verification": verification_rows,
    "reading": reading_rows,
}


def table(rows: Sequence[Row]) -> str:
    """The rows as text."""
    width = max((len(row.what) for row in rows), default=0)
    lines = []
    for row in rows:
        goal = "" if row.goal is None else f"goal {'≥' if row.more else '≤'} {row.goal:,g}"
        figure = f"{row.figure:>12,.0f}" if row.figure >= 1_000 else f"{row.figure:>12,.3f}"
        text = f"{row.what:<{width}} {figure} {row.unit:<8} {goal:<16} {row.verdict:<7} {row.note}"
        lines.append(text.rstrip())
    return "\n".join(lines)


def measured(options: argparse.Namespace, folder: Path) -> tuple[list[Row], list[str]]:
    """All rows, and what could not be measured."""
    rows: list[Row] = []
    skipped = []
    for name in options.only or PARTS:
        try:
            with tempfile.TemporaryDirectory(dir=folder) as place:
                rows += PARTS[name](Path(place) if name == "costs" else folder, options)
        except (NoRoomError, RigError) as error:
            skipped.append(f"{name}: SKIPPED: {error}")
        say(f"{name}: done\n")
    return rows, skipped


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds and lines")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--lines", type=int, help=f"of the large ledger; {LINES:,} if not quick")
    parser.add_argument("--keep", type=Path, help="where to keep the large ledger for next time")
    parser.add_argument("--only", action="append", choices=list(PARTS), help="(repeatable)")
    options = parser.parse_args(words)
    options.lines = options.lines or (QUICK_LINES if options.quick else LINES)
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        rows, skipped = measured(options, options.keep or Path(folder))
    if options.json:
        found = [{**asdict(row), "verdict": row.verdict} for row in rows]
        print(json.dumps({"rows": found, "skipped": skipped, "lines": options.lines}))
    else:
        print("\n".join([table(rows), *skipped]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
