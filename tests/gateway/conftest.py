"""Which tests of gateways are too many for the fast suite."""

from __future__ import annotations

import pytest

_WHOLE = ("test_rules_", "test_several_", "test_errors_", "test_secrets_kept", "test_clockwork")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark those that go rule by rule, or put several servers behind one door."""
    for item in items:
        if item.path.parent.name == "gateway" and item.path.name.startswith(_WHOLE):
            item.add_marker(pytest.mark.whole)
