"""docs/cli.md says what the program does: its reference, its examples, its JSON."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.cli.ledgers import url_in, write

from mcp_envelope.cli import VERBS
from mcp_envelope.gateway import keys

from .conftest import Run

TOOL = "tools/generate_cli_docs.py"
#: What the samples of a verb print, together, has every documented key.
SAMPLES = {
    "doctor": [["doctor"]],
    "ledger list": [["ledger", "list", "."]],
    "ledger query": [["ledger", "query", "calls.jsonl"]],
    "ledger show": [["ledger", "show", "calls.jsonl", "2f2ec92e"]],
    "ledger verify": [
        ["ledger", "verify", "calls.jsonl", "one.jsonl", "two.jsonl"],
        ["ledger", "verify", "calls.jsonl", "--key", "calls.pub"],
        ["ledger", "verify", "torn.jsonl"],
        ["ledger", "verify", "damaged.jsonl"],
    ],
    "ledger export": [["ledger", "export", "calls.jsonl", "--from", "1", "--out", "part"]],
    "ledger checkpoint": [["ledger", "checkpoint", "calls.jsonl", "--since", "older.checkpoint"]],
    "ledger prove": [
        ["ledger", "prove", "calls.jsonl", "3", "--out", "proof", "--line-out", "line"],
        ["ledger", "prove", "--check", "proof", "--line", "line", "--key", "calls.pub"],
    ],
    "ledger prune": [["ledger", "prune", "calls.db", "--before", "1", "--dry-run"]],
    "ledger verifier": [["ledger", "verifier"]],
    "keys new": [["keys", "new"]],
    "keys show": [["keys", "show"]],
    "validate": [
        ["validate", "tool-request.json"],
        ["validate", "broken-request.json"],
        ["validate", "short-kind.json"],
        ["validate", "no.json"],
    ],
    "convert": [
        ["convert", "mcp-call.json", "--to", "tool/1.0"],
        ["convert", "tool-response.json", "--to", "tiered/1.0"],
    ],
    "wrap": [["wrap", "measurement.json"]],
    "digest": [["digest", "tool-request.json"]],
    "schemas": [["schemas", "--out", "published"]],
    "errors": [["errors"]],
    "Complaints": [
        ["wrap", "absent"],
        ["wrap", "no.json"],
        ["digest", "measurement.json"],
        ["convert", "tool-response.json", "--to", "tiered/1.0", "--strict"],
        ["run", "--config", "broken-settings.toml"],
    ],
}
SHORT_KIND = (
    b'{"protocol":"mcpx/v0.1","id":"e-1","from":"p","kind":"mcp/request:tools/call",'
    b'"payload":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}}'
)


@pytest.fixture(scope="module")
def tool(root: Path) -> ModuleType:
    """The generator of the page."""
    spec = importlib.util.spec_from_file_location("generate_cli_docs", root / TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    """The page as it is."""
    return (root / "docs" / "cli.md").read_text(encoding="utf-8")


def test_the_page_is_up_to_date(tool: ModuleType, page: str) -> None:
    """Reference and examples are what the program says now; if not, run the tool."""
    assert tool.generate(page) == page


def test_what_is_stale_is_found(tool: ModuleType, page: str) -> None:
    """A change by hand in what is made, or in what an example prints, is undone."""
    for old, new in (("| `--strict` |", "| `--strikt` |"), ("valid: tool/1.0", "valid: tol/1.0")):
        assert old in page
        assert tool.generate(page.replace(old, new, 1)) == page


def test_the_tool_checks_and_writes(
    tool: ModuleType,
    root: Path,
    examples: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``--check`` only says that the page is stale; without it the page is written."""
    for name in ("docs", "examples"):
        shutil.copytree(root / name, examples / "clone" / name)
    monkeypatch.setattr(tool, "ROOT", examples / "clone")
    page = examples / "clone" / "docs" / "cli.md"
    good = page.read_text(encoding="utf-8")
    assert tool.run(["--check"]) == 0
    page.write_text(good.replace("`--strict`", "`--strikt`"), encoding="utf-8")
    assert tool.run(["--check"]) == 1
    assert "run: python tools/generate_cli_docs.py" in capsys.readouterr().err
    assert page.read_text(encoding="utf-8") != good
    assert tool.run([]) == 0
    assert page.read_text(encoding="utf-8") != good  # the prose is not the tool's to mend
    page.write_text(good.replace("| `--strict` |", "| `--strikt` |"), encoding="utf-8")
    assert tool.run([]) == 0
    assert page.read_text(encoding="utf-8") == good


def test_every_verb_is_documented(page: str) -> None:
    """Each verb has a section with its reference and at least one example that was run."""
    for verb in VERBS:
        section = section_of(page, verb)
        assert f"<!-- made: {verb} -->" in section
        assert f"\n$ mcp-envelope {verb} " in section or f"| mcp-envelope {verb} " in section


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize("section", SAMPLES)
def test_the_json_is_the_documented_one(run: Run, examples: Path, page: str, section: str) -> None:
    """Every key that --json prints is in the section's table, and every key there is printed."""
    (examples / "no.json").write_bytes(b"[")
    (examples / "short-kind.json").write_bytes(SHORT_KIND)
    make_ledgers(examples, section)
    documented = keys_in(section_of(page, section))
    printed = {p for words in SAMPLES[section] for p in paths(run(*words, "--json").json)}
    inner = {p for p in printed if any(inside(p, d) for d in documented & OPAQUE)}
    containers = {p for p in printed if any(inside(d, p) for d in documented)}
    assert printed - inner - containers - documented == set()
    assert documented - printed == set()


#: Places that hold a whole document or are described elsewhere.
OPAQUE = {
    *("data", "schemas[].schema", "codes[].mcp", "error.problems[]", "warnings[]"),
    *("entries[]", "lines[].line", "bodies[].body"),
}


def make_ledgers(folder: Path, section: str) -> None:
    """What the samples about the record need: damage, other histories, something to remove."""
    lines = (folder / "calls.jsonl").read_bytes().splitlines(keepends=True)
    if section == "keys show":
        keys.signers()
    elif section == "ledger prune":
        write(url_in(folder, "sqlite"), 1)
    elif section == "ledger checkpoint":
        note = json.loads(lines[12])["warnings"][-1]
        (folder / "older.checkpoint").write_text(note, encoding="utf-8")
    elif section == "ledger verify":
        for number, name in enumerate(("one", "two"), 1):
            (folder / f"{name}.jsonl").write_bytes(b"".join(lines))
            write(f"jsonl:{folder / name}.jsonl", number)
        (folder / "torn.jsonl").write_bytes(b"".join(lines) + b"{")
        (folder / "damaged.jsonl").write_bytes(b"".join(lines[:5] + lines[6:]))


def inside(path: str, other: str) -> bool:
    """Whether a path lies below another one."""
    return path != other and path.startswith((f"{other}.", f"{other}["))


def section_of(page: str, title: str) -> str:
    """The part of the page under a heading, to the next heading of its level."""
    found = re.search(rf"^(##+) {title}$(.*?)(?=^##|\Z)", page, re.DOTALL | re.MULTILINE)
    assert found is not None, title
    return found[2]


def keys_in(section: str) -> set[str]:
    """The paths in the first column of the section's table of keys."""
    table = re.split(r"^\| key[^\n]*\n\|---\|---\|\n", section, flags=re.MULTILINE)[1]
    cells = [row.split(" | ")[0] for row in table.split("\n\n")[0].splitlines()]
    return {path for cell in cells for path in re.findall(r"`([^`]+)`", cell)}


def paths(value: Any, above: str = "") -> Iterator[str]:
    """Every path in a JSON value: ``a.b[].c``."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from paths(part, f"{above}.{name}" if above else name)
    elif isinstance(value, list):
        for part in value:
            yield from paths(part, f"{above}[]")
    yield from [above] if above else []
