"""``ledger export``: exact lines, all or nothing, and never over something else."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from tests.cli.ledgers import url_in, write

from mcp_envelope.stores import read_ledger

from .conftest import Run

pytestmark = pytest.mark.usefixtures("state")


def lines_of(url: str) -> list[bytes]:
    """The lines of a ledger, with their newlines."""
    source = read_ledger(url)
    try:
        return list(source.physical())
    finally:
        source.close()


def test_exact_lines(run: Run, tmp_path: Path, kind: str) -> None:
    """What is printed are the bytes that were written, and what is written to a file the same."""
    url = write(url_in(tmp_path, kind), 50)
    done = run("ledger", "export", url)
    assert (done.code, done.err) == (0, "")
    assert done.out == b"".join(lines_of(url))
    out = tmp_path / "out.jsonl"
    done = run("ledger", "export", url, "--out", str(out))
    assert (done.code, done.out) == (0, b"")
    assert f"wrote 103 lines to {out}" in done.err
    assert out.read_bytes() == b"".join(lines_of(url))
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert run("ledger", "verify", str(out)).code == 0


def test_a_part(run: Run, tmp_path: Path, kind: str) -> None:
    """Both ends belong to it; it says that it cannot be verified by itself."""
    url = write(url_in(tmp_path, kind), 5)
    done = run("ledger", "export", url, "--from", "3", "--to", "5")
    assert [json.loads(line)["seq"] for line in done.out.splitlines()] == [3, 4, 5]
    assert "cannot be verified by itself" in done.err
    done = run("ledger", "export", url, "--to", "5")
    assert (len(done.out.splitlines()), done.err) == (6, "")
    assert run("ledger", "verify", "-", given=done.out).code == 0
    assert len(run("ledger", "export", url, "--from", "10").out.splitlines()) == 3


@pytest.mark.parametrize("words", [["--from", "99"], ["--from", "5", "--to", "4"]])
def test_nothing_to_export(run: Run, tmp_path: Path, kind: str, words: list[str]) -> None:
    """No such lines: 1, and no file."""
    url = write(url_in(tmp_path, kind), 5)
    done = run("ledger", "export", url, *words, "--out", str(tmp_path / "out"))
    assert (done.code, done.out) == (1, b"")
    assert "the ledger has lines 0 to 12" in done.err
    assert not (tmp_path / "out").exists()


def test_json_says_what_was_written(run: Run, tmp_path: Path) -> None:
    """With a file; without one the lines themselves are what is printed."""
    url = write(url_in(tmp_path, "sqlite"), 5)
    out = tmp_path / "out"
    words = ["ledger", "export", url, "--from", "2", "--json"]
    found = run(*words, "--out", str(out)).json
    notes = found.pop("notes")
    assert found == {
        "ledger": url,
        "out": str(out),
        "first": 2,
        "last": 12,
        "lines": 11,
        "bytes": out.stat().st_size,
    }
    assert len(notes) == 1
    done = run(*words)
    assert done.code == 2
    assert "with --out it says" in done.json["error"]["hint"]


def test_a_file_is_not_overwritten(run: Run, tmp_path: Path) -> None:
    """Unless that is asked for; and a folder never is."""
    url = write(url_in(tmp_path, "jsonl"), 1)
    out = tmp_path / "out"
    out.write_text("mine")
    words = ["ledger", "export", url, "--out"]
    done = run(*words, str(out))
    assert done.code == 2
    assert "is there already; name another file, or use --force" in done.err
    assert out.read_text() == "mine"
    assert run(*words, str(out), "--force").code == 0
    assert out.read_bytes() == b"".join(lines_of(url))
    for name in ("", str(tmp_path), str(tmp_path / "absent" / "out")):
        assert run(*words, name, "--force").code == 2
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert run(*words, str(tmp_path / "link")).code == 2
    assert run(*words, "/dev/null").code == 0
    if Path("/dev/full").exists():
        done = run(*words, "/dev/full")
        assert (done.code, done.err) == (3, "mcp-envelope: /dev/full: No space left on device\n")
    assert sorted(one.name for one in tmp_path.iterdir() if one.name.startswith(".")) == []


def test_all_or_nothing(run: Run, tmp_path: Path) -> None:
    """Where the ledger cannot be read to its end there is no file."""
    url = write(url_in(tmp_path, "sqlite"), 200)
    path = tmp_path / "calls.db"
    data = bytearray(path.read_bytes())
    at = data.index(b'"call-150"') // 4096 * 4096
    data[at : at + 8] = b"\xff" * 8
    path.write_bytes(data)
    done = run("ledger", "export", url, "--out", str(tmp_path / "out"))
    assert done.code == 3
    assert "calls.db cannot be read from line " in done.err
    assert sorted(one.name for one in tmp_path.iterdir() if "out" in one.name) == []


def test_torn_tails_are_exported_as_they_lie(run: Run, tmp_path: Path) -> None:
    """The line that tells of them would be wrong without them; what is not finished stays out."""
    url = write(url_in(tmp_path, "jsonl"), 1)
    path = tmp_path / "calls.jsonl"
    for tail in (b'{"v":1,"eve', b"x" * 200_000):
        with path.open("ab") as file:
            file.write(tail)
        write(url, 1, begin=10)
    with path.open("ab") as file:
        file.write(b'{"v":1,')
    done = run("ledger", "export", url)
    assert done.out == path.read_bytes()[:-7]
    assert "left out 7 bytes at the end" in done.err
    (tmp_path / "copy").write_bytes(done.out)
    found = run("ledger", "verify", str(tmp_path / "copy"), "--json").json["ledgers"][0]
    assert (found["holds"], found["torn_count"]) == (True, 2)


def test_numbers_of_lines(run: Run, tmp_path: Path) -> None:
    """Anything else is a mistake."""
    url = write(url_in(tmp_path, "jsonl"), 1)
    for word in ("", "x", "1.5", "-1", "9" * 30):
        done = run("ledger", "export", url, f"--from={word}")
        assert done.code == 2
        assert "must be the number of a line" in done.err
