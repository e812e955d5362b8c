"""docs/settings.md says what can be set, and its examples can be used."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from mcp_envelope.gateway import settings_schema
from mcp_envelope.gateway.settings_environment import CONFIG, overlay
from mcp_envelope.gateway.settings_file import Given, load
from mcp_envelope.gateway.settings_mistakes import dotted
from mcp_envelope.gateway.settings_tree import Tree


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    """The page as it is."""
    return (root / "docs" / "settings.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tool(root: Path) -> dict[str, Any]:
    """The generator of the reference."""
    return runpy.run_path(str(root / "tools" / "generate_settings_docs.py"))


def test_the_page_is_up_to_date(tool: dict[str, Any], page: str) -> None:
    """The reference is what the schema says; if not, run tools/generate_settings_docs.py."""
    assert tool["generate"](page) == page
    assert tool["generate"](page.replace("| `http.host` |", "| `http.hots` |")) == page


def test_every_key_is_documented(page: str) -> None:
    """A key that is not on the page fails the build; those of a server's rules are said once."""
    for key in settings_schema.every_key():
        repeated = key.path[:3] == ("upstreams", "NAME", "rules") and len(key.path) > 3
        tables = key.path[-1] in ("NAME", "TOOL")
        name = "VARIABLE" if key.path[-1] == "VARIABLE" else key.path[-1]
        if not repeated and not tables and name not in ("VARIABLE", "HEADER"):
            assert f"| `{dotted(key.path)}` |" in page


def test_the_examples_can_be_used(page: str, tmp_path: Path) -> None:
    """Each example is a file that gives settings."""
    examples = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 4
    (tmp_path / ".secrets").mkdir()
    (tmp_path / ".secrets" / "github-mcp").write_text("Bearer x\n", encoding="utf-8")
    for number, text in enumerate(examples):
        used = text.replace("~/", f"{tmp_path}/")
        given = Given(config="s.toml", environment={"SEARCH_KEY": "k"})
        settings = load(given, lambda _, used=used: used.encode()).settings  # type: ignore[misc]
        assert len(settings.upstreams) == (1, 3, 1, 1)[number]


def test_the_variables_set_what_they_say(page: str) -> None:
    """The table of variables is true."""
    rows = re.findall(r"^\| `(MCP_ENVELOPE_\w+)=([^`]*)` \| `([^`]+)`", page, re.MULTILINE)
    assert len(rows) == 4
    for name, value, key in rows:
        tree = Tree()
        overlay(tree, {name: value.strip("'")}, Path())
        assert not tree.mistakes
        assert tree.get(tuple(key.split("."))) is not None
    assert CONFIG in page


def test_the_complaints_of_the_page_are_real(page: str) -> None:
    """What the page shows of mistakes is what is said."""
    shown = re.findall(r"^mcp-envelope: (gateway\.toml: .*)$", page, re.MULTILINE)
    raw = b'http.prot = 1\nrules.output = "strct"\n[upstreams.time]\n'
    with pytest.raises(Exception) as caught:
        load(Given(config="gateway.toml"), lambda _: raw)
    assert str(caught.value).split("\n") == shown
