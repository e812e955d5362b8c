"""``validate``: the verdict, in words and as JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_envelope.cli import validate
from mcp_envelope.dialects import DIALECTS

from .conftest import Run


def test_valid(run: Run, examples: Path) -> None:
    """A valid envelope: exit code 0, and what it is."""
    done = run("validate", "tool-request.json")
    assert (done.code, done.out, done.err) == (0, b"valid: tool/1.0 request\n", "")
    assert run("validate", "tool-request.json", "--json").json == {
        "valid": True,
        "dialect": "tool/1.0",
        "part": "request",
        "problems": [],
        "warnings": [],
    }


def test_invalid(run: Run, examples: Path) -> None:
    """An invalid one: exit code 1; per problem the place, the rule and what to do."""
    done = run("validate", "broken-request.json")
    lines = done.out.decode().splitlines()
    assert (done.code, done.err) == (1, "")
    assert lines[0] == "invalid: tool/1.0 request, 4 problems"
    assert lines[1].startswith("  /priority: ")
    assert lines[2] == "      rule: tool-1.0/request.schema.json#/additionalProperties"
    assert lines[3].startswith("      do:   ")
    found = run("validate", "broken-request.json", "--json").json
    assert (found["valid"], len(found["problems"])) == (False, 4)
    assert found["problems"][0]["rule"] == lines[2].split()[-1]


def test_warnings_do_not_make_it_invalid(run: Run) -> None:
    """A warning is listed, apart in JSON, and the exit code stays 0."""
    envelope = (
        b'{"protocol":"mcpx/v0.1","id":"e-1","from":"p","kind":"mcp/request:tools/call",'
        b'"payload":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}}'
    )
    done = run("validate", "-", given=envelope)
    assert done.code == 0
    assert b"valid: mcpx/0.1 envelope, 1 warning\n  /kind: warning: " in done.out
    found = run("validate", "-", "--json", given=envelope).json
    assert (found["valid"], found["problems"]) == (True, [])
    assert [w["severity"] for w in found["warnings"]] == ["warning"]


def test_no_envelope(run: Run) -> None:
    """JSON that is no known envelope does not hold, and there is no dialect to name."""
    done = run("validate", "-", given=b'{"a":1}')
    assert done.code == 1
    assert done.out.startswith(b"invalid: no known envelope, 1 problem\n")
    found = run("validate", "-", "--json", given=b'{"a":1}').json
    assert (found["dialect"], found["part"]) == (None, None)
    assert "line" not in found


def test_no_json(run: Run) -> None:
    """Text that is not JSON does not hold: exit code 1, with line and column."""
    done = run("validate", "-", given=b'{"a":1,\n "b":}')
    assert done.code == 1
    assert b"invalid: not readable as JSON, 1 problem\n" in done.out
    assert b"at line 2, column 6" in done.out
    found = run("validate", "-", "--dialect", "mcp", "--json", given=b'{"a":1,\n "b":}').json
    assert (found["line"], found["column"], found["valid"]) == (2, 6, False)
    assert (found["dialect"], found["part"]) == ("mcp", None)


def test_named_dialects_and_parts(run: Run, examples: Path) -> None:
    """What is named is what it is held against, whatever it looks like."""
    assert run("validate", "mcp-call.json", "--dialect", "tool/1.0").code == 1
    record = run("validate", "mcp-call.json", "--part", "record")
    assert record.out.startswith(b"invalid: provenance/0.1 record, ")


@pytest.mark.parametrize(
    "words,said",
    [
        (["--dialect", "tool"], "no dialect 'tool'; did you mean 'tool/1.0'?"),
        (["--dialect", "tool/1.0", "--part", "recrod"], "tool/1.0 has no part 'recrod'; it has"),
        (["--part", "recrod"], "no dialect has a part 'recrod'; parts: "),
        (["--dialect", ""], "no dialect ''; known: "),
    ],
)
@pytest.mark.parametrize("given", [b"{}", b"{"], ids=["JSON", "no JSON"])
def test_unknown_dialects_and_parts(run: Run, words: list[str], said: str, given: bytes) -> None:
    """A name that is none is a mistake in the command line, and what is known is listed."""
    done = run("validate", "-", *words, given=given)
    assert (done.code, done.out) == (2, b"")
    assert done.err.startswith(f"mcp-envelope: {said}")


def test_the_help_names_every_dialect_and_part(run: Run) -> None:
    """Which dialects and parts there are stands in the help, and no others do."""
    text = " ".join(run("validate", "--help").out.decode().split())
    parts = {part for name in DIALECTS for part in DIALECTS[name].parts}
    named = text.partition("--part P what it is, recognised if not given: ")[2]
    listed = named.partition(" --json")[0].replace(" or ", ", ").split(", ")
    assert set(listed) == parts
    assert len(listed) == len(parts)
    assert all(name in text for name in DIALECTS)
    assert validate.EXAMPLE in text


def test_text_from_outside_cannot_pose_as_ours(run: Run) -> None:
    """A member's name with a line end and an escape sequence stays one harmless line."""
    name = "x\\nvalid: tool/1.0 request\\u001b[2J\\u202e"
    envelope = f'{{"jsonrpc":"2.0","id":1,"method":"ping","{name}":1,"result":{{}}}}'
    done = run("validate", "-", "--dialect", "tool/1.0", given=envelope.encode())
    assert done.code == 1
    assert "\nvalid:" not in done.out.decode()
    assert "\x1b" not in done.out.decode()
    assert "  /x\\nvalid: tool~11.0 request\\x1b[2J\\u202e: unexpected" in done.out.decode()
