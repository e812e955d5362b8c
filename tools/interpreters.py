"""Finds the Pythons of this machine that the project is tested on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

OLDEST = (3, 11)


class MissingPythonError(Exception):
    """No Python of the wanted version answers on this machine."""


def version_of(program: Path) -> tuple[int, int] | None:
    """Major and minor version that ``program`` reports; None where it does not run.

    Being there is not enough: a pyenv shim of a version that is not selected only complains.
    """
    question = "import sys; print(*sys.version_info[:2])"
    try:
        answer = subprocess.run(
            [str(program), "-c", question], capture_output=True, text=True, timeout=60, check=False
        )
    except OSError:
        return None
    found = re.fullmatch(r"(\d+) (\d+)\s*", answer.stdout) if answer.returncode == 0 else None
    return (int(found[1]), int(found[2])) if found else None


def find(version: tuple[int, int]) -> Path:
    """A Python of exactly this minor version, or :class:`MissingPythonError`."""
    for program in _candidates(version):
        if version_of(program) == version:
            return program
    wanted = f"{version[0]}.{version[1]}"
    raise MissingPythonError(
        f"no Python {wanted} found: looked at this one, at python{wanted} on the PATH, "
        f"and among the versions of pyenv and uv; `pyenv install {wanted}` or "
        f"`uv python install {wanted}` brings one"
    )


def usual() -> Path:
    """The Python that started this script; where that is too old, the first one that is not."""
    if sys.version_info[:2] >= OLDEST:
        return Path(sys.executable)
    for minor in range(OLDEST[1], OLDEST[1] + 10):
        try:
            return find((OLDEST[0], minor))
        except MissingPythonError:
            continue
    running = ".".join(map(str, sys.version_info[:2]))
    oldest = ".".join(map(str, OLDEST))
    raise MissingPythonError(f"Python {oldest} or newer is needed; this is {running}")


def _candidates(version: tuple[int, int]) -> Iterator[Path]:
    name = f"python{version[0]}.{version[1]}"
    yield Path(sys.executable)
    on_path = shutil.which(name)
    if on_path:
        yield Path(on_path)
    kept = f"{version[0]}.{version[1]}.*"
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob(f"versions/{kept}/bin/{name}"), reverse=True)
    uv = Path.home() / ".local" / "share" / "uv" / "python"
    yield from sorted(uv.glob(f"cpython-{kept}/bin/{name}"), reverse=True)
