"""The names of ``import mcp_envelope as me``: all there, documented, typed and lazy."""

from __future__ import annotations

import ast
import doctest
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import assert_type

import pytest

import mcp_envelope as me
from mcp_envelope import _HOMES

#: What INTERFACE.md promises for this stage; later stages bring the rest of its table.
PROMISED = [
    "parse", "dump", "canonical", "digest", "decode", "encode", "convert", "wrap", "validate",
    "Request", "Success", "Failure", "Event",
    "Kind", "Capabilities", "CanonicalError", "SchemaRegistry",
    "EnvelopeError", "ConfigError", "UsageError",
]  # fmt: skip
HEAVY = [
    "argparse", "asyncio", "blake3", "dataclasses", "difflib", "hashlib", "http", "jiter", "json",
    "jsonschema_rs", "orjson", "pathlib", "socket", "sqlite3", "ssl", "subprocess", "urllib",
]  # fmt: skip
CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a"}}'


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    """docs/python.md."""
    return (root / "docs" / "python.md").read_text(encoding="utf-8")


def test_what_was_promised_is_there() -> None:
    """Every name that users were promised can be had, and is listed."""
    assert set(PROMISED) <= set(me.__all__)
    assert set(me.__all__) == {"__version__", *_HOMES}
    assert set(me.__all__) <= set(dir(me))


@pytest.mark.parametrize("name", _HOMES)
def test_every_name_is_there(name: str) -> None:
    """Each name is found where the table says, and is known under that name itself."""
    found = getattr(me, name)
    assert found.__name__ == name
    assert found.__module__.startswith("mcp_envelope.")
    assert found.__doc__


def test_other_names_are_not() -> None:
    """A name that is none is an AttributeError, as of any module."""
    name = "parze"
    with pytest.raises(AttributeError, match="module 'mcp_envelope' has no attribute 'parze'"):
        getattr(me, name)


def test_type_checkers_see_the_same_names() -> None:
    """What is imported for type checkers only is, name by name, what is fetched when it runs."""
    tree = ast.parse(Path(str(me.__file__)).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }
    assert seen == _HOMES


def test_types() -> None:
    """The types are those that the documentation speaks of (mypy checks it; here it runs)."""
    document = assert_type(me.parse(b"[1.0]"), me.Document)
    assert_type(me.dump(document), bytes)
    assert_type(me.canonical(document), bytes)
    assert_type(me.digest(document), me.Digest)
    message = assert_type(me.decode(CALL), me.Message)
    assert isinstance(message, me.Request)
    assert_type(me.encode(message, "mcp"), bytes)
    assert_type(me.convert(CALL, to="tool/1.0", from_="mcp", strict=False), me.Converted)
    assert_type(me.validate(CALL, dialect="mcp", part="request"), list[me.Problem])
    assert_type(me.wrap(b"1"), bytes)
    assert type(me.wrap([1])) is dict
    assert_type(me.Kind.parse("chat"), me.Kind)
    assert_type(me.Capabilities(["chat"]).allows(me.Kind.parse("chat")), bool)
    assert_type(me.CanonicalError.to_http_status("TIMEOUT"), int)


def test_importing_loads_nothing(root: Path) -> None:
    """``import mcp_envelope`` loads none of its own modules and nothing that takes time."""
    code = "import sys; before = set(sys.modules); import mcp_envelope; "
    code += "print(*sorted(set(sys.modules) - before))"
    done = subprocess.run(
        # Without site, which loads whatever else is installed here.
        [sys.executable, "-S", "-c", code],
        env={**os.environ, "PYTHONPATH": str(root / "src")},
        capture_output=True, check=True, text=True,
    )  # fmt: skip
    loaded = done.stdout.split()
    assert [name for name in loaded if name.startswith("mcp_envelope")] == ["mcp_envelope"]
    assert not set(loaded) & set(HEAVY)


@pytest.mark.parametrize("name", me.__all__)
def test_every_name_is_documented(page: str, name: str) -> None:
    """Each is in the table of names of docs/python.md, and in an example there."""
    table = page.partition("\n## ")[0]
    examples = "\n".join(re.findall(r"^(?:>>>|\.\.\.) .*$", page, re.MULTILINE))
    assert f"`{name}`" in table
    assert name == "__version__" or re.search(rf"\bme\.{name}\b", examples)


def test_every_documented_name_is_one(page: str) -> None:
    """No example uses a name that is none, and every link of the table has its heading."""
    assert set(re.findall(r"\bme\.(\w+)", page)) <= set(me.__all__)
    headings = re.findall(r"^##+ (.*)$", page, re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\(#([^)]+)\)", page)) <= anchors


def test_the_examples_run(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every example of docs/python.md prints what it shows, from top to bottom."""
    monkeypatch.chdir(tmp_path)
    page = str(root / "docs" / "python.md")
    failed, tried = doctest.testfile(page, module_relative=False, encoding="utf-8")
    assert tried > 40
    assert not failed, capsys.readouterr().out


def test_the_index_leads_to_every_page(root: Path) -> None:
    """docs/README.md names every page beside it, and every link in it leads somewhere."""
    docs = root / "docs"
    linked = re.findall(r"\]\(([^)#]+)\)", (docs / "README.md").read_text(encoding="utf-8"))
    assert not [name for name in linked if not (docs / name).is_file()]
    pages = {path.name for path in docs.glob("*.md")} - {"README.md"}
    assert pages <= set(linked)
