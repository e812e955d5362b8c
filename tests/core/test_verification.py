"""Ledgers that hold: of every shape, and what a verdict says of them besides."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.both import alike
from tests.core.cases import layout
from tests.core.facts import all_facts, some_facts
from tests.core.ledgers import NEXT, OURS, THEIRS, Book, books, pieces_of, verdict_of

from mcp_envelope.core.entry import Facts, line
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.merkle import EMPTY, Frontier, leaf_hash
from mcp_envelope.core.notes import Note
from mcp_envelope.core.seal import Removed, sealed_line
from mcp_envelope.core.verdict import MOST_LISTED
from mcp_envelope.core.verification import Verifier


def a_book(calls: int = 3) -> Book:
    """A usual run of a gateway."""
    book = Book()
    book.start()
    for _ in range(calls):
        book.call()
    book.stop()
    book.seal()
    return book


@given(books())
def test_ledgers_of_every_shape_hold(book: Book) -> None:
    """With the first key, which hands on to the next one, and with every checkpoint kept."""
    if not book.seals:
        return
    verdict = verdict_of(book.data, [OURS.key], list(book.seals.values())[-1:])
    assert verdict.damage is None
    assert (verdict.first, verdict.next, verdict.lines) == (0, book.seq, book.seq)
    assert (verdict.root, verdict.origin) == (book.tree.root(), book.origin)
    assert (verdict.checkpoints, verdict.vouched) == (len(book.seals), max(book.seals) + 1)
    assert verdict.signatures == "checked"


@given(books(steps=("call", "admit", "tear", "tear", "refuse", "seal")))
def test_torn_tails_of_every_shape_are_told_apart_from_damage(book: Book) -> None:
    """Parts of lines, whole lines without an end, and several after one another."""
    verdict = verdict_of(book.data, [OURS.key])
    pieces = layout(book.data)
    assert verdict.damage is None
    torn = {one.seq for one in pieces if not one.is_line}
    assert {one.seq for one in verdict.torn} == torn
    for one in verdict.torn:
        size = sum(len(part.data) for part in pieces if part.seq == one.seq and not part.is_line)
        assert one.size == size
        assert one.is_there
    assert verdict.torn_count == len(torn)
    assert verdict.holds_strictly == (not torn and not verdict.dangling_count)


@given(books(seals=1))
def test_lines_alone_hold_as_well_without_what_was_torn_between_them(book: Book) -> None:
    """As an export has them: that the bytes are not there is said."""
    data = b"".join(text + b"\n" for text in book.texts)
    verdict = verdict_of(data, [OURS.key], [book.kept] if list(book.signers) == [OURS] else [])
    assert verdict.damage is None
    assert all(not one.is_there for one in verdict.torn)
    assert (data == book.data) == (not verdict.torn and book.data.endswith(b"\n"))


@given(st.lists(all_facts(), max_size=8))
def test_lines_hold_whatever_is_in_them(facts: list[Facts]) -> None:
    """Nothing that comes from outside makes a line look like none, or like another."""
    book = Book(every=3)
    for one in facts:
        book.write(one)
    verdict = verdict_of(book.data)
    assert verdict.damage is None
    assert verdict.next == book.seq


def test_a_ledger_without_lines_holds_where_nobody_has_to_vouch_for_it() -> None:
    """With a key it is unsigned: all of it may have been taken away."""
    verdict = verdict_of(b"")
    assert verdict.holds_strictly
    assert (verdict.lines, verdict.root, verdict.signatures) == (0, EMPTY, "none")
    assert verdict.notes == ("the ledger has no lines",)
    assert alike(b"") is None
    for data in (b"", a_book().data[:100]):
        assert alike(data, [OURS.key]) == ("unsigned", 0)
    known = a_book().kept
    found = verdict_of(b"", [OURS.key], [known]).damage
    assert found is not None
    assert (found.kind, found.seq) == ("truncated", 0)


@pytest.mark.parametrize(
    "data",
    [b"\n", b"{}\n", b"no ledger\n", b"no\nledger\nat all\n", b'{"v":2,"event":"admitted"}\n'],
)
def test_what_is_no_ledger_is_unreadable_from_its_first_line_on(data: bytes) -> None:
    """And may be one of a later version."""
    found = verdict_of(data).damage
    assert found is not None
    assert (found.kind, found.seq) == ("unreadable", 0)
    assert "no ledger at all" in found.hint


def test_line_ends_of_another_system_are_damage() -> None:
    """CRLF changes every line, and the first one is named."""
    found = verdict_of(a_book().data.replace(b"\n", b"\r\n")).damage
    assert found is not None
    assert (found.kind, found.seq) == ("unreadable", 0)
    assert "CRLF" in found.hint


def test_without_a_key_signatures_are_said_to_be_unchecked() -> None:
    """They are right, but by a key that may be anybody's."""
    verdict = verdict_of(a_book().data)
    assert verdict.holds_strictly
    assert verdict.signatures == "unchecked"
    assert verdict.keys == (OURS.key,)
    assert any("nobody vouches" in one for one in verdict.notes)


def test_with_a_key_that_signed_nothing_the_ledger_is_unsigned() -> None:
    """The first checkpoint line is named; without any, the first line."""
    book = a_book()
    found = verdict_of(book.data, [THEIRS.key]).damage
    assert found is not None
    assert (found.kind, found.seq) == ("unsigned", book.seq - 1)
    found = verdict_of(b"".join(pieces_of(book.data)[:-1]), [OURS.key]).damage
    assert found is not None
    assert (found.kind, found.seq) == ("unsigned", 0)


def test_a_new_key_is_followed_where_only_the_old_one_is_trusted() -> None:
    """The line that both signed hands on; what the new one signs then is vouched for."""
    book = a_book()
    book.seal(signers=(NEXT, OURS))
    book.signers = (NEXT,)
    book.call()
    book.seal()
    verdict = verdict_of(book.data, [OURS.key], [book.kept])
    assert verdict.holds_strictly
    assert (verdict.vouched, verdict.keys) == (book.seq, (OURS.key, NEXT.key))
    assert any(str(NEXT.key) in one for one in verdict.notes)
    assert verdict_of(book.data, [NEXT.key]).holds


def test_a_key_that_nobody_handed_on_to_is_not_followed() -> None:
    """The first line that it signed is named, also where a known key comes again to no avail."""
    book = a_book()
    book.call()
    book.signers = (THEIRS,)
    book.seal()
    forged = book.seq - 1
    book.call()
    book.seal()
    found = verdict_of(book.data, [OURS.key]).damage
    assert found is not None
    assert (found.kind, found.seq) == ("signature", forged)
    book.signers = (OURS,)
    book.call()
    book.seal()
    assert verdict_of(book.data, [OURS.key]).holds


def test_the_first_line_is_no_checkpoint() -> None:
    """There is nothing that it could cover, and no ledger is called so."""
    book = Book()
    book.origin = "mcp-envelope/ledger/anything"
    book.seal()
    for keys in ([], [OURS.key]):
        assert alike(book.data, keys) == ("root", 0)


def test_a_checkpoint_behind_the_last_vouched_line_is_found() -> None:
    """Somebody goes on with the ledger and signs with a key of their own."""
    book = a_book()
    book.signers = (THEIRS,)
    book.call()
    book.seal()
    found = verdict_of(book.data, [OURS.key]).damage
    assert found is not None
    assert (found.kind, found.seq) == ("signature", book.seq - 1)
    assert verdict_of(book.data, [THEIRS.key]).holds


def test_a_wrong_signature_of_a_new_key_is_found_though_the_old_one_is_right() -> None:
    """Both have to be: else anybody's key could be handed on to."""
    book = a_book()
    good = sealed_line(
        book.seq,
        book.prev,
        time=book.now(),
        instance="i",
        origin=book.origin,
        root=book.tree.root(),
        signers=(OURS, NEXT),
    )
    bad = good.rpartition(b"\\n\xe2\x80\x94")
    other = NEXT.sign("another text\n")
    book.add_forged(bad[0] + b"\\n" + str(other).encode() + b'\\n"]}')
    found = verdict_of(book.data, [OURS.key]).damage
    assert found is not None
    assert (found.kind, found.seq) == ("signature", book.seq - 1)


def test_calls_without_an_end_are_listed() -> None:
    """Nobody knows whether the tool did it; strictly such a ledger does not hold."""
    book = a_book()
    book.start()
    first = book.admit("pay")
    book.call()
    book.start()
    book.admit("ship")
    book.settle(book.admit())
    book.seal()
    verdict = verdict_of(book.data, [OURS.key])
    assert verdict.holds
    assert not verdict.holds_strictly
    assert [one.tool for one in verdict.dangling] == ["pay", "ship"]
    assert verdict.dangling[0].request_id == first
    assert verdict.dangling[0].kind == "mcp/request:tools/call:pay"
    said = json.loads(book.texts[verdict.dangling[0].seq])
    assert (said["tool"], said["time"]) == ("pay", verdict.dangling[0].time)
    assert verdict.dangling_count == 2
    assert verdict.remarks == ("2 calls were admitted and never settled: the outcome is unknown",)
    assert "1 run of the gateway ended without being stopped" in verdict.notes


def test_very_many_calls_without_an_end_are_counted() -> None:
    """The first thousand are listed."""
    book = Book()
    for _ in range(MOST_LISTED + 5):
        book.admit()
    verdict = verdict_of(book.data)
    assert verdict.dangling_count == MOST_LISTED + 5
    assert [one.seq for one in verdict.dangling] == list(range(MOST_LISTED))


def test_two_calls_under_one_id_are_two_calls() -> None:
    """Of which one end settles one only."""
    book = Book()
    for event in ("admitted", "admitted", "settled"):
        book.write(some_facts(event=event))
    verdict = verdict_of(book.data)
    assert [one.seq for one in verdict.dangling] == [0]


def test_an_end_without_a_beginning_is_a_remark() -> None:
    """Unless the beginning may have been removed."""
    book = Book()
    book.settle("nobody")
    book.settle("nobody else")
    book.seal()
    assert verdict_of(book.data).remarks == (
        "2 lines settle calls that no line admitted, line 0 first",
    )
    removed = book.remove(1)
    book.seal()
    assert verdict_of(book.data, [OURS.key], [], removed).holds_strictly


def test_time_that_goes_back_is_a_note() -> None:
    """Clocks are put right; the order is that of the numbers."""
    book = a_book()
    book.write(some_facts(event="refused", time="2020-01-01T00:00:00.000000Z"))
    book.seal()
    verdict = verdict_of(book.data, [OURS.key])
    assert verdict.holds_strictly
    assert f"the time goes back once, first in line {book.seq - 2}" in verdict.notes


def test_lines_behind_the_last_checkpoint_are_a_remark() -> None:
    """They are chained, and no signature covers them: strictly such a ledger does not hold."""
    book = a_book()
    last = book.seq - 1
    book.call()
    verdict = verdict_of(book.data, [OURS.key])
    assert verdict.holds
    assert not verdict.holds_strictly
    assert verdict.vouched == last + 1
    assert verdict.remarks == (
        f"2 lines stand behind the last checkpoint, which is line {last}, and could be rewritten",
    )


def test_an_unfinished_line_at_the_end_holds_but_not_strictly() -> None:
    """It is what a write leaves that broke off; nobody was told that it was written."""
    for size in (1, 200, 10_000):
        book = a_book()
        good = len(book.data)
        book.tear(size)
        verdict = verdict_of(book.data, [OURS.key], [book.kept])
        assert verdict.holds
        assert not verdict.holds_strictly
        (tail,) = verdict.torn
        assert (tail.seq, tail.size) == (book.seq, len(book.data) - good)
        assert not tail.is_mended


def test_what_is_no_line_may_come_in_parts() -> None:
    """So that no reader has to hold what nobody knows the length of."""
    book = a_book()
    junk = b"x" * 200_000
    for parts in ([junk + b"\n"], [junk[:100_000], junk[100_000:] + b"\n"]):
        found = verdict_of([*pieces_of(book.data), *parts], [OURS.key]).damage
        assert found is not None
        assert (found.kind, found.seq) == ("unreadable", book.seq)
    verdict = verdict_of([*pieces_of(book.data), junk[:100_000], junk[100_000:]], [OURS.key])
    assert verdict.torn[0].size == len(junk)
    assert verdict.holds


@given(st.data())
def test_a_removed_beginning_is_vouched_for_by_what_is_left(data: st.DataObject) -> None:
    """And a ledger without that line, or with another one, has lines missing."""
    book = data.draw(books(seals=2, steps=("call", "admit", "seal", "refuse")))
    removed = book.remove(data.draw(st.integers(1, book.seq - 1)))
    verdict = verdict_of(book.data, [OURS.key], [book.kept], removed)
    assert verdict.damage is None
    assert (verdict.first, verdict.next, verdict.root) == (
        removed.count,
        book.seq,
        book.tree.root(),
    )
    assert any("were removed" in one for one in verdict.notes)
    found = verdict_of(book.data, [OURS.key]).damage
    assert found is not None
    assert (found.kind, found.seq) == ("missing", 0)


def test_a_beginning_that_no_line_says_was_removed_is_missing() -> None:
    """Whoever takes lines out and puts down what is left of their tree is found."""
    book = a_book()
    tree = Frontier()
    for text in book.texts[:3]:
        tree.add(leaf_hash(text))
    prev = json.loads(book.texts[3])["prev"]
    data = b"".join(text + b"\n" for text in book.texts[3:])
    found = verdict_of(data, [OURS.key], [], Removed(3, prev, tuple(tree.nodes))).damage
    assert found is not None
    assert (found.kind, found.seq) == ("missing", 0)


def test_a_removed_beginning_with_other_hashes_has_another_root() -> None:
    """The next checkpoint shows it."""
    book = a_book()
    removed = book.remove(3)
    other = replace(removed, nodes=tuple(EMPTY for _ in removed.nodes))
    found = verdict_of(book.data, [OURS.key], [], other).damage
    assert found is not None
    assert found.kind == "root"


def test_a_kept_checkpoint_of_removed_lines_says_nothing_and_that_is_said() -> None:
    """What it covers cannot be known any more."""
    book = Book(every=3)
    for _ in range(6):
        book.call()
    early = book.seals[min(book.seals)]
    removed = book.remove(8)
    verdict = verdict_of(book.data, [OURS.key], [early], removed)
    assert verdict.holds_strictly
    assert any("says nothing here" in one for one in verdict.notes)


def test_every_kept_checkpoint_of_a_good_ledger_fits() -> None:
    """Those of all sizes at once."""
    book = Book(every=2)
    for _ in range(6):
        book.call()
    assert verdict_of(book.data, [OURS.key], list(book.seals.values())).holds


def test_a_kept_checkpoint_of_another_ledger_is_a_fork_of_its_beginning() -> None:
    """The origin comes from the first line."""
    other = Book()
    other.call()
    other.stop()
    other.seal()
    found = verdict_of(a_book().data, [OURS.key], [other.kept]).damage
    assert found is not None
    assert (found.kind, found.seq) == ("fork", 0)
    assert found.message.count("ledger is") == 1
    assert "another ledger" not in found.message
    cut = b"".join(pieces_of(other.data)[:-1])
    found = verdict_of(cut, [], [other.kept]).damage
    assert found is not None
    assert (found.kind, found.message.rpartition(" covers ")[2]) == ("truncated", "lines 0 to 3")


def test_a_kept_checkpoint_that_nobody_signed_says_nothing_against_the_ledger() -> None:
    """It is refused, whether it fits or not."""
    book = a_book()
    for text in (book.kept.text, book.kept.text.replace("\n8\n", "\n4\n")):
        note = Note(text, (THEIRS.sign(text),))
        found = verdict_of(book.data, [OURS.key], [note]).damage
        assert found is not None
        assert found.kind == "signature"
        assert "kept" in found.message
    wrong = Note(book.kept.text, (OURS.sign("other\n"),))
    found = verdict_of(book.data, [OURS.key], [wrong]).damage
    assert found is not None
    assert "wrong" in found.message


def test_a_note_that_is_no_checkpoint_is_refused_at_once() -> None:
    """Before anything is read."""
    with pytest.raises(EnvelopeError, match="no checkpoint"):
        Verifier([], [Note("hello\n", (OURS.sign("hello\n"),))])


def test_the_roots_that_are_asked_for_are_told() -> None:
    """Also at the ends; what was not reached is left out."""
    book = a_book()
    verdict = verdict_of(book.data, sizes=(0, 1, book.seq, book.seq + 1))
    assert verdict.roots == {0: EMPTY, 1: leaf_hash(book.texts[0]), book.seq: book.tree.root()}


def test_a_verifier_wants_nothing_more_once_it_knows() -> None:
    """It reads on only where a name for the damage lies ahead."""
    pieces = pieces_of(a_book().data)
    verifier = Verifier()
    assert verifier.feed(pieces[0])
    assert not verifier.feed(pieces[0])
    assert not verifier.feed(pieces[1])
    found = verifier.finish().damage
    assert found is not None
    assert (found.kind, found.seq, found.position, found.found) == ("duplicate", 0, 2, 0)


def test_a_store_that_cannot_be_read_on_is_damage_unless_there_is_some_already() -> None:
    """It is said from which line on."""
    pieces = pieces_of(a_book().data)
    verifier = Verifier()
    for piece in pieces[:3]:
        verifier.feed(piece)
    found = verifier.corrupt("the disk says no").damage
    assert found is not None
    assert (found.kind, found.seq) == ("corrupt", 3)
    assert "the disk says no" in found.message


@pytest.mark.parametrize(
    "word,is_line",
    [('"\\ud800"', False), ("1e999", True), ("9" * 5_000, True), ("NaN", False), ("[1,]", False)],
)
def test_a_line_is_one_if_the_standard_library_reads_it(word: str, is_line: bool) -> None:
    """The verifier for auditors reads with nothing else, and has to say the same."""
    book = Book()
    text = line(some_facts(client_id="@@"), 0, book.prev).replace(b'"@@"', word.encode())
    book.add_forged(text)
    found = verdict_of(book.data).damage
    assert (found is None) == is_line


@given(st.data())
def test_whatever_is_read_there_is_a_verdict(data: st.DataObject) -> None:
    """Lines of several ledgers, parts of them, and bytes of any kind, in any order."""
    book = data.draw(books())
    parts = [*pieces_of(book.data), *pieces_of(a_book(1).data), b"\n", b"{}\n", b"\xff", b""]
    chosen = st.sampled_from(parts) | st.binary(max_size=9)
    pieces = data.draw(st.lists(chosen | st.sampled_from(parts).map(lambda one: one[:-9])))
    is_kept = data.draw(st.booleans())
    known = [book.kept] if book.seals and is_kept else []
    keys = data.draw(st.sampled_from([[], [OURS.key], [THEIRS.key]]))
    removed = data.draw(st.none() | st.just(Removed(1, "ab" * 32, (EMPTY,))))
    verifier = Verifier(keys, known, removed, is_one_of_several=data.draw(st.booleans()))
    for piece in pieces:
        verifier.feed(piece)
    verdict = verifier.finish()
    assert verdict.holds == (verdict.damage is None)
    assert str(verdict.damage)


@pytest.mark.parametrize("event", ["admitted", "settled", "started", "stopped", "refused"])
@pytest.mark.parametrize("field", ["request_id", "time", "tool", "kind", "input", "error"])
@pytest.mark.parametrize("value", [b"[[1]]", b"{}", b"7", b"null", b"true"])
def test_fields_of_other_types_do_no_harm(event: str, field: str, value: bytes) -> None:
    """No gateway writes such lines, and somebody else may."""
    text = line(some_facts(event=event), 0, "0" * 64)
    said = json.loads(text)
    begin = text.index(b'"%b":' % field.encode())
    after = json.dumps(said[field], separators=(",", ":")).encode()
    at = text.index(after, begin)
    book = Book()
    book.add_forged(text[:at] + value + text[at + len(after) :])
    book.call()
    book.seal()
    verdict = verdict_of(book.data, [OURS.key])
    assert verdict.damage is None
