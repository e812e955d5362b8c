"""What somebody looks for: times, names, texts."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.facts import DIGEST, all_facts

from mcp_envelope.core.entry import line
from mcp_envelope.core.errors import UsageError
from mcp_envelope.core.search import (
    Search,
    bodies_in,
    kind_matcher,
    matcher,
    milliseconds,
    moment,
    outcome_matcher,
    text_finder,
)

NOW = 1_795_132_800_000  # 2026-11-20T00:00:00Z
DAY = 86_400_000


@pytest.mark.parametrize(
    "text,expected",
    [
        ("2026-11-20T00:00:00Z", NOW),
        ("2026-11-20T00:00:00.250Z", NOW + 250),
        ("2026-11-20T01:00:00+01:00", NOW),
        ("2026-11-20T00:00", NOW),
        ("2026-11-20 00:00:01", NOW + 1_000),
        ("2026-11-20", NOW),
        ("90s", NOW - 90_000),
        ("15m", NOW - 900_000),
        ("2h", NOW - 7_200_000),
        ("3D", NOW - 3 * DAY),
        (" 1w ", NOW - 7 * DAY),
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_times(text: str, expected: int) -> None:
    """RFC 3339, less of it, and how long ago."""
    assert moment(text, NOW) == expected


def test_a_date_has_two_ends() -> None:
    """Until a day means until its end; a time is a time."""
    assert moment("2026-11-19", NOW, is_end=True) == NOW - 1
    assert moment("2026-11-20T00:00:00Z", NOW, is_end=True) == NOW
    assert moment("1h", NOW, is_end=True) == NOW - 3_600_000


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2h30m", "-1h", "2026-13-01", "1y", "12:00", "∞"]
)
def test_what_is_no_time(text: str) -> None:
    """It is said, with what to write."""
    with pytest.raises(UsageError, match="is no time"):
        moment(text, NOW)


@given(st.text())
def test_whatever_is_written_it_is_a_time_or_a_mistake(text: str) -> None:
    """Nothing else is raised."""
    with contextlib.suppress(UsageError):
        assert isinstance(moment(text, NOW), int)


def test_times_of_lines() -> None:
    """As the gateway writes them; None for what is none."""
    assert milliseconds("2026-11-20T00:00:00.001Z") == NOW + 1
    assert milliseconds("soon") is None
    assert milliseconds(None) is None
    assert milliseconds("2026-11-20T00:00:00") is None


@pytest.mark.parametrize(
    "pattern,fits,fits_not",
    [
        ("read_file", ["read_file"], ["read_files", "Read_file", ""]),
        ("read_*", ["read_", "read_file"], ["write_read_"]),
        ("*file", ["file", "read_file"], ["files"]),
        ("a*b*c", ["abc", "a-b-c"], ["acb"]),
        ("**", ["", "x"], []),
        ("[a-z]?", ["[a-z]?"], ["ab"]),
    ],
)
def test_names(pattern: str, fits: list[str], fits_not: list[str]) -> None:
    """A name is itself; a star is any text, and nothing else is special."""
    is_meant = matcher(pattern)
    assert [is_meant(name) for name in fits] == [True] * len(fits)
    assert [is_meant(name) for name in fits_not] == [False] * len(fits_not)


@pytest.mark.parametrize(
    "pattern,fits,fits_not",
    [
        ("mcp/request:tools/call", ["mcp/request:tools/call:a"], ["mcp/request:tools/list"]),
        ("mcp/request:tools/call:a*", ["mcp/request:tools/call:ab"], ["mcp/request:tools/call:b"]),
        ("mcp/request:tools/*", ["mcp/request:tools/call:a"], ["mcp/request:prompts/get:a"]),
        ("mcp/*", ["mcp/request:tools/call:a"], ["chat"]),
        ("*call:a", ["mcp/request:tools/call:a"], ["mcp/request:tools/call:b"]),
        ("chat", ["chat"], ["mcp/request:chat"]),
        ("odd", ["odd"], ["mcp/request:odd"]),
    ],
)
def test_kinds(pattern: str, fits: list[str], fits_not: list[str]) -> None:
    """What may be granted may be looked for; the rest is a name with stars."""
    is_meant = kind_matcher(pattern)
    assert [is_meant(name) for name in fits] == [True] * len(fits)
    assert [is_meant(name) for name in fits_not] == [False] * len(fits_not)


def test_outcomes() -> None:
    """In any case, and `failed` for all but ok."""
    assert outcome_matcher("timeout")("TIMEOUT")
    assert outcome_matcher("INVALID_*")("INVALID_TOOL_INPUT")
    assert not outcome_matcher("failed")("ok")
    assert outcome_matcher("failed")("outcome_unknown")
    assert outcome_matcher("Outcome_Unknown")("OUTCOME_UNKNOWN")


@pytest.mark.parametrize(
    "text,data,is_there",
    [
        ("Shovel", b'{"a":"buy a sHOVEL"}', True),
        ("shovels", b'{"a":"shovel"}', False),
        ('say "hi"', rb'{"a":"say \"hi\""}', True),
        ("a\nb", rb'{"a":"a\nb"}', True),
        ("\\n", rb'{"a":"a\nb"}', True),
        ("ÄRGER", '{"a":"großer Ärger"}'.encode(), True),
        ("STRASSE", '{"a":"Straße"}'.encode(), False),
        ("STRAßE", b'{"a":"Strasse"}', True),
        ("é", b'{"a":"\xff"}', False),
    ],
)
def test_texts(text: str, data: bytes, is_there: bool) -> None:
    """In any case, as a value or as it is written; whatever the bytes are."""
    assert text_finder(text)(data) is is_there


@given(all_facts(), st.text(min_size=1, max_size=5))
def test_a_text_that_is_in_a_line_is_found(facts: object, text: str) -> None:
    """Wherever it is written as it is."""
    data = line(facts, 0, "0" * 64)  # type: ignore[arg-type]
    piece = data[20:30].decode(errors="ignore")
    assert text_finder(piece.upper() if piece.isascii() else piece)(data)


def test_bodies() -> None:
    """Where bodies may be kept: under the digests of a line, or of what redaction left."""
    other = "0" * 64
    entry = {
        "input": {"state": "redacted"},
        "output": {"digest": f"sha256:{DIGEST}", "bytes": 3},
        "warnings": [
            f"redacted: input at /a, /b; the rest sha256:{other}, 57 bytes",
            "redacted: everything",
            7,
        ],
    }
    assert bodies_in(entry) == [("output", DIGEST), ("input", other)]
    assert bodies_in({}) == []
    assert bodies_in({"input": {"digest": 1}, "output": [], "warnings": "x"}) == []


@pytest.mark.parametrize(
    "filters",
    [{"event": "ended"}, {"limit": -1}, {"trace": "abcde"}, {"text": ""}, {"tool": ""}],
)
def test_what_cannot_be_looked_for(filters: dict[str, object]) -> None:
    """It is a mistake at once."""
    with pytest.raises(UsageError):
        Search(**filters)  # type: ignore[arg-type]
