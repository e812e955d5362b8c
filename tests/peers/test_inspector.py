"""The inspector's command line sees the same server with the gateway in front of it."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.gateway_process import command, gateway

from . import places
from .cast import LEGACY, MODERN
from .driver import differences, without_ours

pytestmark = [pytest.mark.peers, pytest.mark.requires("peers:node", "peers:servers")]

_NOON = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
_CALL = ["--tool-args-json", json.dumps(_NOON), "--tool-name", "convert_time"]
_SUM = ["--tool-args-json", json.dumps({"a": 1.5, "b": 2}), "--tool-name", "get-sum"]
_TEXT = ["--uri", "demo://resource/static/document/features.md"]
# What is asked: of which server, in which era, with which words behind `--method`.
QUESTIONS = [
    ("time", era, [method, *words])
    for era in (LEGACY, MODERN)
    for method, words in (("tools/list", []), ("tools/call", _CALL), ("prompts/list", []))
] + [
    ("everything", LEGACY, [method, *words])
    for method, words in (
        ("tools/list", []),
        ("tools/call", _SUM),
        ("resources/list", []),
        ("resources/read", _TEXT),
        ("prompts/list", []),
        ("prompts/get", ["--prompt-name", "simple-prompt"]),
        ("logging/setLevel", ["--log-level", "debug"]),
    )
]
CASES = [
    pytest.param(
        *case,
        marks=pytest.mark.xdist_group(f"inspector-{case[0]}"),
        id="-".join([case[0], case[1], case[2][0]]),
    )
    for case in QUESTIONS
]


def server(name: str) -> list[str]:
    """The command line of a server."""
    if name == "time":
        return places.python_program("servers", "mcp-server-time")
    return places.npm_program("mcp-server-everything")


def inspect(home: Path, era: str, question: list[str], target: list[str]) -> Any:
    """What the inspector prints: a JSON document."""
    mode = "modern" if era == MODERN else "legacy"
    line = [*places.npm_program("mcp-inspector"), "--cli", "--quiet", "--format", "json"]
    line += ["--protocol-era", mode, "--method", *question, *target]
    # It keeps a catalog and more in the home folder.
    around = {**os.environ, "HOME": str(home), "NO_PROXY": "127.0.0.1"}
    said = subprocess.run(
        line, capture_output=True, text=True, env=around, timeout=60, check=False, cwd=home
    )
    assert said.returncode == 0, said.stderr + said.stdout
    return without_ours(json.loads(said.stdout))


@functools.cache
def directly(home: Path, name: str, era: str, *question: str) -> Any:
    """What it prints without anything between."""
    return inspect(home, era, list(question), ["--", *server(name)])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder for the inspector."""
    return tmp_path_factory.mktemp("home")


@pytest.mark.parametrize("name,era,question", CASES)
def test_over_stdio(home: Path, name: str, era: str, question: list[str]) -> None:
    """The gateway stands in the server's place."""
    target = ["--", *command("--", *server(name))]
    direct = directly(home, name, era, *question)
    assert direct["result"] is not None
    assert not differences(direct, inspect(home, era, question, target))


@pytest.mark.parametrize(
    "name,era",
    [
        pytest.param("time", LEGACY, marks=pytest.mark.xdist_group("inspector-time")),
        pytest.param("time", MODERN, marks=pytest.mark.xdist_group("inspector-time")),
        pytest.param("everything", LEGACY, marks=pytest.mark.xdist_group("inspector-everything")),
    ],
)
def test_over_http(home: Path, name: str, era: str) -> None:
    """One gateway serves all that the inspector asks, over HTTP."""
    questions = [question for at, of, question in QUESTIONS if (at, of) == (name, era)]
    with gateway("--", *server(name)) as running:
        target = ["--transport", "http", "--server-url", running.url]
        for question in questions:
            direct = directly(home, name, era, *question)
            assert not differences(direct, inspect(home, era, question, target))
