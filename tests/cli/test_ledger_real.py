"""The verbs on what a real gateway wrote, as processes of their own, from the first call on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_envelope.core.notes import Checkpoint, Note

pytestmark = pytest.mark.skipif(os.name != "posix", reason="gateways run on POSIX systems")

ROOT = Path(__file__).resolve().parents[2]
SERVER = ["--", sys.executable, str(ROOT / "examples" / "server.py")]
CALL = (ROOT / "examples" / "count-words.json").read_bytes()


class Machine:
    """Somebody's machine, with a folder for state of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        state = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
        self._env = {**os.environ, **state, "PYTHONPATH": str(ROOT / "src"), "PYTHONUTF8": "1"}

    def run(self, *words: str, given: bytes = b"", code: int = 0) -> bytes:
        """What the program prints; it has to end with this code."""
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "mcp_envelope", *words],
            input=given,
            capture_output=True,
            check=False,
            timeout=60,
            cwd=self.folder,
            env=self._env,
        )
        assert done.returncode == code, done.stderr.decode()
        assert b"Traceback" not in done.stderr
        return done.stdout

    def call(self) -> None:
        """A run of the gateway, with one call."""
        said = self.run("run", "--ledger", "sqlite:calls.db", *SERVER, given=CALL)
        assert b'"result"' in said


@pytest.mark.whole
@pytest.mark.skipif(sys.platform != "linux", reason="the state directory is elsewhere")
def test_from_the_first_call_to_the_auditor(tmp_path: Path) -> None:
    """A key is made by the gateway, a checkpoint kept, the key replaced, an export handed over."""
    machine = Machine(tmp_path)
    machine.run("keys", "show", code=3)
    machine.call()
    key = machine.run("keys", "show")
    (tmp_path / "trusted.pub").write_bytes(key)
    kept = machine.run("ledger", "checkpoint", "calls.db")
    (tmp_path / "kept").write_bytes(kept)
    assert Checkpoint.parse(Note.parse(kept).text).size == 4
    machine.run("keys", "new", "second")
    machine.call()
    trusting = ["--key", "trusted.pub", "--checkpoint", "kept", "--strict"]
    said = machine.run("ledger", "verify", "calls.db", *trusting)
    assert b"lines        10 (0 to 9)\n" in said
    assert b"from line 9 on second+" in said
    machine.run("ledger", "checkpoint", "calls.db", "--since", "kept", "--out", "growth")
    machine.run("ledger", "prove", "calls.db", "2", "--out", "proof", "--line-out", "line")
    machine.run("ledger", "export", "calls.db", "--out", "calls.jsonl")
    auditor = Machine(tmp_path / "audit")
    auditor.folder.mkdir()
    for name in ("calls.jsonl", "trusted.pub", "kept", "proof", "line"):
        (tmp_path / name).rename(auditor.folder / name)
    assert auditor.run("ledger", "verify", "calls.jsonl", *trusting).startswith(b"holds: ")
    said = auditor.run(
        "ledger", "prove", "--check", "proof", "--line", "line", "--key", "trusted.pub"
    )
    assert said.startswith(b"holds: this line is number 2 of mcp-envelope/ledger/")
    lines = (auditor.folder / "calls.jsonl").read_bytes().splitlines(keepends=True)
    (auditor.folder / "calls.jsonl").write_bytes(b"".join(lines[:2] + lines[3:]))
    said = auditor.run("ledger", "verify", "calls.jsonl", *trusting, code=1)
    assert b"  line         2 " in said
    assert b"  missing " in said
    assert not (auditor.folder / "state").exists()
