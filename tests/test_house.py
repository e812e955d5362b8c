"""The house rules that no linter knows: how long, how named, where kept."""

from __future__ import annotations

import ast
import filecmp
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "mcp_envelope"
FILE_BUDGET, FUNCTION_BUDGET = 400, 50
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "manager", "service", "common", "misc"}
MODULES = sorted(PACKAGE.rglob("*.py"))
TEXTS = [
    path
    for pattern in ("*.md", "*.toml", "*.txt", "*.py", "*.json", "*.sh", "run", ".gitignore")
    for folder in ("src", "tests", "tools", "docs", "examples", "bench", "fuzz", ".ci")
    for path in sorted((ROOT / folder).rglob(pattern))
] + [path for path in sorted(ROOT.iterdir()) if path.suffix in {".md", ".toml"}]
# Written in two halves, or this file would be found.
REGISTRIES = re.compile(
    "|".join(["py" + "pi.org", "python" + "hosted", "npm" + "js.org", "deb" + ".debian"])
)


def name_of(path: Path) -> str:
    """The path as test ids show it."""
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_stay_small_and_well_named(path: Path) -> None:
    """No file over 400 lines, no function over 50, and no name that says nothing."""
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= FILE_BUDGET, "split it where it falls apart by itself"
    assert path.stem not in EMPTY_NAMES, "say what is in it"
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    long = {
        node.name: node.end_lineno - node.lineno + 1
        for node in ast.walk(ast.parse(text))
        if isinstance(node, kinds) and node.end_lineno is not None
        if node.end_lineno - node.lineno + 1 > FUNCTION_BUDGET
    }
    assert not long


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_say_what_they_are_for(path: Path) -> None:
    """Every module that holds code starts with a docstring and the annotations import."""
    text = path.read_text(encoding="utf-8")
    if text.strip():
        tree = ast.parse(text)
        assert ast.get_docstring(tree)
        assert len(tree.body) == 1 or "from __future__ import annotations" in text


def test_there_is_code_to_look_at() -> None:
    """The rules above are applied to something."""
    assert len(MODULES) > 10
    assert len(TEXTS) > 20


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_no_file_names_a_package_registry(path: Path) -> None:
    """Packages are named, the hosts they come from never: mirrors must do as well."""
    assert not REGISTRIES.search(path.read_text(encoding="utf-8", errors="replace"))


def test_the_vectors_are_the_published_ones() -> None:
    """Where the shared originals lie beside the clone, our copies of them are the same bytes."""
    shared = ROOT.parent / "shared"
    if not (shared / "vectors").is_dir():
        pytest.skip("no ../shared beside this clone; the copies stand alone")
    copies = ROOT / "tests" / "vectors" / "shared"
    originals = {
        path.relative_to(shared / "vectors"): path
        for path in (shared / "vectors").rglob("*")
        if path.is_file() and path.name != "README.md"
    }
    originals[Path("capabilities.json")] = shared / "contracts" / "capabilities.json"
    differ = [
        str(name)
        for name, path in originals.items()
        if not filecmp.cmp(path, copies / name, shallow=False)
    ]
    assert originals
    assert not differ
