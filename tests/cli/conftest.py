"""Running the command line within the test's own process."""

from __future__ import annotations

import io
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.cli.ledgers import KINDS

from mcp_envelope.cli import main
from mcp_envelope.stores.places import state_directory


@dataclass(frozen=True)
class Outcome:
    """What a command line left behind."""

    code: int
    out: bytes
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


class Run(Protocol):
    """A call of the program; ``given`` is its standard input."""

    def __call__(self, *words: str, given: bytes = b"") -> Outcome:
        """Run it."""


@pytest.fixture
def run(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the program's main function, as a pipe would see it."""

    def run(*words: str, given: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        code = main(list(words))
        out, err = capsysbinary.readouterr()
        return Outcome(code, out, err.decode())

    return run


@pytest.fixture
def examples(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project's examples, and the current folder."""
    shutil.copytree(root / "examples", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's own folder for state, in which there is nothing yet."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    return state_directory()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of ledger that is kept in a file."""
    found: str = request.param
    return found
