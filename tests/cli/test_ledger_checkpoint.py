"""``ledger checkpoint``: the newest one, made where it is missing, and what it grew from."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.ledgers import key_of, url_in, write

from mcp_envelope.core.notes import Checkpoint, Note
from mcp_envelope.core.ports import Ledger
from mcp_envelope.core.proofs import Consistency
from mcp_envelope.core.signing import is_signed_by
from mcp_envelope.gateway import keys
from mcp_envelope.stores import open_ledger, read_ledger

from .conftest import Run

pytestmark = pytest.mark.usefixtures("state")


@pytest.fixture
def taken() -> Iterator[list[Ledger]]:
    """Ledgers that somebody else writes; closed at the end."""
    ledgers: list[Ledger] = []
    yield ledgers
    for one in ledgers:
        asyncio.run(one.close())


def count(url: str) -> int:
    """How many lines a ledger has."""
    source = read_ledger(url)
    try:
        return source.bounds()[1]
    finally:
        source.close()


def test_the_newest_one(run: Run, tmp_path: Path, kind: str) -> None:
    """Its exact text, signed; nothing is written where nothing is missing."""
    url = write(url_in(tmp_path, kind), 3)
    done = run("ledger", "checkpoint", url)
    note = Note.parse(done.out)
    assert (done.code, done.err) == (0, "")
    assert Checkpoint.parse(note.text).size == 8
    assert is_signed_by(note, keys.signers()[0][0].key)
    assert count(url) == 9


def test_one_is_made_where_it_is_missing(run: Run, tmp_path: Path, kind: str) -> None:
    """If nobody else writes the ledger; not twice."""
    url = write(url_in(tmp_path, kind), 3, seal=False)
    done = run("ledger", "checkpoint", url)
    assert done.code == 0
    assert "wrote this checkpoint" in done.err
    assert count(url) == 9
    assert run("ledger", "checkpoint", url).out == done.out
    assert count(url) == 9
    assert run("ledger", "verify", url).code == 0


def test_read_only(run: Run, tmp_path: Path, kind: str) -> None:
    """Nothing is written; how many lines are behind it is said, and if there is none that."""
    url = write(url_in(tmp_path, kind), 3, seal=False)
    done = run("ledger", "checkpoint", url, "--read-only")
    assert (done.code, done.out) == (1, b"")
    assert "the ledger has no checkpoint: --read-only was given" in done.err
    run("ledger", "checkpoint", url)
    write(url, 3, seal=False, begin=3)
    done = run("ledger", "checkpoint", url, "--read-only")
    assert done.code == 0
    assert Checkpoint.parse(Note.parse(done.out).text).size == 8
    assert "8 lines stand behind it" in done.err
    assert count(url) == 17


def test_a_gateway_holds_it(run: Run, tmp_path: Path, kind: str, taken: list[Ledger]) -> None:
    """Then the newest one that is there is printed, and who will write the next."""
    url = write(url_in(tmp_path, kind), 3)
    write(url, 3, seal=False, begin=3)
    taken.append(open_ledger(url))
    done = run("ledger", "checkpoint", url)
    assert done.code == 0
    assert Checkpoint.parse(Note.parse(done.out).text).size == 8
    assert "8 lines stand behind it: " in done.err
    assert "is being written by process" in done.err
    found = run("ledger", "checkpoint", url, "--json").json
    assert (found["written"], found["behind"]) == (False, 8)
    assert "is being written" in found["why_behind"]


def test_the_ledger_of_others_is_left_alone(run: Run, tmp_path: Path, kind: str) -> None:
    """An auditor's machine has a key too, which does not belong into what it looks at."""
    other = key_of("other")
    url = write(url_in(tmp_path, kind), 3, signers=[other])
    write(url, 3, seal=False, begin=3)
    keys.signers()
    done = run("ledger", "checkpoint", url)
    assert done.code == 0
    assert "other signs this ledger, and this machine has no such key" in done.err
    assert count(url) == 17
    path = tmp_path / "other.key"
    path.write_text(other.secret_text())
    path.chmod(0o600)
    done = run("ledger", "checkpoint", url, "--key-file", str(path))
    assert is_signed_by(Note.parse(done.out), other.key)
    assert count(url) == 18
    assert run("ledger", "checkpoint", url, "--key-file", "absent").code == 0


def test_a_key_file_that_is_not_there(run: Run, tmp_path: Path) -> None:
    """It is not made by naming it."""
    url = write(url_in(tmp_path, "jsonl"), 1, seal=False)
    done = run("ledger", "checkpoint", url, "--key-file", str(tmp_path / "absent.key"))
    assert done.code == 2
    assert not (tmp_path / "absent.key").exists()


def test_a_key_is_made_and_said(run: Run, tmp_path: Path) -> None:
    """Where the machine has none and the ledger no checkpoint."""
    url = write(url_in(tmp_path, "jsonl"), 1, seal=False, signers=[key_of("x")])
    done = run("ledger", "checkpoint", url)
    assert done.code == 0
    assert f"made a key to sign with: {keys.key_path()}" in done.err


def test_an_empty_ledger(run: Run, tmp_path: Path, kind: str, taken: list[Ledger]) -> None:
    """There is nothing to say of it."""
    url = url_in(tmp_path, kind)
    taken.append(open_ledger(url))
    done = run("ledger", "checkpoint", url)
    assert (done.code, done.out) == (1, b"")
    assert "has no line" in done.err


def test_into_a_file(run: Run, tmp_path: Path) -> None:
    """The same text; a checkpoint that was kept is not overwritten by chance."""
    url = write(url_in(tmp_path, "jsonl"), 1)
    out = tmp_path / "kept"
    assert run("ledger", "checkpoint", url, "--out", str(out)).out == b""
    assert out.read_bytes() == run("ledger", "checkpoint", url).out
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert run("ledger", "checkpoint", url, "--out", str(out)).code == 2
    assert run("ledger", "checkpoint", url, "--out", str(out), "--force").code == 0


def test_it_only_grew(run: Run, tmp_path: Path, kind: str) -> None:
    """A proof from an older checkpoint to the newest, verified before it is printed."""
    url = write(url_in(tmp_path, kind), 3)
    kept = tmp_path / "kept"
    run("ledger", "checkpoint", url, "--out", str(kept))
    write(url, 300, begin=3)
    done = run("ledger", "checkpoint", url, "--since", str(kept))
    old = Checkpoint.parse(Note.parse(kept.read_bytes()).text)
    proof = Consistency.parse(done.out)
    assert (done.code, proof.old) == (0, 8)
    assert proof.is_from(old.root)
    assert str(proof.note).encode() == run("ledger", "checkpoint", url).out
    found = run("ledger", "checkpoint", url, "--since", str(kept), "--json").json
    assert (found["consistency"]["old"], found["size"]) == (8, 611)
    assert len(found["consistency"]["hashes"]) == len(proof.hashes)
    out = tmp_path / "proof"
    said = run("ledger", "checkpoint", url, "--since", str(kept), "--out", str(out))
    assert said.out == b"holds: the ledger only grew from 8 lines to 611\n"
    assert out.read_bytes() == done.out


def test_it_did_not_only_grow(run: Run, tmp_path: Path, kind: str) -> None:
    """Another ledger, and an older copy of this one: 1, and why."""
    one = write(url_in(tmp_path, kind, "one"), 3)
    two = write(url_in(tmp_path, kind, "two"), 9)
    kept = tmp_path / "kept"
    run("ledger", "checkpoint", two, "--out", str(kept))
    done = run("ledger", "checkpoint", one, "--since", str(kept))
    assert (done.code, done.out) == (1, b"")
    assert "of another ledger" in done.err
    path = Path(one.partition(":")[2])
    old = path.read_bytes()
    write(one, 3, begin=3)
    run("ledger", "checkpoint", one, "--out", str(kept), "--force")
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    path.write_bytes(old)
    done = run("ledger", "checkpoint", one, "--since", str(kept), "--json")
    assert done.code == 1
    assert "this ledger's newest one only" in done.json["error"]["message"]
    assert "code" not in done.json["error"]


@pytest.mark.parametrize("text", [b"", b"x", b"\xff", b"a\n\n\xe2\x80\x94 a AAAAAAAA\n"])
def test_what_is_no_checkpoint(run: Run, tmp_path: Path, text: bytes) -> None:
    """A mistake of the command line."""
    url = write(url_in(tmp_path, "jsonl"), 1)
    (tmp_path / "kept").write_bytes(text)
    assert run("ledger", "checkpoint", url, "--since", str(tmp_path / "kept")).code == 2


def test_one_checkpoint_at_a_time(run: Run, tmp_path: Path) -> None:
    """A proof has one beginning."""
    url = write(url_in(tmp_path, "jsonl"), 1)
    (tmp_path / "kept").write_bytes(run("ledger", "checkpoint", url).out * 2)
    done = run("ledger", "checkpoint", url, "--since", str(tmp_path / "kept"))
    assert done.code == 2
    assert "holds 2 checkpoints" in done.err
