"""``convert``: exact bytes on standard output, the lists on standard error."""

from __future__ import annotations

from pathlib import Path

import pytest

import mcp_envelope as me
from mcp_envelope.cli import parser
from mcp_envelope.dialects.options import OPTIONS

from .conftest import Run

CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","arguments":{"n":1.0}}}'


def test_exact_bytes_and_lists(run: Run) -> None:
    """The bytes are those of the Python function; what is filled in stands beside them."""
    done = run("convert", "-", "--to", "tool/1.0", given=CALL)
    expected = me.convert(CALL, "tool/1.0")
    assert (done.code, done.out) == (0, expected.data)
    assert done.err.splitlines() == [
        "filled: /version: mcp does not say it",
        "filled: /timestamp: mcp does not say it",
    ]


def test_there_and_back(run: Run) -> None:
    """What was filled in on the way is left out on the way back: nothing to say."""
    there = run("convert", "-", "--to", "tool/1.0", given=CALL)
    back = run("convert", "-", "--to", "mcp", "--strict", given=there.out)
    assert (back.code, back.out, back.err) == (0, CALL, "")


def test_json(run: Run) -> None:
    """With --json all of it is one value, and number text survives in it."""
    done = run("convert", "-", "--to", "tool/1.0", "--json", given=CALL)
    assert (done.code, done.err) == (0, "")
    assert b'"payload":{"n":1.0}' in done.out
    assert list(done.json) == ["from", "to", "data", "lost", "filled"]
    assert (done.json["from"], done.json["to"]) == ("mcp", "tool/1.0")
    assert done.json["filled"] == ["/version", "/timestamp"]


def test_what_is_lost(run: Run, examples: Path) -> None:
    """What the target cannot hold is listed; --strict refuses, and lists the same."""
    words = ["convert", "tool-response.json", "--to", "tiered/1.0"]
    expected = me.convert((examples / "tool-response.json").read_bytes(), "tiered/1.0")
    assert expected.lost
    done = run(*words)
    assert (done.code, done.out) == (0, expected.data)
    for pointer in expected.lost:
        assert f"lost: {pointer}: tiered/1.0 cannot hold it\n" in done.err
    refused = run(*words, "--strict")
    assert (refused.code, refused.out) == (1, b"")
    assert f"\n  lost: {expected.lost[0]}\n" in refused.err
    error = run(*words, "--strict", "--json").json["error"]
    assert (error["lost"], error["filled"]) == (list(expected.lost), list(expected.filled))


def test_options_fill_in(run: Run) -> None:
    """Every option of the function is one of the verb, and is used where it is needed."""
    declared = {action.dest for action in parser("convert").declared}
    assert set(OPTIONS) <= declared
    words = ["--timestamp", "2026-03-02T09:30:00Z", "--version", "1.2.3", "--from-peer", "unused"]
    done = run("convert", "-", "--to", "tool/1.0", *words, "--json", given=CALL)
    assert done.json["data"]["timestamp"] == "2026-03-02T09:30:00Z"
    assert done.json["data"]["version"] == "1.2.3"
    assert "unused" not in done.out.decode()


@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_are_no_text(run: Run, name: str) -> None:
    """A word of the command line that is not UTF-8 cannot go into JSON: a mistake, said so."""
    option = "--" + name.replace("_", "-")
    done = run("convert", "-", "--to", "tool/1.0", option, "\udcff", given=CALL)
    assert (done.code, done.err) == (2, f"mcp-envelope: {option} is not UTF-8; JSON is\n")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--timestamp", "yesterday"),
        ("--timestamp", "2026-03-02T09:30:00Z\n"),
        ("--version", "2.0.0"),
        ("--from-peer", ""),
        ("--from-peer", "system:gateway"),
        ("--method", "tools/"),
        ("--tier", "gold"),
        ("--tool-version", "new"),
    ],
)
def test_options_that_cannot_be(run: Run, option: str, value: str) -> None:
    """A value that no envelope could hold is a mistake in the command line, used or not."""
    for target in ("mcp", "mcpx/0.1", "tool/1.0"):
        done = run("convert", "-", "--to", target, option, value, given=CALL)
        assert (done.code, done.out) == (2, b"")
        name = option.removeprefix("--").replace("-", "_")
        assert f"cannot be the option {name}; it is {OPTIONS[name]}" in done.err


def test_results_of_which_nothing_says_that_a_tool_gave_them(run: Run) -> None:
    """A task is refused with the option that helps, and with it is accepted work."""
    task = b'{"jsonrpc":"2.0","id":7,"result":{"resultType":"task","task":{"taskId":"t"}}}'
    words = ["convert", "-", "--to", "tool/1.0"]
    refused = run(*words, given=task)
    assert refused.code == 1
    assert "nothing says that a tool gave this result" in refused.err
    assert "--method tools/call" in refused.err
    done = run(*words, "--method", "tools/call", "--json", given=task)
    assert done.json["data"]["status"] == {"code": "accepted"}


def test_conversions_without_meaning(run: Run, examples: Path) -> None:
    """A request into a format for responses only: exit code 1, and why."""
    done = run("convert", "tool-request.json", "--to", "tiered/1.0")
    assert (done.code, done.out) == (1, b"")
    assert done.err.startswith("mcp-envelope: tiered/1.0 has no way to say a request")


def test_what_is_not_valid_is_not_converted(run: Run, examples: Path) -> None:
    """An invalid envelope: exit code 1; each problem a line."""
    done = run("convert", "broken-request.json", "--to", "mcp")
    assert (done.code, done.out) == (1, b"")
    assert len(done.err.splitlines()) == 4


@pytest.mark.parametrize("words", [["--to", "tool"], ["--to", "mcp", "--from", "tool"]])
def test_unknown_dialects(run: Run, words: list[str]) -> None:
    """No such dialect: exit code 2, and the nearest."""
    done = run("convert", "-", *words, given=CALL)
    assert (done.code, done.out) == (2, b"")
    assert done.err.startswith("mcp-envelope: no dialect 'tool'; did you mean 'tool/1.0'?")
