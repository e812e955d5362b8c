#!/usr/bin/env python3
"""The check before every commit: format, lint, types, layers and the fast tests.

Usage::

    python3 tools/check.py                  everything, in the environment .venv (made if absent)
    python3 tools/check.py --fix            the same, mending format and what ruff can mend
    python3 tools/check.py --only tests     one part; words after -- go to pytest
    python3 tools/check.py --only tests -- -k canonical -x
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import environments
import interpreters
from steps import Steps

PARTS = ("format", "lint", "types", "layers", "tests")
CODE = ["src", "tests", "tools", "bench"]
UNTYPED = ["fuzz"]  # its fuzzer, atheris, is installed for the occasion only


def check(steps: Steps, python: Path, parts: list[str], *, fix: bool, pytest: list[str]) -> None:
    """Run these parts with the tools that stand beside ``python``."""
    tools = python.parent
    code = [folder for folder in CODE if any((environments.ROOT / folder).rglob("*.py"))]
    text = [*code, *(folder for folder in UNTYPED if (environments.ROOT / folder).is_dir())]
    mend = ["--fix"] if fix else []
    if "lint" in parts:
        steps.run("lint", [str(tools / "ruff"), "check", "--output-format=concise", *mend, *text])
    if "format" in parts:
        how = [] if fix else ["--diff"]
        steps.run("format", [str(tools / "ruff"), "format", *how, *text])
    if "types" in parts:
        steps.run("types", [str(tools / "mypy"), *code])
    if "layers" in parts:
        steps.run("layers", [str(tools / "lint-imports"), "--no-logo"])
    if "tests" in parts:
        steps.tests("fast tests", python, pytest)


def main(words: list[str]) -> int:
    """Parse the command line, run the parts, sum up."""
    cut = words.index("--") if "--" in words else len(words)
    usage = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    usage.add_argument("--only", action="append", choices=PARTS, help="this part (repeatable)")
    usage.add_argument("--fix", action="store_true", help="mend what can be mended")
    options = usage.parse_args(words[:cut])
    place = environments.ROOT / ".venv"
    try:
        python = environments.ready(place, interpreters.usual(), ("dev",))
    except interpreters.MissingPythonError as error:
        raise SystemExit(str(error)) from None
    steps = Steps()
    check(steps, python, options.only or list(PARTS), fix=options.fix, pytest=words[cut + 1 :])
    return steps.finish()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
