"""The `requires` marker: nothing that is absent goes unnoticed."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py").read_text(encoding="utf-8")
NEEDY = """
import pytest

@pytest.mark.requires("no-such-program")
def test_program():
    pass

@pytest.mark.requires("module:no_such_module")
def test_module():
    pass

@pytest.mark.requires("module:json")
def test_there():
    pass
"""


@pytest.fixture
def needy(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with our conftest, two tests that ask for too much and one that does not."""
    pytester.makeconftest(CONFTEST)
    pytester.makeini("[pytest]\nmarkers = requires(*names): x\n")
    pytester.makepyfile(NEEDY)
    return pytester


def test_absence_is_named_at_home(needy: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """At home the tests that need what is absent are skipped, and the run says which."""
    monkeypatch.delenv("CI", raising=False)
    done = needy.runpytest_subprocess("-q", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=1, skipped=2)
    done.stdout.fnmatch_lines(["*NOT TESTED HERE*", "*no_such_module is absent: 1*"])
    done.stdout.fnmatch_lines(["no-such-program is absent: 1*"])


def test_absence_fails_in_ci(needy: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where CI=true the same tests fail: a green run there has tested everything."""
    monkeypatch.setenv("CI", "true")
    done = needy.runpytest_subprocess("-q", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=1, errors=2)
