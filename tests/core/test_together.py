"""Several ledgers: each has its verdict, and copies that went different ways are found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.damage import drop
from tests.core.ledgers import OURS, Book, books, pieces_of

from mcp_envelope.core.together import Reading, Together, verify_together


def a_book(calls: int, tool: str = "get_time") -> Book:
    """A ledger; those for one tool begin with the same lines."""
    book = Book(every=4)
    for _ in range(calls):
        book.call(tool)
    return book


def together(*books: Book, known: Book | None = None) -> Together:
    """What is said of them, with a key."""
    readings = [
        Reading(name, lambda data=one.data: pieces_of(data), one.removed)  # type: ignore[misc]
        for name, one in zip("abcd", books, strict=False)
    ]
    return verify_together(readings, [OURS.key], [known.kept] if known else [])


def test_ledgers_that_have_nothing_to_do_with_each_other_hold() -> None:
    """And each kept checkpoint is compared with its own."""
    one, other = a_book(9), a_book(9, "pay")
    for book in (one, other):
        book.seal()
    for known in (one, other):
        found = together(one, other, known=known)
        assert found.holds
        assert found.holds_strictly
        assert found.findings == ()
        assert [verdict.lines for verdict in found.verdicts] == [one.seq, other.seq]


def test_a_kept_checkpoint_of_none_of_them_is_told() -> None:
    """The ledger that it is of is not there, or was replaced from its first line on."""
    found = together(a_book(4), a_book(5, "pay"), known=a_book(6, "ship"))
    assert not found.holds
    assert [one.kind for one in found.findings] == ["unmatched"]
    assert all(one.holds for one in found.verdicts)


def test_a_kept_checkpoint_still_shows_what_was_cut_off() -> None:
    """Although others may be of other ledgers."""
    whole = a_book(20)
    found = together(a_book(9), a_book(5, "pay"), known=whole)
    assert not found.holds
    damage = found.verdicts[0].damage
    assert damage is not None
    assert (damage.kind, damage.seq) == ("truncated", a_book(9).seq)


@given(st.data())
def test_an_older_copy_is_known_as_such(data: st.DataObject) -> None:
    """Wherever it ends."""
    book = data.draw(books(seals=2, steps=("call", "admit", "seal", "start")))
    count = data.draw(st.integers(min(book.seals) + 1, book.seq))
    old = Book()
    for text in book.texts[:count]:
        old.add_forged(text)
    for pair, names in (((book, old), ("b", "a")), ((old, book), ("a", "b"))):
        (finding,) = together(*pair).findings
        assert finding.holds
        if count == book.seq:
            assert finding.kind == "same"
        else:
            assert (finding.kind, finding.names, finding.seq) == ("older", names, count)


@given(st.data())
def test_copies_that_went_different_ways_are_found_where_they_part(data: st.DataObject) -> None:
    """Although each is signed with the right key and holds by itself."""
    begin, one_more, other_more = (data.draw(st.integers(2, 6)) for _ in range(3))
    one, other = a_book(begin), a_book(begin)
    for _ in range(one_more):
        one.call("pay")
    for _ in range(other_more):
        other.call("ship")
    found = together(one, other)
    assert all(verdict.holds for verdict in found.verdicts)
    assert not found.holds
    (finding,) = found.findings
    assert (finding.kind, finding.seq) == ("fork", a_book(begin).seq)


def test_three_copies_are_compared_one_after_the_other() -> None:
    """From the shortest to the longest."""
    found = together(a_book(9), a_book(3), a_book(6))
    assert [(one.kind, one.names) for one in found.findings] == [
        ("older", ("b", "c")),
        ("older", ("c", "a")),
    ]


def test_a_copy_from_before_lines_were_removed_is_compared_by_the_roots() -> None:
    """The removed lines need not be there."""
    old, new = a_book(9), a_book(9)
    new.remove(8)
    new.call()
    new.seal()
    (finding,) = together(old, new).findings
    assert (finding.kind, finding.names) == ("older", ("a", "b"))
    (finding,) = together(a_book(3), new).findings
    assert finding.kind == "apart"


@pytest.mark.parametrize("known", [False, True])
def test_kept_checkpoints_work_with_removed_beginnings(known: bool) -> None:
    """There the name of the ledger is only known from its first checkpoint."""
    one, other = a_book(9), a_book(9, "pay")
    for book in (one, other):
        book.remove(8)
        book.call()
        book.seal()
    assert together(one, other, known=one if known else other).holds


def test_a_damaged_one_is_not_compared() -> None:
    """Its damage is what there is to say."""
    one, other = a_book(9), a_book(9)
    case = drop(other, [5])
    assert case is not None
    other.data = case.data
    found = together(one, other)
    assert not found.holds
    assert found.findings == ()
    assert found.verdicts[0].holds
