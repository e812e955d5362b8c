"""``errors``: the table, and one code explained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcp_envelope.core import codes
from mcp_envelope.core.codes import TABLE

from .conftest import Run

ENTRIES = json.loads(Path(codes.__file__).with_name("errors.json").read_text(encoding="utf-8"))


def test_the_table(run: Run) -> None:
    """A line for every code, aligned, within 80 columns."""
    done = run("errors")
    head, *lines = done.out.decode().splitlines()
    assert (done.code, done.err) == (0, "")
    assert head.split() == ["CODE", "ORIGIN", "RETRY", "HTTP", "JSON-RPC", "MESSAGE"]
    assert [line.split(maxsplit=5) for line in lines] == [
        [r.code, r.origin, "yes" if r.retry else "no", str(r.http), str(r.jsonrpc), r.message]
        for r in TABLE.values()
    ]
    assert max(map(len, lines)) <= 80
    assert all(line[head.index("MESSAGE") - 1] == " " for line in lines)


def test_json_is_the_published_table(run: Run) -> None:
    """With --json the same objects as in errors.json, for all or for one."""
    assert run("errors", "--json").json == ENTRIES
    assert run("errors", "timeout", "--json").json == {
        "codes": [entry for entry in ENTRIES["codes"] if entry["code"] == "TIMEOUT"]
    }


@pytest.mark.parametrize("code", TABLE)
def test_each_is_explained(run: Run, code: str) -> None:
    """Its meaning, its remedy, and how each door and dialect says it, within 88 columns."""
    row = TABLE[code]
    done = run("errors", code)
    text = done.out.decode()
    words = " ".join(text.split())
    assert done.code == 0
    assert text.startswith(f"{code}: {row.message}\norigin: {row.origin}; ")
    assert row.meaning in words
    assert row.remedy in words
    for said in (str(row.http), str(row.jsonrpc), row.tool_status, row.provenance):
        assert said in text.partition("How it is said:")[2]
    for revision in ("2025-06-18", "2025-11-25", "2026-07-28"):
        assert f"MCP {revision} {row.mcp(revision)}" in words
    tiered = "by exception" if row.tiered_by_exception else row.tiered
    assert f"tiered/1.0 error_code {tiered} tool/1.0" in words
    assert run("errors", code.lower()).out == done.out
    assert run("errors", code.replace("_", "-").title()).out == done.out


@pytest.mark.parametrize(
    "word,found",
    [
        ("4030", ["FORBIDDEN"]),
        ("-32001", ["TOOL_NOT_FOUND"]),
        ("-32700", ["INVALID_ENVELOPE"]),
        ("403", ["FORBIDDEN", "UPGRADE_REQUIRED"]),
        ("-32602", ["INVALID_TOOL_INPUT", "TOOL_NOT_FOUND", "UNSUPPORTED_VERSION"]),
        ("adapter.limit.rate", ["RATE_LIMITED"]),
    ],
)
def test_what_stands_in_a_log_is_found(run: Run, word: str, found: list[str]) -> None:
    """Numbers and the codes of provenance lead to the rows that say them."""
    assert [e["code"] for e in run("errors", word, "--json").json["codes"]] == found
    lines = run("errors", word).out.decode().splitlines()
    if len(found) > 1:
        assert [line.split()[0] for line in lines[1:]] == found
    else:
        assert lines[0].startswith(f"{found[0]}: ")


@pytest.mark.parametrize(
    "word,said",
    [
        ("tool_not_fund", "no error code 'tool_not_fund'; did you mean TOOL_NOT_FOUND?"),
        ("zzz", "no error code 'zzz'; mcp-envelope errors lists them"),
        ("", "no error code ''; mcp-envelope errors lists them"),
        ("\udcff\x1b", "no error code '\\udcff\\x1b'; mcp-envelope errors lists them"),
    ],
)
def test_unknown_codes(run: Run, word: str, said: str) -> None:
    """Exit code 2, and the nearest code if there is one."""
    done = run("errors", word)
    assert (done.code, done.out) == (2, b"")
    assert done.err.startswith(f"mcp-envelope: {said}")
