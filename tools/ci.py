#!/usr/bin/env python3
"""The whole suite: the check on the oldest Python, the fast tests on the newer ones, the docs.

Usage::

    python3 tools/ci.py

Environments are made under .venvs. A Python that is not on this machine is said and left out;
where CI=true it is a failure.
"""

from __future__ import annotations

import sys
from pathlib import Path

import environments
import interpreters
import peers
from check import PARTS, check
from steps import Steps

OLDEST, *NEWER = [(3, 11), (3, 12), (3, 13)]


def main(words: list[str]) -> int:
    """Run the suite; it takes no options, so that there is one suite."""
    if words:
        print(__doc__)
        return 0 if words in (["-h"], ["--help"]) else 2
    steps = Steps()
    for version in (OLDEST, *NEWER):
        name = f"{version[0]}.{version[1]}"
        try:
            found = interpreters.find(version)
        except interpreters.MissingPythonError as error:
            steps.missing(f"Python {name}", str(error))
            continue
        place = environments.KEPT / name
        if version == OLDEST:
            python = environments.ready(place, found, ("dev",))
            check(steps, python, list(PARTS), fix=False, pytest=[])
            steps.tests("README and package, installed", python, ["-m", "install and not slow"])
            steps.tests("whole gateways and records", python, ["-m", "whole and not slow"])
            steps.tests("gateways under fire", python, ["-m", "faults and not slow", "-n", "2"])
            _try_peers(steps, python)
        else:
            python = environments.ready(place, found, ("test", "peers"))
            steps.tests(f"fast tests on {name}", python, [], HYPOTHESIS_PROFILE="brief")
    return steps.finish()


def _try_peers(steps: Steps, python: Path) -> None:
    """The gateway before, behind and between what others have made."""
    name = "conformance and real peers"
    try:
        peers.ready(python)
    except peers.MissingPeersError as error:
        steps.missing(name, str(error))
    else:
        steps.tests(name, python, ["-m", "peers and not slow", "--dist", "loadgroup"])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
