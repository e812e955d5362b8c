"""Damage to a ledger is found, all of it, and the right line named."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.core.cases import Case, numbers_of
from tests.core.damage import CASES, cases
from tests.core.ledgers import NEXT, OURS, Book, books, verdict_of

from mcp_envelope.core.verdict import Damage

KEYS = [OURS.key, NEXT.key]
#: Before each commit a few of each kind; in CI and in the slow suite as many as elsewhere.
USUAL = settings.default.max_examples if settings.default is not None else 100
EXAMPLES = settings(max_examples=USUAL if USUAL >= 100 else 20)


def a_case(data: st.DataObject, name: str) -> tuple[Book, Case]:
    """A good ledger, and it damaged in that way."""
    book = data.draw(books(seals=2))
    case = data.draw(cases(book, [name]))
    assume(case is not None)
    assert case is not None
    return book, case


def is_named(found: Damage | None, case: Case, book: Book) -> None:
    """Sees that the damage was found, and is said to be where it is."""
    assert found is not None, case.name
    assert found.seq in numbers_of(case, book.data), (case.name, found)
    assert found.kind in case.kinds, (case.name, found)


@pytest.mark.parametrize("name", list(CASES))
@EXAMPLES
@given(data=st.data())
def test_damage_is_found_with_a_key_and_a_kept_checkpoint(name: str, data: st.DataObject) -> None:
    """Every kind, at every place, and the line is named."""
    book, case = a_case(data, name)
    is_named(verdict_of(case.data, KEYS, [book.kept]).damage, case, book)


@pytest.mark.parametrize("name", list(CASES))
@EXAMPLES
@given(data=st.data())
def test_damage_is_found_with_nothing_but_the_ledger(name: str, data: st.DataObject) -> None:
    """All but what renews the ledger with another key, or takes its end away."""
    book, case = a_case(data, name)
    found = verdict_of(case.data).damage
    if not case.needs:
        # What is called by another name is only known as such from a checkpoint kept outside.
        assert found or case.seq == 0
        if case.seq or not case.name.startswith("renew"):
            is_named(found, case, book)
    elif case.needs == "key":
        assert verdict_of(case.data, KEYS).damage
    else:
        assert verdict_of(case.data, (), [book.kept]).damage


@pytest.mark.parametrize("name", list(CASES))
@EXAMPLES
@given(data=st.data())
def test_damage_is_found_in_what_was_left_when_lines_were_removed(
    name: str, data: st.DataObject
) -> None:
    """The same, of ledgers that do not begin with number 0."""
    book = data.draw(books(seals=3, steps=("call", "admit", "seal", "stop")))
    removed = book.remove(data.draw(st.integers(1, min(book.seals, default=1) + 1)))
    book.call()
    book.seal()
    book.seals = {seq: note for seq, note in book.seals.items() if seq >= book.first}
    assert verdict_of(book.data, KEYS, [book.kept], removed).holds
    case = data.draw(cases(book, [name]))
    assume(case is not None)
    assert case is not None
    is_named(verdict_of(case.data, KEYS, [book.kept], removed).damage, case, book)
