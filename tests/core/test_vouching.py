"""Whom a ledger is believed: which keys are trusted, and what has to be signed by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from tests.core.both import alike
from tests.core.ledgers import NEXT, OURS, THEIRS, Book, verdict_of

from mcp_envelope.core import signing
from mcp_envelope.core.notes import Note, Signature
from mcp_envelope.core.signing import Signer


def rotated(*signers: Signer) -> Book:
    """A ledger in which one key replaced another; the line that both signed names them so."""
    book = Book()
    book.call()
    book.seal()
    book.call()
    book.seal(signers=signers)
    book.signers = signers[:1]
    book.call()
    book.seal()
    return book


def test_a_key_that_was_replaced_is_not_trusted_by_whoever_trusts_the_new_one() -> None:
    """It may have been replaced because it was stolen: what it signs alone later is damage."""
    book = rotated(NEXT, OURS)
    assert alike(book.data, [NEXT.key]) is None
    book.signers = (OURS,)
    book.call()
    book.seal()
    assert alike(book.data, [NEXT.key]) == ("signature", book.seq - 1)
    assert alike(book.data, [NEXT.key, OURS.key]) is None


def test_only_the_first_key_of_a_line_is_handed_on_to() -> None:
    """The others are those before it, one of which may be older than the trusted one."""
    book = rotated(NEXT, OURS, THEIRS)
    assert alike(book.data, [OURS.key]) is None
    assert verdict_of(book.data, [OURS.key]).notes[0].startswith("from line 5 on " + str(NEXT.key))
    book.signers = (THEIRS,)
    book.call()
    book.seal()
    assert alike(book.data, [OURS.key]) == ("signature", book.seq - 1)


def test_a_key_is_handed_on_to_as_often_as_there_is_a_new_one() -> None:
    """Whoever trusts the first of very many trusts the last one; so many are listed."""
    keys = [Signer("gateway.example", bytes([one]) * 32) for one in range(1, 121)]
    book = Book(keys[0])
    book.call()
    for old, new in pairwise(keys):
        book.seal(signers=(new, old))
        book.signers = (new,)
        book.call()
    book.seal()
    assert alike(book.data, [keys[0].key]) is None
    assert len(verdict_of(book.data, [keys[0].key]).keys) == 100


def with_signatures(
    book: Book, change: Callable[[Sequence[Signature]], Sequence[Signature]]
) -> bytes:
    """The ledger, with other signatures in its last line."""
    note = book.kept
    other = Note(note.text, tuple(change(note.signatures)))
    old, new = (str(one).encode().replace(b"\n", b"\\n") for one in (note, other))
    assert book.data.count(old) == 1
    return book.data.replace(old, new)


ADDED = THEIRS.sign("anything\n")
OTHERS: dict[str, Callable[[Sequence[Signature]], Sequence[Signature]]] = {
    "added": lambda signatures: (*signatures, ADDED),
    "in front": lambda signatures: (ADDED, *signatures),
    "doubled": lambda signatures: (*signatures, *signatures),
    "swapped": lambda signatures: signatures[::-1],
    "left out": lambda signatures: signatures[:1],
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_signatures_of_a_line_are_those_of_the_keys_that_it_names(name: str) -> None:
    """The last line has nothing behind it that would hold them."""
    book = Book(NEXT, OURS)
    book.call()
    book.seal()
    data = with_signatures(book, OTHERS[name])
    for keys in ([], [OURS.key], [NEXT.key, OURS.key]):
        assert alike(book.data, keys) is None
        assert alike(data, keys) == ("signature", 2)


def test_a_key_that_did_not_sign_is_not_even_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a ledger with very many keys is verified as fast as any."""
    monkeypatch.setattr(signing, "Ed25519PublicKey", None)
    text = "text\n"
    assert not signing.is_signed_by(Note(text, (OURS.sign(text),)), NEXT.key)
