"""Runs the official conformance suite against a server and reads what each check said."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.peers import places

REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
EXTENSIONS_SINCE = "2026-07-28"
PATIENCE = 150.0  # seconds for one run of the program; a run that succeeds takes less than ten
SCENARIO_PATIENCE = "15000"  # milliseconds, the suite's own limit


@dataclass(frozen=True, order=True)
class Check:
    """One check of one scenario; some ids come several times, so their number belongs to it."""

    scenario: str
    name: str
    nth: int = 0

    def __str__(self) -> str:
        suffix = f" #{self.nth + 1}" if self.nth else ""
        return f"{self.scenario} · {self.name}{suffix}"


@dataclass(frozen=True)
class Outcome:
    """What a check said, and what it saw."""

    status: str
    message: str = ""
    details: Any = None


Outcomes = dict[Check, Outcome]


def run(url: str, revision: str) -> Outcomes:
    """Every server scenario of the suite against ``url`` at ``revision``: what each check said.

    The scenarios of the suite run one after another in one process, as the suite does it; those
    of extensions, which it runs only one at a time, run beside it. They do not see one another:
    each has sessions and tasks of its own, and only one of them changes lists.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with ThreadPoolExecutor(3) as pool:
            whole = pool.submit(_suite, url, revision, place, ["--suite", "all"])
            parts = [
                pool.submit(_suite, url, revision, place, ["--scenario", name, "--force"])
                for name in (extensions() if revision >= EXTENSIONS_SINCE else ())
            ]
        for part in (whole, *parts):
            part.result()
        return read(place)


def extensions() -> list[str]:
    """The scenarios about extensions; no revision contains them."""
    said = subprocess.run(
        [*places.npm_program("conformance"), "list", "--server"],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    return re.findall(r"^\s+- (\S+) \[extension\]", said.stdout, re.MULTILINE)


def read(folder: Path) -> Outcomes:
    """What the suite wrote into ``folder``."""
    found: Outcomes = {}
    for path in sorted(folder.glob("*/checks.json")):
        # server-<scenario>-2026-11-19T21-06-55-256Z
        scenario = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", path.parent.name)
        scenario = scenario.removeprefix("server-")
        seen: Counter[str] = Counter()
        for said in json.loads(path.read_text(encoding="utf-8")):
            name = said["id"]
            check = Check(scenario, name, seen[name])
            seen[name] += 1
            found[check] = Outcome(
                said["status"], said.get("errorMessage") or "", said.get("details")
            )
    return found


def _suite(url: str, revision: str, folder: Path, words: list[str]) -> None:
    """Run the program once. That checks fail is no error here; that it hangs shows as absence."""
    line = [*places.npm_program("conformance"), "server", "--url", url, "--spec-version", revision]
    line += ["--timeout", SCENARIO_PATIENCE, "-o", str(folder), *words]
    # It must find the server itself, whatever proxy the machine has for the world.
    around = {**os.environ, "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}
    try:
        subprocess.run(line, capture_output=True, env=around, check=False, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return
