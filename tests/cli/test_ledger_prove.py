"""``ledger prove``: proofs that stand alone, and the check of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.ledgers import key_of, url_in, write

from mcp_envelope.core.proofs import Inclusion
from mcp_envelope.gateway import keys

from .conftest import Run

pytestmark = pytest.mark.usefixtures("state")


def proven(run: Run, url: str, *words: str) -> dict[str, object]:
    """What is proven, with ``--json``."""
    done = run("ledger", "prove", url, *words, "--json")
    assert done.code == 0, done.out
    found: dict[str, object] = done.json
    return found


@pytest.mark.parametrize("seq", [0, 1, 7, 255, 256, 511, 600])
def test_a_line_by_its_number(run: Run, tmp_path: Path, kind: str, seq: int) -> None:
    """The proof is right for that line, and checked by the verb itself."""
    url = write(url_in(tmp_path, kind), 310)
    proof, line = tmp_path / "proof", tmp_path / "line"
    done = run("ledger", "prove", url, str(seq), "--out", str(proof), "--line-out", str(line))
    assert (done.code, done.out) == (0, b"")
    assert json.loads(line.read_bytes())["seq"] == seq
    assert Inclusion.parse(proof.read_bytes()).is_of(line.read_bytes())
    pub = str(keys.key_path().with_suffix(".pub"))
    check = ["ledger", "prove", "--check", str(proof), "--line", str(line), "--key", pub]
    done = run(*check)
    assert done.code == 0
    assert done.out.startswith(f"holds: this line is number {seq} of mcp-envelope/".encode())
    found = run(*check, "--json").json
    assert (found["holds"], found["checked"], found["seq"]) == (True, True, seq)
    assert len(found["signed_by"]) == 1
    line.write_bytes(line.read_bytes() + b"\n")
    assert run(*check).code == 0
    line.write_bytes(line.read_bytes().replace(b"2026", b"2025"))
    done = run(*check)
    assert done.code == 1
    assert done.out.startswith(b"does not hold: this line is not number")


def test_a_call_by_its_id(run: Run, tmp_path: Path, kind: str) -> None:
    """Its end, unless another line of it is asked for."""
    url = write(url_in(tmp_path, kind), 12, dangling=1)
    assert proven(run, url, "call-3")["event"] == "settled"
    assert proven(run, url, "call-3", "--event", "admitted")["seq"] == 7
    done = run("ledger", "prove", url, "call-11")
    assert done.code == 0
    assert "its outcome is unknown" in done.err
    assert proven(run, url, "call-11")["event"] == "admitted"


def test_with_the_search_index(run: Run, tmp_path: Path, kind: str) -> None:
    """Where there is one it is used, and the same lines are found, also those that are new."""
    url = write(url_in(tmp_path, kind), 30)
    plain = [run("ledger", "prove", url, name).out for name in ("call-12", "call-29")]
    assert run("ledger", "query", url).code == 0
    assert list(tmp_path.glob("calls.*.index"))
    assert [run("ledger", "prove", url, name).out for name in ("call-12", "call-29")] == plain
    write(url, 3, begin=30)
    assert proven(run, url, "call-32")["event"] == "settled"
    assert run("ledger", "prove", url, "call-99").code == 1
    assert "several calls" in run("ledger", "prove", url, "call-").err


@pytest.mark.parametrize(
    "words,code,why",
    [
        (["call-"], 1, "several calls begin with 'call-'"),
        (["call-1"], 1, "call-1, call-10"),
        (["nothing"], 1, "no line and no call 'nothing': the ledger has lines 0 to 26"),
        (["99"], 1, "no line and no call '99'"),
        (["3", "--event", "admitted"], 1, "line 3 is admitted"),
        (["call-5", "--event", "refused"], 1, "it has admitted, settled"),
        (['a"b'], 2, "no call has the id"),
        ([""], 2, "no call has the id"),
        ([], 2, "a ledger and an ID are needed"),
        (["3", "--key", "x"], 2, "go with --check"),
        (["26"], 1, "line 26 is the newest checkpoint"),
    ],
)
def test_what_cannot_be_proven(
    run: Run, tmp_path: Path, words: list[str], code: int, why: str
) -> None:
    """It says which line was meant, or that none was."""
    url = write(url_in(tmp_path, "sqlite"), 12)
    if words == ["3", "--event", "admitted"]:
        words = ["3", "--event", "settled"]
    done = run("ledger", "prove", url, *words)
    assert (done.code, done.out) == (code, b"")
    assert why in done.err


def test_a_line_that_no_checkpoint_covers_yet(run: Run, tmp_path: Path, kind: str) -> None:
    """One is made, if that may be; else it says so."""
    url = write(url_in(tmp_path, kind), 3, seal=False)
    done = run("ledger", "prove", url, "4", "--read-only")
    assert (done.code, done.out) == (1, b"")
    assert "no checkpoint covers line 4 yet: --read-only was given" in done.err
    done = run("ledger", "prove", url, "4")
    assert done.code == 0
    assert "wrote this checkpoint" in done.err
    assert run("ledger", "verify", url).code == 0


def test_no_checkpoint_is_made_without_need(run: Run, tmp_path: Path) -> None:
    """Where one covers the line already, later lines do not matter."""
    url = write(url_in(tmp_path, "sqlite"), 3)
    write(url, 3, seal=False, begin=3)
    assert proven(run, url, "4")["size"] == 8
    assert proven(run, url, "8")["size"] == 17


def test_a_changed_ledger_proves_nothing(run: Run, tmp_path: Path) -> None:
    """The line is not the one that was signed."""
    url = write(url_in(tmp_path, "jsonl"), 5)
    path = tmp_path / "calls.jsonl"
    path.write_bytes(path.read_bytes().replace(b"call-2", b"call-7"))
    done = run("ledger", "prove", url, "5")
    assert done.code == 1
    assert "line 5 is not the one that was signed" in done.err


def test_the_json(run: Run, tmp_path: Path) -> None:
    """Line, proof and its parts."""
    url = write(url_in(tmp_path, "sqlite"), 5)
    found = proven(run, url, "4")
    assert json.loads(str(found["line"]))["seq"] == 4
    proof = Inclusion.parse(str(found["proof"]))
    assert proof.is_of(str(found["line"]).encode())
    assert found["hashes"] == str(proof).splitlines()[2 : 2 + len(proof.hashes)]
    assert run("ledger", "prove", url, "4").out == str(found["proof"]).encode()


def test_the_check_of_a_proof(run: Run, tmp_path: Path) -> None:
    """Unchecked without a key; wrong with another; wrong where a byte of the note is changed."""
    url = write(url_in(tmp_path, "jsonl"), 5, signers=[key_of("mine")])
    proof, line = tmp_path / "proof", tmp_path / "line"
    run("ledger", "prove", url, "4", "--out", str(proof), "--line-out", str(line))
    words = ["ledger", "prove", "--check", str(proof), "--line", str(line)]
    done = run(*words)
    assert done.code == 0
    assert b"signatures unchecked: no trusted key given" in done.out
    assert run(*words, "--json").json["checked"] is False
    done = run(*words, "--key", str(key_of("yours").key))
    assert done.code == 1
    assert b"signed by none of the keys" in done.out
    proof.write_text(proof.read_text().replace("line sha256:", "line sha256:0", 1))
    done = run(*words, "--key", str(key_of("mine").key), "--json")
    assert (done.code, done.json["holds"]) == (1, False)
    assert "is wrong" in done.json["why"]


def test_mistakes_with_check(run: Run, tmp_path: Path) -> None:
    """What is no proof, what is not there, what does not go together."""
    (tmp_path / "line").write_text("{}")
    words = ["ledger", "prove", "--check"]
    assert run(*words, str(tmp_path / "line")).code == 2
    assert run(*words, "absent", "--line", str(tmp_path / "line")).code == 2
    done = run(*words, str(tmp_path / "line"), "--line", str(tmp_path / "line"))
    assert done.code == 2
    assert "this is no inclusion proof" in done.err
    done = run("ledger", "prove", "x.db", "--check", "a", "--line", "b")
    assert done.code == 2
