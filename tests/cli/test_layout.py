"""JSON for people: laid out, and the same to the last character of each value."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_envelope.cli.layout import laid_out

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_it_is_the_same_value(value: object) -> None:
    """As Python lays it out, but for the spaces in empty containers."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert list(laid_out(text)) == json.dumps(value, ensure_ascii=False, indent=2).split("\n")


@pytest.mark.parametrize(
    "text", ["1.50", "-0", "1e400", '"\\u0041\\/"', "123456789012345678901234567890"]
)
def test_what_is_written_stays(text: str) -> None:
    """Numbers and escapes too."""
    assert list(laid_out(text)) == [text]
    assert list(laid_out(f"[ {text} ,{text}]")) == ["[", f"  {text},", f"  {text}", "]"]
