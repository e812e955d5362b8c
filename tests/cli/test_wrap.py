"""``wrap``: any JSON, byte for byte."""

from __future__ import annotations

from pathlib import Path

from .conftest import Run


def test_wrapping_keeps_every_byte(run: Run, examples: Path) -> None:
    """The payload's text stands unchanged in the envelope, and no line end is added."""
    done = run("wrap", "measurement.json")
    payload = (examples / "measurement.json").read_bytes().strip()
    assert (done.code, done.err) == (0, "")
    assert done.out == b'{"schema_version":"mcp.envelope.v0.1","result":' + payload + b"}"


def test_an_envelope_comes_back_byte_for_byte(run: Run, examples: Path) -> None:
    """Line ends and all."""
    data = (examples / "envelope.json").read_bytes()
    assert run("wrap", "envelope.json").out == data
    assert run("wrap", "-", given=b"\r\n" + data + b"\t").out == b"\r\n" + data + b"\t"


def test_json_says_whether_it_was_one(run: Run, examples: Path) -> None:
    """With --json the envelope, and whether it is the one that came in."""
    assert run("wrap", "envelope.json", "--json").json["unchanged"] is True
    done = run("wrap", "-", "--json", given=b"[1e2]")
    assert done.json["unchanged"] is False
    assert done.out == (
        b'{"data":{"schema_version":"mcp.envelope.v0.1","result":[1e2]},"unchanged":false}\n'
    )


def test_what_only_claims_to_be_one_is_refused(run: Run) -> None:
    """Exit code 1, with the place."""
    claim = b'{"schema_version":"mcp.envelope.v0.1","errors":[]}'
    done = run("wrap", "-", given=claim)
    assert (done.code, done.out) == (1, b"")
    assert "this calls itself mcp.envelope.v0.1 but is not valid" in done.err
    assert run("wrap", "-", "--json", given=claim).json["error"]["pointer"] == "/result"
