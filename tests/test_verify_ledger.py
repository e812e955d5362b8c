"""The verifier in one file: what it is made of, and what it says of real files, as a program."""

from __future__ import annotations

import ast
import base64
import json
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.core.ledgers import OURS, Book

from mcp_envelope.core.merkle import complete_root, inclusion_proof, leaf_hash
from mcp_envelope.core.notes import base64_of
from mcp_envelope.core.signing import Signer

#: Many processes, or much work: run by tools/ci.py.
pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "src" / "mcp_envelope" / "verify_ledger.py"
EXAMPLES = ROOT / "examples"
KEY = (EXAMPLES / "calls.pub").read_text(encoding="utf-8").strip()
OTHER = str(Signer("example", bytes(32)).key)
LINES = (EXAMPLES / "calls.jsonl").read_bytes().splitlines(keepends=True)
KEPT = str(EXAMPLES / "calls.checkpoint")


def run(*words: str, python: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run the file as a program, alone: nothing of ours can be imported."""
    command = [sys.executable, "-I", *python] if python else [sys.executable, "-I", str(FILE)]
    return subprocess.run([*command, *words], capture_output=True, text=True, check=False)


def verdict(path: Path, *words: str) -> dict[str, Any]:
    """What it says as JSON, with its exit code."""
    done = run(str(path), "--json", *words)
    assert done.stderr == ""
    said: dict[str, Any] = json.loads(done.stdout)
    return {**said, "code": done.returncode}


def written(tmp_path: Path, lines: Sequence[bytes]) -> Path:
    """A file of these lines."""
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b"".join(lines))
    return path


def subtree(level: int, index: int) -> bytes:
    """The hash of a complete subtree over the lines of the example."""
    lines = LINES[index << level : (index + 1) << level]
    return complete_root([leaf_hash(line[:-1]) for line in lines])


def proof_of(seq: int) -> str:
    """A proof that a line is in the tree of the example's last checkpoint."""
    size = len(LINES) - 1
    hashes = "".join(f"{base64_of(one)}\n" for one in inclusion_proof(seq, size, subtree))
    note = Path(KEPT).read_text(encoding="utf-8")
    return f"c2sp.org/tlog-proof@v1\nindex {seq}\n{hashes}\n{note}"


def test_an_auditor_can_read_it() -> None:
    """It is below 300 lines, and each function says in its first sentence what it shows."""
    text = FILE.read_text(encoding="utf-8")
    assert text.count("\n") < 300
    nodes = [one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.FunctionDef)]
    assert all(ast.get_docstring(one) for one in nodes if one.name != "__init__")
    assert len(nodes) > 12


def test_it_stands_alone() -> None:
    """It imports the standard library and cryptography, nothing of ours, on Python 3.9 too."""
    tree = ast.parse(FILE.read_text(encoding="utf-8"), feature_version=(3, 9))
    names = [a.name for one in ast.walk(tree) if isinstance(one, ast.Import) for a in one.names]
    froms = [one for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)]
    assert all(one.level == 0 for one in froms)
    tops = {name.split(".")[0] for name in [*names, *(str(one.module) for one in froms)]}
    assert tops - set(sys.stdlib_module_names) == {"cryptography"}
    assert "mcp_envelope" not in FILE.read_text(encoding="utf-8")


def test_a_good_ledger_holds() -> None:
    """Lines, checkpoints and calls without an end are counted, signatures checked by the key."""
    said = verdict(EXAMPLES / "calls.jsonl", "--key", KEY, "--checkpoint", KEPT)
    assert said == {
        "verdict": "holds",
        "signatures": "checked",
        "lines": 22,
        "removed": "none",
        "checkpoints": 2,
        "covered": "0 to 21",
        "behind": 0,
        "dangling": 1,
        "torn": 0,
        "strays": 0,
        "calls": ["11 '937f63e3-6cfe-48e2-855f-292201beff4c'"],
        "code": 0,
    }
    assert verdict(EXAMPLES / "calls.jsonl", "--key", str(EXAMPLES / "calls.pub"))["code"] == 0
    assert verdict(EXAMPLES / "calls.jsonl", "--strict")["code"] == 1


def test_without_a_key_it_says_so() -> None:
    """A signature that nobody vouches for is checked, and said to prove nothing."""
    done = run(str(EXAMPLES / "calls.jsonl"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "signatures: unchecked: nobody vouches for a key" in done.stdout


FORGED = LINES[5].replace(LINES[5].partition(b'"prev":"')[2][:64], b"ab" * 32)
DAMAGE = {
    "dropped": (LINES[:5] + LINES[6:], "missing", 5),
    "doubled": ([*LINES[:6], *LINES[5:]], "duplicate", 5),
    "swapped": ([*LINES[:5], LINES[6], LINES[5], *LINES[7:]], "reordered", 5),
    "put in": ([*LINES[:5], FORGED, *LINES[5:]], "inserted", 5),
    "changed": ([*LINES[:5], LINES[5].replace(b"agent-7", b"agent-8"), *LINES[6:]], "altered", 5),
    "no line": ([*LINES[:5], b"{}\n", *LINES[5:]], "unreadable", 5),
    "no JSON": ([*LINES[:5], LINES[5][:-3] + b"x}\n", *LINES[6:]], "unreadable", 5),
    "changed checkpoint": ([*LINES[:-1], LINES[-1].replace(b"T10", b"T11")], "altered", 21),
    "other spelling": ([*LINES[:-1], LINES[-1].replace(b"OwU=", b"OwV=")], "altered", 21),
    "other signature": ([*LINES[:-1], LINES[-1].replace(b"OwU=", b"OwY=")], "signature", 21),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_named(name: str, tmp_path: Path) -> None:
    """The kind and the line, and exit code 1, whatever else is known."""
    lines, kind, seq = DAMAGE[name]
    path = written(tmp_path, lines)
    for words in ((), ("--key", KEY)):
        said = verdict(path, *words)
        assert (said["verdict"], said["kind"], said["line"]) == ("DOES NOT HOLD", kind, seq)
        assert said["code"] == 1


def test_a_tree_that_does_not_fit_is_named(tmp_path: Path) -> None:
    """Chain and signatures are right, and yet the root is not that of the lines."""
    book = Book()
    book.call()
    book.tree.nodes[-1] = bytes(32)
    book.seal()
    said = verdict(written(tmp_path, [book.data]))
    assert (said["kind"], said["line"]) == ("root", 2)


def test_a_copy_from_outside_shows_what_is_gone_or_other(tmp_path: Path) -> None:
    """Cut lines are `truncated`, another history is `fork`: both need a kept checkpoint."""
    path = written(tmp_path, LINES[:13])
    assert verdict(path, "--key", KEY)["code"] == 0
    said = verdict(path, "--key", KEY, "--checkpoint", KEPT)
    assert (said["kind"], said["line"], said["code"]) == ("truncated", 13, 1)
    book = Book()
    book.call()
    book.seal()
    said = verdict(written(tmp_path, [book.data]), "--checkpoint", KEPT)
    assert (said["kind"], said["line"]) == ("fork", 0)


def test_keys_decide(tmp_path: Path) -> None:
    """By another key all is unsigned; a checkpoint from outside has to be signed as well."""
    said = verdict(EXAMPLES / "calls.jsonl", "--key", OTHER)
    assert (said["kind"], said["line"], said["code"]) == ("unsigned", 12, 1)
    forged = tmp_path / "kept"
    forged.write_text(Path(KEPT).read_text(encoding="utf-8").replace("OwU=", "OwA="), "utf-8")
    assert verdict(EXAMPLES / "calls.jsonl", "--checkpoint", str(forged))["code"] == 0
    said = verdict(EXAMPLES / "calls.jsonl", "--key", KEY, "--checkpoint", str(forged))
    assert (said["kind"], said["line"]) == ("signature", 21)


def test_torn_tails_are_remarks(tmp_path: Path) -> None:
    """What was torn and declared, or stands unfinished at the end, holds, but not strictly."""
    book = Book()
    book.call()
    book.tear(100)
    book.call()
    book.seal()
    book.tear(10)
    path = written(tmp_path, [book.data])
    said = verdict(path)
    assert (said["verdict"], said["torn"], said["code"]) == ("holds", 2, 0)
    assert verdict(path, "--strict")["code"] == 1


def test_a_ledger_may_begin_later(tmp_path: Path) -> None:
    """Removed lines are taken from the remark on them, and the roots show that it is right."""
    book = Book(every=101)
    book.start()
    for _ in range(150):
        book.call()
    book.remove(256)
    book.call()
    book.seal()
    path = written(tmp_path, [book.data])
    said = verdict(path, "--key", str(OURS.key))
    assert (said["verdict"], said["lines"]) == ("holds", book.seq - 256)
    assert said["removed"] == "0 to 255"
    assert said["covered"] == f"256 to {book.seq - 1}"
    assert (said["strays"], book.texts[0].count(b'"event":"settled"')) == (0, 1)
    changed = book.data.replace(b"removed: lines", b"removeD: lines")
    said = verdict(written(tmp_path, [changed]))
    assert (said["kind"], said["line"]) == ("missing", 0)


def test_lines_behind_the_last_checkpoint_are_counted(tmp_path: Path) -> None:
    """Nothing but the chain holds them, and the last one nothing: strictly that is not enough."""
    for lines, covered, behind in ((LINES[:15], "0 to 12", 2), (LINES[:5], "none", 5)):
        path = written(tmp_path, lines)
        said = verdict(path)
        assert (said["covered"], said["behind"], said["code"]) == (covered, behind, 0)
    book = Book()
    book.call()
    path = written(tmp_path, [book.data])
    assert verdict(path, "--strict")["code"] == 1
    book.seal()
    path = written(tmp_path, [book.data])
    assert verdict(path, "--strict")["code"] == 0


def test_an_empty_file_is_unsigned(tmp_path: Path) -> None:
    """Where a key is given; without one nothing is checked, and nothing is covered."""
    path = written(tmp_path, [])
    said = verdict(path, "--key", KEY)
    assert (said["kind"], said["line"], said["code"]) == ("unsigned", 0, 1)
    said = verdict(path)
    assert (said["lines"], said["covered"], said["code"]) == (0, "none", 0)


def test_a_proof_is_for_the_line_with_its_number(tmp_path: Path) -> None:
    """Whoever shows line 2 and says that it is another one is not believed."""
    line, proof = tmp_path / "line", tmp_path / "proof"
    for seq, index in ((2, 3), (2, 1_000), (20, 21), (20, 22), (20, 1_000)):
        line.write_bytes(LINES[seq])
        proof.write_text(proof_of(seq).replace(f"index {seq}\n", f"index {index}\n"), "utf-8")
        done = run("--proof", str(proof), "--line", str(line), "--key", KEY)
        assert (done.returncode, f"kind: root\nline: {index}\n" in done.stdout) == (1, True)


def test_mistakes_name_the_file_and_what_is_wrong(tmp_path: Path) -> None:
    """So that nobody has to guess which of several it is."""
    good, bad = str(EXAMPLES / "calls.jsonl"), tmp_path / "bad"
    for data in (b"", b"\xff\xfe", b"text"):
        bad.write_bytes(data)
        done = run(good, "--key", KEY, "--key", str(bad))
        assert f"error: {bad} is no public key" in done.stderr
        done = run(good, "--checkpoint", KEPT, "--checkpoint", str(bad))
        assert f"error: {bad} is no checkpoint" in done.stderr
    bad.write_bytes(b"SQLite format 3\0" + bytes(100))
    done = run(str(bad))
    assert f"error: {bad} is a database: ask for an export of it" in done.stderr
    assert run(good, "--key", KEPT, "--checkpoint", KEPT).returncode == 2


def test_a_proof_shows_that_a_line_is_there(tmp_path: Path) -> None:
    """A C2SP tlog-proof holds for its line, and for no other, by the key and no other."""
    line, proof = tmp_path / "line", tmp_path / "proof"
    for seq in range(len(LINES) - 1):
        line.write_bytes(LINES[seq][:-1])
        proof.write_text(proof_of(seq), "utf-8")
        if seq % 5 == 0:
            done = run("--proof", str(proof), "--line", str(line), "--key", KEY)
            assert (done.returncode, done.stdout) == (0, "verdict: holds\nsignatures: checked\n")
    proof.write_text(proof_of(20).replace("\nindex", "\nextra YWJj\nindex"), "utf-8")
    assert run("--proof", str(proof), "--line", str(line)).returncode == 0
    done = run("--proof", str(proof), "--line", str(line), "--key", OTHER)
    assert "kind: signature\nline: 20" in done.stdout
    line.write_bytes(LINES[3])
    done = run("--proof", str(proof), "--line", str(line), "--key", KEY)
    assert (done.returncode, "kind: root\nline: 20" in done.stdout) == (1, True)
    proof.write_text("no proof", "utf-8")
    assert run("--proof", str(proof), "--line", str(line)).returncode == 1


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("absent.jsonl",),
        (str(EXAMPLES / "calls.jsonl"), "--key", "nonsense"),
        (str(EXAMPLES / "calls.jsonl"), "--key", KEY.replace("AWyq", "AWya")),
        (str(EXAMPLES / "calls.jsonl"), "--checkpoint", "absent"),
        (str(EXAMPLES / "calls.jsonl"), "--checkpoint", str(EXAMPLES / "calls.jsonl")),
        (str(EXAMPLES / "calls.jsonl"), "--proof", "x", "--line", "y"),
        ("--proof", "x"),
    ],
)
def test_mistakes_are_said_without_a_traceback(words: tuple[str, ...]) -> None:
    """One line below the usage, and exit code 2."""
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr


def test_without_cryptography_the_rest_is_checked(tmp_path: Path) -> None:
    """It says that signatures are unchecked, and ends with 3 where a key was to be used."""
    program = f"""
import runpy, sys

sys.modules["cryptography"] = None
sys.argv = [{str(FILE)!r}, *sys.argv[1:]]
runpy.run_path({str(FILE)!r}, run_name="__main__")
"""
    alone = ("-c", program)
    good = str(EXAMPLES / "calls.jsonl")
    assert run(good, python=alone).returncode == 0
    done = run(good, "--key", KEY, "--checkpoint", KEPT, python=alone)
    assert done.returncode == 3
    assert "signatures: unchecked: there is no `cryptography` here" in done.stdout
    bad = written(tmp_path, LINES[:5] + LINES[6:])
    assert run(str(bad), "--key", KEY, python=alone).returncode == 1


def test_the_example_key_is_the_one_of_its_id() -> None:
    """The id in a vkey is made as C2SP's signed-note says; nothing of ours is needed for it."""
    name, hint, key = KEY.split("+", 2)
    assert sha256(f"{name}\n".encode() + base64.b64decode(key)).hexdigest()[:8] == hint


@pytest.mark.parametrize("tree", ["", " " + "A" * 43 + "=" + (" " + "A" * 43 + "=") * 2])
def test_a_remark_on_removed_lines_may_be_nonsense(tree: str, tmp_path: Path) -> None:
    """With too few hashes, or too many, it is none: nothing breaks, the lines are missing."""
    book = Book(every=100)
    for _ in range(150):
        book.call()
    book.remove(256)
    right = str(book.removed)
    changed = book.data.replace(
        right.encode(), (right.partition(", tree")[0] + ", tree" + tree).encode()
    )
    said = verdict(written(tmp_path, [changed]))
    assert (said["kind"], said["line"], said["code"]) == ("missing", 0, 1)


@pytest.mark.parametrize("other", [b"null", b"{}", b'"text"', b"[1]", b"[null]", b"7"])
def test_warnings_are_a_list_of_texts(other: bytes, tmp_path: Path) -> None:
    """A line with anything else there is none."""
    changed = LINES[5].replace(b'"warnings":[]', b'"warnings":' + other)
    said = verdict(written(tmp_path, [*LINES[:5], changed, *LINES[6:]]))
    assert (said["kind"], said["line"]) == ("unreadable", 5)
