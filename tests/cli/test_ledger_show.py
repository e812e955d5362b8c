"""``ledger show``: all lines of a call, in words and as JSON."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
from tests.stores.test_index import call, write

from .conftest import Run

LEDGER = "calls.jsonl"


@pytest.mark.parametrize(
    "name", ["2f2ec92e-77b2-47e6-81f4-945d3f9d18f0", "2f2ec92e", "2f2ec9", "8", "9"]
)
def test_a_call_by_its_id_a_beginning_or_a_line(run: Run, examples: Path, name: str) -> None:
    """All of them show the same: its lines with their digests, and the bodies."""
    lines = (examples / LEDGER).read_bytes().splitlines()
    done = run("ledger", "show", LEDGER, name, "--json")
    assert done.code == 0
    found = done.json
    assert found["request_id"] == "2f2ec92e-77b2-47e6-81f4-945d3f9d18f0"
    assert found["outcome"] == "EXECUTION_FAILED"
    assert [line["seq"] for line in found["lines"]] == [8, 9]
    digests = [f"sha256:{sha256(line).hexdigest()}" for line in lines[8:10]]
    assert [line["digest"] for line in found["lines"]] == digests
    assert all(b'"line":' + line in done.out for line in lines[8:10])
    assert [body["of"] for body in found["bodies"]] == ["input", "output"]
    assert found["bodies"][0]["body"] == {"path": "/srv/notes/tomorrow.md"}


def test_in_words(run: Run, examples: Path) -> None:
    """What, who, when, how long, how it ended, and what was kept."""
    said = run("ledger", "show", LEDGER, "2f2ec92e").out.decode()
    for text in (
        "read_file: EXECUTION_FAILED\n",
        "  peer        agent-7\n",
        "  took        4.2 ms\n",
        "  error       EXECUTION_FAILED: Tool failed\n",
        '                "path": "/srv/notes/tomorrow.md"\n',
        "  line 9  settled     2026-11-19T09:02:48.909Z  sha256:",
    ):
        assert text in said
    refused = run("ledger", "show", LEDGER, "7").out.decode()
    assert refused.startswith("read_file: INVALID_TOOL_INPUT\n")
    redacted = run("ledger", "show", LEDGER, "15").out.decode()
    assert "  input       redacted, and so without a digest\n" in redacted
    assert "  warning     redacted: input at /password; the rest sha256:" in redacted


def test_how_to_keep_bodies(run: Run, examples: Path) -> None:
    """Said of a call that failed where they could have been kept, and were not."""
    hint = '  bodies      none is kept; to keep those of calls that fail: rules.bodies = "errors"\n'
    assert hint not in run("ledger", "show", LEDGER, "2f2ec92e").out.decode()
    (examples / f"{LEDGER}.bodies").unlink()
    assert hint in run("ledger", "show", LEDGER, "2f2ec92e").out.decode()
    write("sqlite:two.db", *call(1), *call(2, outcome="TIMEOUT"))
    said = [run("ledger", "show", "two.db", str(seq)).out.decode() for seq in (1, 3)]
    assert [hint in one for one in said] == [False, True]
    assert hint not in run("ledger", "show", LEDGER, "937f63e3").out.decode()
    assert hint not in run("ledger", "show", LEDGER, "0").out.decode()


def test_a_call_without_end(run: Run, examples: Path) -> None:
    """It is said plainly, and whether its gateway is gone."""
    said = run("ledger", "show", LEDGER, "937f63e3").out.decode()
    assert said.startswith(
        "send_mail: outcome unknown\nIt was admitted and has no end, and the gateway has been "
        "started anew since: nobody knows whether the tool did it.\n"
    )
    found = run("ledger", "show", LEDGER, "937f63e3", "--json").json
    assert (found["outcome"], len(found["lines"])) == ("outcome_unknown", 1)
    write("sqlite:open.db", call(1)[0])
    said = run("ledger", "show", "open.db", "0").out.decode()
    assert "it is under way, or the gateway was cut off" in said


def test_lines_of_no_call(run: Run, examples: Path) -> None:
    """Such a line is shown alone; a checkpoint with its note."""
    found = run("ledger", "show", LEDGER, "0", "--json").json
    assert (found["request_id"], found["outcome"], found["bodies"]) == (None, "ok", [])
    said = run("ledger", "show", LEDGER, "21").out.decode()
    assert said.startswith("checkpoint: ok\n")
    assert "              — example Gk6iYoQ" in said


def test_long_bodies_are_cut_unless_asked_for(run: Run, examples: Path) -> None:
    """And how to see all of it is said."""
    digest = sha256(body := b"[%b]" % b",".join(b"%d" % n for n in range(100))).hexdigest()
    line = (examples / LEDGER).read_bytes().splitlines()[1]
    old = line.partition(b'"input":{"digest":"sha256:')[2][:64]
    (examples / "long.jsonl").write_bytes(line.replace(old, digest.encode()) + b"\n")
    kept = b'{"digest":"sha256:%b","body":%b}\n' % (digest.encode(), body)
    (examples / "long.jsonl.bodies").write_bytes(kept)
    said = run("ledger", "show", "long.jsonl", "1").out.decode()
    assert "  38\n" not in said.replace(",", "")[-1:]
    assert "… --full prints all of it, 291 characters" in said
    full = run("ledger", "show", "long.jsonl", "1", "--full").out.decode()
    assert "                99\n" in full


def test_what_there_is_not(run: Run, examples: Path) -> None:
    """Exit code 1 and what to try; 2 for what can be no id."""
    done = run("ledger", "show", LEDGER, "99")
    assert (done.code, done.out) == (1, b"")
    assert done.err == "mcp-envelope: the ledger has no line 99; it has lines 0 to 21\n"
    done = run("ledger", "show", LEDGER, "123abc")
    assert (done.code, done.out) == (1, b"")
    assert "no call of this ledger has the id 123abc; mcp-envelope ledger query lists" in done.err
    assert run("ledger", "show", LEDGER, "1234567").code == 1
    assert run("ledger", "show", LEDGER, "12ab").code == 2
    assert run("ledger", "show", "-", "0").code == 2
    assert run("ledger", "show", "absent", "0").code == 2
    assert run("ledger", "show", LEDGER).code == 2


def test_beginnings_of_several(run: Run, examples: Path) -> None:
    """The candidates are listed; exit code 1."""
    write("sqlite:two.db", *call(1, request_id="abcdef-1"), *call(2, request_id="abcdef-2"))
    done = run("ledger", "show", "two.db", "abcdef")
    assert (done.code, done.out) == (1, b"")
    assert "2 calls have ids that begin with abcdef; they are abcdef-1, abcdef-2" in done.err
    assert run("ledger", "show", "two.db", "abcdef-2").code == 0


def test_the_number_of_a_line_counts_before_a_beginning(run: Run, examples: Path) -> None:
    """An id may begin with digits alone."""
    write("sqlite:digits.db", *call(1, request_id="12345678-1"))
    assert run("ledger", "show", "digits.db", "1", "--json").json["request_id"] == "12345678-1"
    assert run("ledger", "show", "digits.db", "12345678").code == 0
