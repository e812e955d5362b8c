"""Streams are cut into the same lines however they come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcp_envelope.core.lines import LineCutter, Overlong


@given(st.lists(st.binary(max_size=30)), st.integers(1, 20))
def test_lines_do_not_depend_on_how_they_come(pieces: list[bytes], limit: int) -> None:
    """However a stream is cut into reads, the same lines come out, and long ones as such."""
    cutter = LineCutter(limit)
    found = [line for piece in pieces for line in cutter.feed(piece)]
    rest = cutter.rest()
    whole = b"".join(pieces).split(b"\n")
    if rest is not None or whole[-1]:
        found.append(rest if rest is not None else b"")
    else:
        whole.pop()
    assert len(found) == len(whole)
    for line, expected in zip(found, whole, strict=True):
        if len(expected) > limit:
            assert isinstance(line, Overlong)
            assert line.size == len(expected)
        else:
            assert line == expected


def test_of_a_long_line_only_the_ends_are_kept() -> None:
    """However long a line is, what is kept of it is small."""
    cutter = LineCutter(100_000)
    for _ in range(100):
        assert cutter.feed(b"x" * 65_536) == []
    (found,) = cutter.feed(b"end\n")
    assert isinstance(found, Overlong)
    assert found.size == 100 * 65_536 + 3
    assert len(found.head) + len(found.tail) <= 2 * 65_536
    assert found.tail.endswith(b"xend")
