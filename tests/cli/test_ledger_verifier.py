"""``ledger verifier``: the one file that an auditor reads and runs."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import mcp_envelope as me

from .conftest import Run

SOURCE = Path(me.__file__).with_name("verify_ledger.py")


def test_it_is_the_file_of_the_package(run: Run, tmp_path: Path) -> None:
    """Byte for byte, printed or written; no file is replaced by chance."""
    data = SOURCE.read_bytes()
    assert run("ledger", "verifier").out == data
    out = tmp_path / "verify_ledger.py"
    done = run("ledger", "verifier", "--out", str(out))
    assert (done.code, done.out) == (0, b"")
    assert out.read_bytes() == data
    assert run("ledger", "verifier", "--out", str(out)).code == 2
    assert run("ledger", "verifier", "--out", str(out), "--force").code == 0
    found = run("ledger", "verifier", "--json").json
    assert found == {"out": None, "sha256": sha256(data).hexdigest(), "source": data.decode()}


def test_it_verifies_an_export(run: Run, examples: Path) -> None:
    """And proofs, where nothing of ours is installed: isolated from the project."""
    run("ledger", "verifier", "--out", "verifier.py")
    run("ledger", "export", "calls.jsonl", "--out", "export.jsonl")
    words = ["export.jsonl", "--key", "calls.pub", "--checkpoint", "calls.checkpoint"]
    command = [sys.executable, "-I", "verifier.py", *words]
    done = subprocess.run(command, check=False, capture_output=True, cwd=examples, timeout=60)
    assert done.returncode == 0, done.stderr
    proof = ["--proof", "proof", "--line", "line", "--key", "calls.pub"]
    run("ledger", "prove", "calls.jsonl", "5", "--out", "proof", "--line-out", "line")
    check = [sys.executable, "-I", "verifier.py", *proof]
    done = subprocess.run(check, check=False, capture_output=True, cwd=examples, timeout=60)
    assert done.returncode == 0, done.stderr
    text = (examples / "export.jsonl").read_bytes().replace(b"send_mail", b"sent_mail")
    (examples / "export.jsonl").write_bytes(text)
    done = subprocess.run(command, check=False, capture_output=True, cwd=examples, timeout=60)
    assert done.returncode == 1
