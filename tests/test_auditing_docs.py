"""docs/auditing.md and docs/proof.md: what they show is run, and prints what they show."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.test_verify_ledger import proof_of

from mcp_envelope import verify_ledger

#: Many processes, or much work: run by tools/ci.py.
pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parent.parent
VERIFIER: Any = verify_ledger
PAGES = ("auditing", "proof")
RUN = re.compile(r"<!-- run -->\n```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
KINDS = """unreadable altered missing reordered duplicate inserted root signature unsigned truncated
    fork"""


def page(name: str) -> str:
    """A page, with the proof in it that depends on the example."""
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    hashes, _, note = proof_of(2).partition("index 2\n")[2].partition("\n\n")
    return text.replace("$HASHES", hashes).replace("$NOTE", f"\n{note[:-1]}")


BLOCKS = [(name, block) for name in PAGES for block in RUN.findall(page(name))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What an auditor has: the verifier, lines, a key, a checkpoint from outside, a proof."""
    examples = ROOT / "examples"
    shutil.copy(ROOT / "src" / "mcp_envelope" / "verify_ledger.py", tmp_path)
    for name, other in (
        ("calls.jsonl", "export.jsonl"),
        ("calls.pub", "ledger.pub"),
        ("calls.checkpoint", "outside.checkpoint"),
    ):
        shutil.copy(examples / name, tmp_path / name)
        shutil.copy(examples / name, tmp_path / other)
    (tmp_path / "call.tlog-proof").write_text(proof_of(2), encoding="utf-8")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to(sys.executable)
    return tmp_path


@pytest.mark.requires("bash", "sha256sum")
@pytest.mark.parametrize(("name", "block"), BLOCKS, ids=lambda text: text[:50].splitlines()[0])
def test_what_is_shown_is_printed(name: str, block: str, folder: Path) -> None:
    """Each block, one command after the other in one folder, exactly."""
    path = f"{folder / 'bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}"
    around = {**os.environ, "PATH": path + os.environ["PATH"]}
    code = 0
    for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = step.partition("\n")
        if command == "echo $?":
            assert shown == f"{code}\n"
            continue
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder, env=around, capture_output=True, text=True, check=False,
        )  # fmt: skip
        code = done.returncode
        assert done.stdout + done.stderr == shown, command


def test_there_is_much_to_run() -> None:
    """The blocks are found by the pattern above."""
    assert [name for name, _ in BLOCKS].count("auditing") >= 7
    assert [name for name, _ in BLOCKS].count("proof") >= 3


def test_every_kind_of_damage_is_explained() -> None:
    """The table has the kinds that there are, and no others."""
    table = page("auditing").partition("| kind | means |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == KINDS.split()


def test_the_table_of_its_output_is_complete() -> None:
    """Every name that the verifier prints is explained."""
    table = page("auditing").partition("| line | says |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`([a-z]+)`", "".join(r.split(" | ")[0] for r in table.split("\n"))))
    shown = set(re.findall(r"^([a-z]+): ", "".join(b for _, b in BLOCKS), re.MULTILINE))
    assert shown == named


def test_the_format_is_shown_by_the_example() -> None:
    """The checkpoint in docs/ledger.md is the one that was kept of the example."""
    text = (ROOT / "docs" / "ledger.md").read_text(encoding="utf-8")
    kept = (ROOT / "examples" / "calls.checkpoint").read_text(encoding="utf-8")
    shown = "".join(f"    {line}\n" if line else "\n" for line in kept.splitlines())
    assert shown in text


def test_its_patterns_are_linear() -> None:
    """A long text that is almost a note or a key is refused at once."""
    started = time.process_time()
    for text in ("a\n0\n" + "A" * 65_000, "— a " * 16_000, "a\n" * 30_000 + "\n", "x+" * 30_000):
        assert VERIFIER.note_of(text) is None
        assert VERIFIER.key_of(text) is None
    assert time.process_time() - started < 1
