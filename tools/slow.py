#!/usr/bin/env python3
"""What takes longer than a commit can wait: slow tests, lower bounds, benchmarks.

Usage::

    python3 tools/slow.py                  everything
    python3 tools/slow.py --only bench     one part: tests, bounds or bench
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import environments
import interpreters
from steps import Steps

PARTS = ("tests", "bounds", "bench")
OLDEST = (3, 11)


def lower_bounds(steps: Steps) -> None:
    """Run the fast tests against the oldest versions that pyproject.toml says will do."""
    uv = environments.uv()
    try:
        found = interpreters.find(OLDEST)
    except interpreters.MissingPythonError as error:
        steps.missing("lower bounds", str(error))
        return
    if uv is None:
        steps.missing("lower bounds", "uv resolves them, and it cannot be had here")
        return
    python = environments.ready(environments.KEPT / "lowest", found, ("test", "peers"))
    chosen = environments.KEPT / "lowest" / "lowest.txt"
    how = ["--resolution", "lowest-direct", "--python-version", "3.11", "--quiet"]
    plain = ["--no-header", "--no-annotate", "--no-emit-index-url"]
    command = [str(uv), "pip", "compile", "pyproject.toml", *how, *plain, "-o", str(chosen)]
    steps.run("lower bounds: resolve", command)
    install = [str(uv), "pip", "install", "--python", str(python), "-r", str(chosen)]
    steps.run("lower bounds: install", install)
    steps.tests("lower bounds: fast tests", python, [])


def benchmarks(steps: Steps, python: Path) -> None:
    """Run every program of bench/, each of which fails where its promise is not kept."""
    for program in sorted((environments.ROOT / "bench").glob("*.py")):
        steps.run(f"bench: {program.name}", [str(python), str(program)])


def main(words: list[str]) -> int:
    """Parse the command line, run the parts, sum up."""
    usage = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    usage.add_argument("--only", action="append", choices=PARTS, help="this part (repeatable)")
    parts = usage.parse_args(words).only or PARTS
    place = environments.ROOT / ".venv"
    try:
        python = environments.ready(place, interpreters.usual(), ("dev",))
    except interpreters.MissingPythonError as error:
        raise SystemExit(str(error)) from None
    steps = Steps()
    if "tests" in parts:
        steps.tests("slow tests", python, ["-m", "slow"], HYPOTHESIS_PROFILE="slow")
    if "bounds" in parts:
        lower_bounds(steps)
    if "bench" in parts:
        benchmarks(steps, python)
    return steps.finish()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
