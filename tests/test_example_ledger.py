"""examples/calls.jsonl: what the tool makes, and a ledger like any other."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest
from tests.stores.chain import entries_of, lines_of

from mcp_envelope.core.entry import Event
from mcp_envelope.core.merkle import Frontier, leaf_hash
from mcp_envelope.core.notes import VerifierKey
from mcp_envelope.core.seal import read_sealed
from mcp_envelope.core.signing import is_signed_by

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "calls.jsonl"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """The maker of the files."""
    path = ROOT / "tools" / "make_example_ledger.py"
    spec = importlib.util.spec_from_file_location("make_example_ledger", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for their names
    spec.loader.exec_module(module)
    return module


def test_the_files_are_what_the_tool_makes(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes each time; what differs is found, and written anew."""
    assert tool.run(["--check"]) == 0
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    copy = tmp_path / "examples" / "calls.jsonl"
    copy.write_bytes(copy.read_bytes()[:-1])
    assert tool.run(["--check"]) == 1
    assert tool.run([]) == 0
    assert copy.read_bytes() == EXAMPLE.read_bytes()


def test_it_shows_every_kind_of_line() -> None:
    """All events, refusals, errors, a call without an end; it ended in order."""
    entries = entries_of(EXAMPLE.read_bytes())
    assert {entry["event"] for entry in entries} == set(get_args(Event))
    assert [entry["event"] for entry in entries[-2:]] == ["stopped", "checkpoint"]
    admitted = {e["request_id"] for e in entries if e["event"] == "admitted"}
    settled = {e["request_id"] for e in entries if e["event"] == "settled"}
    assert len(admitted - settled) == 1
    assert settled < admitted


def test_its_checkpoints_are_right() -> None:
    """Each has the root of the lines before it, and a signature by the key beside it."""
    key = VerifierKey.parse(EXAMPLE.with_name("calls.pub").read_text(encoding="utf-8"))
    tree, last = Frontier(), b""
    for text in lines_of(EXAMPLE.read_bytes()):
        entry = json.loads(text)
        if entry["event"] == "checkpoint":
            sealed = read_sealed(text, entry["warnings"])
            assert (sealed.checkpoint.size, sealed.checkpoint.root) == (tree.size, tree.root())
            assert is_signed_by(sealed.note, key)
            last = str(sealed.note).encode()
        tree.add(leaf_hash(text))
    assert EXAMPLE.with_name("calls.checkpoint").read_bytes() == last
