"""Ledgers that released versions wrote verify for ever, and can be gone on with."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.core.facts import some_facts

from mcp_envelope.core.notes import Note, VerifierKey
from mcp_envelope.core.ports import Sealing, Writing
from mcp_envelope.core.signing import Signer
from mcp_envelope.core.verdict import Verdict
from mcp_envelope.core.verification import Verifier
from mcp_envelope.gateway.clockwork import Clockwork
from mcp_envelope.stores import open_ledger, read_ledger

#: Many processes, or much work: run by tools/ci.py.
pytestmark = pytest.mark.whole

FOLDER = Path(__file__).with_name("ledger-v1")
SECOND = Signer("golden/second", b"2" * 32)
FILES = ("calls.jsonl", "calls.db")


def keys() -> list[VerifierKey]:
    """Both keys."""
    return [VerifierKey.parse((FOLDER / f"{name}.pub").read_text()) for name in ("first", "second")]


def verdict_on(path: Path, trusted: list[VerifierKey], *notes: Note) -> Verdict:
    """What the core says."""
    source = read_ledger(str(path))
    verifier = Verifier(trusted, notes, source.removed())
    for piece in source.physical():
        verifier.feed(piece)
    source.close()
    return verifier.finish()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("which", [0, 1, None])
def test_they_verify(tmp_path: Path, name: str, which: int | None) -> None:
    """With either key, the first one handing on to the second, and against a kept checkpoint."""
    shutil.copytree(FOLDER, tmp_path / "copy")
    trusted = keys() if which is None else [keys()[which]]
    kept = Note.parse((FOLDER / f"{name}.checkpoint").read_bytes())
    verdict = verdict_on(tmp_path / "copy" / name, trusted, kept)
    assert verdict.holds, verdict
    assert verdict.dangling_count == 1
    assert verdict.next == {"calls.jsonl": 554, "calls.db": 555}[name]
    assert verdict.first == {"calls.jsonl": 0, "calls.db": 256}[name]


def test_what_is_older_than_checkpoints_verifies() -> None:
    """Its chain holds; nobody has signed it."""
    verdict = verdict_on(FOLDER / "before-checkpoints.jsonl", [])
    assert (verdict.holds, verdict.next, verdict.signatures) == (True, 8, "none")


@pytest.mark.parametrize("name", [*FILES, "before-checkpoints.jsonl"])
def test_they_can_be_gone_on_with(tmp_path: Path, name: str) -> None:
    """By the stores of today, which change nothing of what is there."""
    shutil.copytree(FOLDER, tmp_path / "copy")
    path = tmp_path / "copy" / name
    source = read_ledger(str(path))
    before = list(source.physical())
    source.close()
    clock = Clockwork.deterministic()
    sealing = Sealing(signers=(SECOND,), now=clock.now, instance=clock.instance)

    async def go_on() -> None:
        scheme = "sqlite" if name.endswith(".db") else "jsonl"
        ledger = open_ledger(f"{scheme}:{path}", writing=Writing(sealing=sealing))
        await ledger.append(some_facts(event="refused"))
        await ledger.seal()
        await ledger.close()

    asyncio.run(go_on())
    source = read_ledger(str(path))
    assert list(source.physical())[: len(before)] == before
    source.close()
    assert verdict_on(path, [SECOND.key]).holds


@pytest.mark.parametrize("name", [*FILES, "before-checkpoints.jsonl"])
def test_the_verifier_in_one_file_says_the_same(tmp_path: Path, name: str) -> None:
    """Of their exports, which are exact."""
    shutil.copytree(FOLDER, tmp_path / "copy")
    program = [sys.executable, "-m", "mcp_envelope"]
    export = [*program, "ledger", "export", str(tmp_path / "copy" / name), "--out", "export.jsonl"]
    subprocess.run(export, cwd=tmp_path, check=True, capture_output=True)
    made = subprocess.run([*program, "ledger", "verifier"], check=True, capture_output=True)
    (tmp_path / "verify_ledger.py").write_bytes(made.stdout)
    words = ["--key", str(FOLDER / "first.pub")] if name in FILES else []
    done = subprocess.run(
        [sys.executable, "verify_ledger.py", "export.jsonl", *words],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
