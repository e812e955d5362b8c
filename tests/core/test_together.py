"""Several ledgers: each has its verdict, and copies that went different ways are found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.damage import drop
from tests.core.ledgers import OURS, Book, books, pieces_of

from mcp_envelope.core.merkle import Frontier
from mcp_envelope.core.seal import Removed
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


def pruned(count: int) -> Book:
    """A ledger whose first lines were removed."""
    book = a_book(20)
    book.remove(count)
    book.call()
    book.seal()
    return book


def archive(count: int, tool: str = "", same: int = 0) -> Book:
    """Its first lines; those from number ``same`` on are of another tool, if there is one."""
    book = Book(every=99)
    for text in a_book(20).texts[: same if tool else count]:
        book.add_forged(text)
    while book.seq < count:
        book.refuse(tool)
    return book


def test_a_copy_from_before_lines_were_removed_is_compared_by_the_roots() -> None:
    """The removed lines need not be there."""
    old, new = a_book(20), pruned(8)
    (finding,) = together(old, new).findings
    assert (finding.kind, finding.names) == ("older", ("a", "b"))


def test_removed_lines_that_were_kept_are_compared_with_what_was_kept_of_them() -> None:
    """Where the archive ends just there it is known as such; so is another one, at its end too."""
    (finding,) = together(archive(24), pruned(24)).findings
    assert (finding.kind, finding.seq) == ("older", 24)
    assert "keeps the root of just these lines" in finding.message
    for same in (16, 20, 23):
        found = together(archive(24, "other", same), pruned(24))
        assert all(one.holds for one in found.verdicts)
        (finding,) = found.findings
        assert (finding.kind, finding.seq, found.holds) == ("fork", 24, False)
        assert "at line 24 or before it" in finding.message


def test_an_archive_that_ends_earlier_is_compared_as_far_as_can_be() -> None:
    """Of 24 removed lines there is a hash of the first 16, and one of the others."""
    for count, same in ((20, 16), (23, 16), (9, 0)):
        found = together(archive(count), pruned(24))
        (finding,) = found.findings
        assert (finding.kind, finding.seq, found.holds) == ("apart", same, True)
        assert (f"only the first {same}" in finding.message) == bool(same)
    assert together(archive(16), pruned(24)).findings[0].kind == "older"
    (finding,) = together(archive(20, "other", 15), pruned(24)).findings
    assert finding.kind == "fork"
    assert together(archive(20, "other", 16), pruned(24)).findings[0].kind == "apart"


def test_what_is_apart_from_one_may_meet_another() -> None:
    """An archive, what is left, and a whole copy: the archive is compared with the whole one."""
    whole = a_book(30)
    whole.seal()
    parts = archive(9), pruned(24), whole
    assert [(one.kind, one.names) for one in together(*parts).findings] == [
        ("older", ("a", "c")),
        ("fork", ("b", "c")),
    ]
    found = together(archive(9, "other", 5), *parts[1:])
    assert (found.findings[0].kind, found.findings[0].seq) == ("fork", 5)


def test_the_last_of_the_removed_lines_is_compared_too() -> None:
    """Its digest is what the first line that is left follows."""
    good = pruned(24).removed
    assert good is not None
    book, old = Book(), archive(24)
    book.first, book.origin, book.prev = 24, old.origin, "ab" * 32
    book.tree = Frontier(24, good.nodes)
    book.removed = Removed(24, book.prev, good.nodes)
    book.call()
    book.seal(str(book.removed))
    found = together(old, book)
    assert all(one.holds for one in found.verdicts)
    assert [one.kind for one in found.findings] == ["fork"]


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
