"""Makes the virtual environments in which the project is checked, and keeps them up to date.

An environment is ready when its stamp names the files that decide what is in it; then nothing
is run and no network is needed. uv does the installing, and pip where uv cannot be had.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import interpreters

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "tools" / "constraints.txt"
KEPT = ROOT / ".venvs"
STAMP = "mcp-envelope-ready"


def ready(place: Path, python: Path, groups: tuple[str, ...]) -> Path:
    """The Python of an environment with this project (editable) and its dependency ``groups``.

    An environment that is there is kept where it has a Python that serves; one under
    ``.venvs`` must have the version asked for, and is made anew where it has not.
    """
    inside = _python_of(place)
    found = interpreters.version_of(inside) if inside.exists() else None
    wanted = interpreters.version_of(python)
    keep = found is not None and found >= interpreters.OLDEST
    if place.parent == KEPT:
        keep = found == wanted
    if keep and _stamp_holds(place, groups):
        return inside
    print(f"making the environment {place.relative_to(ROOT)} …", flush=True)
    installer = uv()
    if not keep:
        shutil.rmtree(place, ignore_errors=True)
        _make(place, python, installer)
    (place / STAMP).unlink(missing_ok=True)
    _install(inside, groups, installer)
    (place / STAMP).write_text(_stamp(groups), encoding="utf-8")
    return inside


def uv() -> Path | None:
    """The pinned uv, fetched on first use; None where it cannot be had."""
    place = KEPT / "uv"
    program = _python_of(place).with_name("uv.exe" if os.name == "nt" else "uv")
    marker = place / STAMP
    wanted = pinned("uv")
    if program.exists() and marker.exists() and marker.read_text(encoding="utf-8") == wanted:
        return program
    shutil.rmtree(place, ignore_errors=True)
    if run([sys.executable, "-m", "venv", str(place)]) != 0:
        return None
    pip = [str(_python_of(place)), "-m", "pip", "install", "-qq"]
    if run([*pip, "--disable-pip-version-check", wanted]) != 0:
        return None
    marker.write_text(wanted, encoding="utf-8")
    return program


def pinned(name: str) -> str:
    """The exact requirement (``name==version``) that the constraints file has for ``name``."""
    text = CONSTRAINTS.read_text(encoding="utf-8")
    found = re.search(rf"^{re.escape(name)}==[^\s;]+", text, re.MULTILINE)
    if found is None:
        raise SystemExit(f"{CONSTRAINTS.relative_to(ROOT)} does not pin {name}")
    return found[0]


def _python_of(place: Path) -> Path:
    folder, name = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
    return place / folder / name


def _stamp(groups: tuple[str, ...]) -> str:
    seal = hashlib.sha256()
    for path in (ROOT / "pyproject.toml", CONSTRAINTS):
        seal.update(path.read_bytes())
    return f"{' '.join(groups)} {seal.hexdigest()} {ROOT}\n"


def _stamp_holds(place: Path, groups: tuple[str, ...]) -> bool:
    stamp = place / STAMP
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != _stamp(groups):
        return False
    # `pip install .` in the same environment, as README has it, puts a copy in the link's place.
    return any(place.glob("[lL]ib*/**/site-packages/_*mcp_envelope.pth"))


def _make(place: Path, python: Path, installer: Path | None) -> None:
    if installer is not None:
        how = ["--quiet", "--seed", "--python", str(python)]
        if run([str(installer), "venv", *how, str(place)]) == 0:
            return
    if run([str(python), "-m", "venv", str(place)]) != 0:
        raise SystemExit(
            f"{python} cannot make a virtual environment; on Debian: apt-get install python3-venv"
        )


def _install(inside: Path, groups: tuple[str, ...], installer: Path | None) -> None:
    wanted = [part for group in groups for part in ("--group", group)] + ["--editable", "."]
    if installer is not None:
        pins = ["--constraints", str(CONSTRAINTS), "--build-constraints", str(CONSTRAINTS)]
        how = ["--quiet", "--python", str(inside), *pins]
        if run([str(installer), "pip", "install", *how, *wanted]) == 0:
            return
        print("uv could not install; trying pip …", flush=True)
    pip = [str(inside), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    if run([*pip, pinned("pip")]) or run([*pip, "--constraint", str(CONSTRAINTS), *wanted]):
        raise SystemExit("the development packages could not be installed (messages above)")


def run(command: list[str]) -> int:
    """The exit code of a command that is run at the root of the project."""
    # An environment that happens to be active must not redirect what is installed where.
    clean = {name: text for name, text in os.environ.items() if name != "VIRTUAL_ENV"}
    return subprocess.run(command, cwd=ROOT, env=clean, check=False).returncode
