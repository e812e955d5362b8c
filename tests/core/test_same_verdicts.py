"""Two verifiers that share no code say the same of any ledger, good or damaged."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from tests.core.both import alike
from tests.core.damage import CASES, cases
from tests.core.ledgers import NEXT, OURS, THEIRS, Book, books

from mcp_envelope.core.notes import VerifierKey


def agree(book: Book, data: bytes, keys: Sequence[VerifierKey]) -> None:
    """Both say the same, with a kept checkpoint and without."""
    for known in ((), (book.kept,)):
        alike(data, keys, known)


KEYS = st.sampled_from([(), (OURS.key,), (OURS.key, NEXT.key), (NEXT.key,), (THEIRS.key,)])


@given(books(), KEYS)
def test_of_good_ledgers(book: Book, keys: Sequence[VerifierKey]) -> None:
    """Of what was written in order, with torn tails, keys that change, and keys of others."""
    agree(book, book.data, keys)


@given(st.data(), KEYS)
def test_of_damaged_ledgers(data: st.DataObject, keys: Sequence[VerifierKey]) -> None:
    """Of all damage that is known: the same kind, and the same line."""
    book = data.draw(books(seals=data.draw(st.integers(1, 2))))
    case = data.draw(cases(book, tuple(CASES)))
    if case is not None:
        agree(book, case.data, keys)


def _removed(calls: int, more: int) -> Book:
    book = Book(every=100)
    book.start()
    for _ in range(calls):
        book.call()
    book.remove(256)
    for _ in range(more):
        book.call()
    book.seal()
    book.seals = {seq: note for seq, note in book.seals.items() if seq >= book.first}
    return book


REMOVED = (_removed(130, 3), _removed(260, 0))


@given(st.data(), st.sampled_from(REMOVED))
def test_of_ledgers_that_begin_later(data: st.DataObject, book: Book) -> None:
    """Of lines behind removed ones, taken up from the newest remark on them that can be read."""
    case = data.draw(cases(book, tuple(CASES)))
    if case is not None:
        agree(book, case.data, (OURS.key,))
