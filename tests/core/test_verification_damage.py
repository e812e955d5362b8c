"""Damage to a ledger is found, all of it, and the right line named."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.core.cases import numbers_of
from tests.core.damage import CASES, cases
from tests.core.ledgers import NEXT, OURS, books, verdict_of


@pytest.mark.parametrize("name", list(CASES))
@given(data=st.data())
def test_damage_is_found_with_a_key_and_a_kept_checkpoint(name: str, data: st.DataObject) -> None:
    """Every kind, at every place, and the line is named."""
    book = data.draw(books(seals=2))
    case = data.draw(cases(book, [name]))
    assume(case is not None)
    assert case is not None
    found = verdict_of(case.data, [OURS.key, NEXT.key], [book.kept]).damage
    assert found is not None, case.name
    assert found.seq in numbers_of(case, book.data), (case.name, found)
    assert found.kind in case.kinds, (case.name, found)
