"""What reading a ledger costs: verifying it, searching it, proving that a line is in it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rig import PYTHON, ROOT, Cores, pinned

_ONE_FILE: Final = ROOT / "src" / "mcp_envelope" / "verify_ledger.py"


@dataclass(frozen=True)
class Run:
    """One run of a verifier: lines a second of processor time, and the most memory in MiB."""

    lines: int
    rate: float
    memory: float


def verifications(small: Path, large: Path) -> Iterator[tuple[str, Run, Run]]:
    """Each verifier by name, over both ledgers."""
    commands = {
        "mcp-envelope ledger verify": lambda path: [
            *(PYTHON, "-m", "mcp_envelope", "ledger", "verify", f"sqlite:{path}")
        ],
        "verify_ledger.py": lambda path: [PYTHON, str(_ONE_FILE), str(path)],
    }
    for name, command in commands.items():
        few, many = (_run(command(path), path) for path in (small, large))
        yield name, few, many


def _run(line: list[str], path: Path) -> Run:
    lines = _count(path)
    core = Cores.found().measured
    process = subprocess.Popen(pinned(core, line), stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{line} ended with {process.returncode}")
    return Run(lines, lines / (used.ru_utime + used.ru_stime), used.ru_maxrss / 1024)
