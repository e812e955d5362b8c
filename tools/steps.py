"""Runs the steps of a check one after another, and says at the end how each of them went."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ET
from pathlib import Path

from environments import ROOT

IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}
BAR = "-" * 78


class Steps:
    """What was run so far: a line for each step, and the sum of what pytest counted."""

    def __init__(self) -> None:
        self._lines: list[tuple[str, str, float]] = []
        self._tests = {"passed": 0, "failed": 0, "skipped": 0}
        self._failed = False

    def run(self, name: str, command: list[str], **environment: str) -> None:
        """Run one command at the root of the project; exit code 0 is what it should end with."""
        print(f"\n{BAR}\n{name}: {' '.join(_shortened(command))}\n{BAR}", flush=True)
        began = time.monotonic()
        surroundings = {**os.environ, **environment}
        code = subprocess.run(command, cwd=ROOT, env=surroundings, check=False).returncode
        self._note(name, "ok" if code == 0 else f"FAILED ({code})", time.monotonic() - began)

    def tests(self, name: str, python: Path, options: list[str], **environment: str) -> None:
        """Run pytest on all cores, and add what it counted to the sum."""
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            # What waits for processes and clocks runs twice as many at once as there are cores.
            times = 2 if "-m" in options else 1
            spread = ["-n", str(times * (os.cpu_count() or 1)), "--dist", "worksteal"]
            command = [str(python), "-m", "pytest", "-q", f"--junitxml={report}", *spread, *options]
            self.run(name, command, **environment)
            if report.exists():
                self._count(report)

    def missing(self, name: str, reason: str) -> None:
        """Say loudly that a step cannot be run here; where CI=true that is a failure."""
        print(f"\n{BAR}\n{name}: NOT RUN: {reason}\n{BAR}", flush=True)
        self._note(name, "MISSING" if IN_CI else "SKIPPED, see above", 0.0, fails=IN_CI)

    def finish(self) -> int:
        """Print the summary, the counts on the last line; the exit code of the whole."""
        print(f"\n{BAR}")
        for name, outcome, seconds in self._lines:
            print(f"{name:<40} {outcome:<22} {seconds:>7.1f} s")
        left_out = any(outcome.startswith("SKIPPED") for _, outcome, _ in self._lines)
        good = "what could be run here is well; the rest is above" if left_out else "all is well"
        print(f"{BAR}\n{'something FAILED' if self._failed else good}")
        if any(self._tests.values()):
            print(", ".join(f"{count} {what}" for what, count in self._tests.items()), flush=True)
        return 1 if self._failed else 0

    def _note(self, name: str, outcome: str, seconds: float, *, fails: bool | None = None) -> None:
        self._lines.append((name, outcome, seconds))
        self._failed |= outcome != "ok" if fails is None else fails

    def _count(self, report: Path) -> None:
        for suite in ET.parse(report).iter("testsuite"):  # noqa: S314 - our own pytest wrote it
            total = int(suite.get("tests", "0"))
            failed = int(suite.get("failures", "0")) + int(suite.get("errors", "0"))
            skipped = int(suite.get("skipped", "0"))
            self._tests["failed"] += failed
            self._tests["skipped"] += skipped
            self._tests["passed"] += max(total - failed - skipped, 0)


def _shortened(command: list[str]) -> list[str]:
    kept = [word for word in command if not word.startswith("--junitxml=")]
    return [word.replace(f"{ROOT}{os.sep}", "") for word in kept]
