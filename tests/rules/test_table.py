"""The table in docs/rules.md says which test shows which rule: here it is held to that."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "rules.md"
ID = re.compile(r"\bS00[0-4]-[0-9]{2}\b")
ROW = re.compile(r"^\| (S[0-9]{3}-[^ |]+) \| (.+?) \| (.*?) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
LATER = re.compile(r"issue ([3-9]|1[0-9]): [a-z`]")
SEEDS = ("000", "001", "002", "003", "004")


class Rule(NamedTuple):
    """A row of the page."""

    id: str
    words: str
    shown_by: str

    @property
    def tests(self) -> list[tuple[str, str]]:
        """The tests that the row names: file and function."""
        return TEST.findall(self.shown_by)


RULES = [Rule(*row) for row in ROW.findall(PAGE.read_text(encoding="utf-8"))]


@cache
def docstrings_in(path: Path) -> dict[str, str]:
    """The docstring of each test in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name: ast.get_docstring(node) or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def rule_name(rule: Rule) -> str:
    """How a rule is called in the name of a test run."""
    return rule.id


def test_every_line_that_looks_like_a_rule_is_one() -> None:
    """No row is skipped because it is written a little differently, and no id comes twice."""
    text = PAGE.read_text(encoding="utf-8")
    begun = [line for line in text.splitlines() if line.startswith("| S")]
    assert len(begun) == len(RULES) > 150
    assert [name for name, count in Counter(rule.id for rule in RULES).items() if count > 1] == []
    assert [rule.id for rule in RULES if not ID.fullmatch(rule.id)] == []


@pytest.mark.parametrize("seed", SEEDS)
def test_each_seed_has_one_table_numbered_without_gaps(seed: str) -> None:
    """The rules of a seed are numbered from 01 in the order in which they stand."""
    numbers = [int(rule.id[5:]) for rule in RULES if rule.id.startswith(f"S{seed}-")]
    assert numbers == list(range(1, len(numbers) + 1))
    assert numbers


@pytest.mark.parametrize("rule", RULES, ids=rule_name)
def test_a_rule_is_shown_by_a_test_or_brought_by_an_issue(rule: Rule) -> None:
    """Every test that a row names exists and names the rule in its docstring."""
    assert rule.tests or LATER.search(rule.shown_by), "neither a test nor an issue"
    assert rule.shown_by.count("::") == len(rule.tests), "a test is written in another way"
    assert rule.shown_by.count("issue ") == len(LATER.findall(rule.shown_by))
    for file, name in rule.tests:
        assert (ROOT / file).is_file(), file
        found = docstrings_in(ROOT / file)
        assert name in found, f"{file} has no {name}"
        assert rule.id in ID.findall(found[name]), f"{name} does not name {rule.id}"


def test_tests_name_no_rule_that_the_page_does_not_have_with_them() -> None:
    """An id in a docstring of tests/rules stands in the table, with that very test beside it."""
    listed = {(rule.id, file, name) for rule in RULES for file, name in rule.tests}
    named = {
        (rule, path.relative_to(ROOT).as_posix(), name)
        for path in sorted((ROOT / "tests" / "rules").glob("test_*.py"))
        for name, docstring in docstrings_in(path).items()
        for rule in ID.findall(docstring)
    }
    assert named
    assert sorted(named - listed) == []
