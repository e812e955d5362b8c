"""Notes, keys and trees are those that the Go project reads and writes (golang.org/x/mod/sumdb).

`note_check.go` asks its packages `note` and `tlog`, where signed notes and their tiles come from.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.core.ledgers import NEXT, OURS, THEIRS, Book

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.merkle import (
    complete_root,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    range_hash,
)
from mcp_envelope.core.notes import Note
from mcp_envelope.core.signing import is_signed_by

SOURCE = Path(__file__).resolve().parent / "note_check.go"
SIZE = 70

pytestmark = [pytest.mark.peers, pytest.mark.requires("go"), pytest.mark.xdist_group("go")]

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Ask Go; the packages are those of Debian, so that no network is needed."""
    folder = tmp_path_factory.mktemp("go")
    around = {
        **os.environ,
        "GO111MODULE": "off",
        "GOPATH": "/usr/share/gocode",
        "GOFLAGS": "",
        "GOCACHE": str(folder / "cache"),
        "GOTOOLCHAIN": "local",
        "CGO_ENABLED": "0",
    }
    program = folder / "note_check"
    subprocess.run(["go", "build", "-o", str(program), str(SOURCE)], env=around, check=True)
    with subprocess.Popen(
        [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def asked(do: str, **more: Any) -> dict[str, Any]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps({"Do": do, **more}) + "\n")
            process.stdin.flush()
            said: dict[str, Any] = json.loads(process.stdout.readline())
            return said

        yield asked
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture(scope="module")
def book() -> Book:
    """A ledger with checkpoints, one of them signed by two keys."""
    book = Book(every=9)
    while book.seq < SIZE // 2:
        book.call()
    book.seal(signers=(NEXT, OURS))
    while book.seq < SIZE:
        book.call()
    return book


def text_of(data: bytes) -> str:
    """Bytes as Go's JSON has them."""
    return base64.b64encode(data).decode()


def test_go_opens_our_notes(ask: Ask, book: Book) -> None:
    """Every checkpoint opens with our public key, also in its text form, and has our text."""
    for note in book.seals.values():
        said = ask("open", Keys=[str(OURS.key)], Note=str(note))
        assert said["Error"] == ""
        assert said["Text"] == note.text
        assert said["Names"] == [OURS.key.name]
        unknown = [one for one in note.signatures if not one.is_by(OURS.key)]
        assert len(said["Unknown"] or []) == len(unknown)


def test_go_sees_both_signatures_of_a_rotation(ask: Ask, book: Book) -> None:
    """With both keys a note that was signed by both has two good signatures."""
    note = next(one for one in book.seals.values() if len(one.signatures) == 2)
    said = ask("open", Keys=[str(OURS.key), str(NEXT.key)], Note=str(note))
    assert (said["Error"], len(said["Names"]), said["Unknown"]) == ("", 2, None)


def test_go_refuses_what_was_changed(ask: Ask, book: Book) -> None:
    """Another text, another signature, another key: none opens."""
    whole = str(book.kept)
    key = str(OURS.key)
    for at in range(0, len(whole), 7):
        changed = whole[:at] + chr(ord(whole[at]) ^ 1) + whole[at + 1 :]
        assert ask("open", Keys=[key], Note=changed)["Error"] != "", at
    assert ask("open", Keys=[key], Note=whole)["Error"] == ""
    assert "no verifiable signatures" in ask("open", Keys=[str(THEIRS.key)], Note=whole)["Error"]


def test_go_signs_with_our_private_keys(ask: Ask, book: Book) -> None:
    """The text of a private key is read by Go, which signs the same as we do."""
    said = ask("sign", Keys=[OURS.secret_text()], Note=book.kept.text)
    assert said["Error"] == ""
    note = Note.parse(said["Note"])
    assert note.text == book.kept.text
    assert is_signed_by(note, OURS.key)
    assert note.signatures == (OURS.sign(book.kept.text),)
    changed = Note(note.text.replace("\n", "0\n", 1), note.signatures)
    with pytest.raises(EnvelopeError, match="is wrong"):
        is_signed_by(changed, OURS.key)


@pytest.fixture(scope="module")
def leaves(book: Book) -> list[bytes]:
    """The hashes of the lines."""
    return [leaf_hash(text) for text in book.texts[:SIZE]]


@pytest.fixture(scope="module")
def roots(ask: Ask, book: Book) -> list[bytes]:
    """The roots over the first 1, 2, 3 … lines, as Go computes them."""
    said = ask("roots", Lines=[text.decode() for text in book.texts[:SIZE]])
    assert said["Error"] == ""
    return [base64.b64decode(one) for one in said["Roots"]]


def of(leaves: list[bytes]) -> Callable[[int, int], bytes]:
    """The subtrees over these leaves."""
    return lambda level, index: complete_root(leaves[index << level : (index + 1) << level])


def test_the_roots_are_those_of_go(book: Book, leaves: list[bytes], roots: list[bytes]) -> None:
    """Of every size, and those in our checkpoints."""
    assert roots == [range_hash_of(leaves, size) for size in range(1, SIZE + 1)]
    for size, note in book.seals.items():
        if size <= SIZE:
            assert note.text.split("\n")[2] == text_of(roots[size - 1])


def range_hash_of(leaves: list[bytes], size: int) -> bytes:
    """Our root over the first so many leaves."""
    return range_hash(0, size, of(leaves))


def test_go_accepts_our_inclusion_proofs(ask: Ask, leaves: list[bytes], roots: list[bytes]) -> None:
    """Each line in trees of many sizes; and not with another line."""
    for size in (1, 2, 3, 31, 32, 33, SIZE):
        for index in range(size):
            proof = [text_of(one) for one in inclusion_proof(index, size, of(leaves))]
            tree = {"Size": size, "Index": index, "Proof": proof, "Root": text_of(roots[size - 1])}
            assert ask("record", Leaf=text_of(leaves[index]), **tree)["Error"] == ""
            assert ask("record", Leaf=text_of(bytes(32)), **tree)["Error"] != ""


def test_go_accepts_our_consistency_proofs(
    ask: Ask, leaves: list[bytes], roots: list[bytes]
) -> None:
    """From each size to each later one; and not from another root."""
    for new in (1, 2, 3, 31, 32, 33, SIZE):
        for old in range(1, new + 1):
            proof = [text_of(one) for one in consistency_proof(old, new, of(leaves))]
            tree = {"Size": new, "Old": old, "Proof": proof, "Root": text_of(roots[new - 1])}
            assert ask("tree", Before=text_of(roots[old - 1]), **tree)["Error"] == ""
            assert ask("tree", Before=text_of(bytes(32)), **tree)["Error"] != ""
