"""Regular expressions as texts: which of them read a text again and again."""

from __future__ import annotations

import pytest

from mcp_envelope.core.schema_patterns import rescans


@pytest.mark.parametrize(
    ("pattern", "times"),
    [
        ("^(a+)+$", 0),
        ("^(?=.*[A-Z])(?=.*[0-9]).{8,}$", 0),
        ("^((?!foo).)*$", 0),
        ("^((?!a*b).)*$", 0),
        ("^(?:(?=ab)a|b)*$", 0),
        (r"^(?:\(?=a+)[(?=+]*$", 0),
        ("^(?:(?=a+)a)*$", 1),
        ("^(?:(?=a{2,})a)+$", 1),
        ("^(?:(?=a+)a){9}$", 1),
        ("(?=(a*))*b", 1),
        (r"(a)(?:(?=\1)a)*b", 1),
        ("^(?:(?=(?:(?=a*)a)*)a)*b$", 2),
        ("a)(?:(?=a*)a", 0),
        ("(((", 0),
    ],
)
def test_look_arounds_in_repetitions_are_counted(pattern: str, times: int) -> None:
    """Only where one may succeed again and again, and read far each time."""
    assert rescans(pattern) == times
