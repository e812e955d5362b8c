"""docs/rules-mcp.md says which test shows which rule of MCP: the tests that it names exist."""

from __future__ import annotations

import re

import pytest
from tests.rules.test_table import ROOT, TEST, docstrings_in

PAGE = ROOT / "docs" / "rules-mcp.md"
ROW = re.compile(r"^\| (?!rule |---)(.+?) \| (.*?) \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE.read_text(encoding="utf-8"))
OPEN = ("not tested yet", "not in this version")


def rule_name(value: str) -> str:
    """How a rule is called in the name of a test run."""
    return re.sub(r"[^a-z0-9]+", "-", value.lower())[:40]


@pytest.mark.parametrize(("rule", "shown_by"), ROWS, ids=rule_name)
def test_a_rule_is_shown_by_tests_that_exist_or_said_to_be_open(rule: str, shown_by: str) -> None:
    """Each row names a test, or admits that there is none; what it names is there."""
    named = TEST.findall(shown_by)
    assert named or any(words in shown_by for words in OPEN), rule
    for file, name in named:
        assert name in docstrings_in(ROOT / file), f"{file} has no {name}"


def test_rules_are_listed() -> None:
    """The pattern above finds the rows of every table."""
    tables = PAGE.read_text(encoding="utf-8").count("| rule | shown by |")
    assert len(ROWS) > 4 * tables > 30
    assert (ROOT / "docs" / "README.md").read_text(encoding="utf-8").count("rules-mcp.md") == 1
