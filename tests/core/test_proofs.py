"""Proofs as texts: they say what they prove, hold for nothing else, and are read strictly."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.listed import ListedSource, example_lines

from mcp_envelope.core.entry import line as written
from mcp_envelope.core.entry import started
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.merkle import range_hash
from mcp_envelope.core.notes import Checkpoint, Note
from mcp_envelope.core.proofs import HEADER, Consistency, Inclusion
from mcp_envelope.core.proving import (
    Standing,
    UnprovenError,
    consistency,
    inclusion,
    line_at,
    newest_checkpoint,
    origin,
    standing,
)

LINES = example_lines()


@pytest.fixture
def source() -> ListedSource:
    """The example ledger."""
    return ListedSource(LINES)


def newest(source: ListedSource) -> Standing:
    """Its newest checkpoint."""
    found = newest_checkpoint(source)
    assert found is not None
    return found


def test_the_newest_checkpoint_is_found(source: ListedSource) -> None:
    """The last one, however far from the end it is; None where there is none."""
    assert newest(source).seq == 21
    assert newest(ListedSource(LINES[:21])).seq == 12
    assert newest_checkpoint(ListedSource(LINES[:12])) is None
    assert newest_checkpoint(ListedSource([])) is None
    far = written(started(time="2026-01-01T00:00:00.000Z", instance="i"), 13, "0" * 64)
    assert newest(ListedSource([*LINES[:13], *[far] * 2_000])).seq == 12


def test_a_ledger_is_called_after_its_first_line(source: ListedSource) -> None:
    """The origin is what its checkpoints say."""
    assert origin(source) == newest(source).checkpoint.origin
    assert origin(ListedSource([])) is None


@pytest.mark.parametrize("seq", range(21))
def test_every_line_can_be_proven(source: ListedSource, seq: int) -> None:
    """A proof holds for its line, stands the way through its text, and holds for no other line."""
    proof = inclusion(source, seq, LINES[seq], newest(source))
    text = str(proof)
    assert text.startswith(f"{HEADER}\nindex {seq}\n")
    assert Inclusion.parse(text) == Inclusion.parse(text.encode()) == proof
    assert [n for n, line in enumerate(LINES) if proof.is_of(line)] == [seq]


def test_extra_data_is_left_out(source: ListedSource) -> None:
    """The format allows it, and nothing of ours depends on it."""
    proof = inclusion(source, 3, LINES[3], newest(source))
    assert Inclusion.parse(str(proof).replace("index", "extra AAAA\nindex", 1)) == proof


def test_a_changed_line_is_not_proven(source: ListedSource) -> None:
    """It says so, instead of giving a proof that nobody could verify."""
    to = newest(source)
    with pytest.raises(UnprovenError, match="not the one that was signed"):
        inclusion(source, 3, LINES[3] + b" ", to)
    source.lines[4] = source.lines[4].replace(b"search", b"Search")
    with pytest.raises(UnprovenError, match="not the one that was signed"):
        inclusion(source, 3, LINES[3], to)


def test_a_damaged_checkpoint_is_told(source: ListedSource) -> None:
    """Neither a changed byte nor a copied checkpoint passes for one."""
    for harm in (LINES[21].replace(b"2026-11-19", b"2026-11-18", 1), b"{}", b"{"):
        with pytest.raises(UnprovenError, match="damaged"):
            standing(harm)
    moved = LINES[12].replace(b'"seq":12', b'"seq":13')
    with pytest.raises(UnprovenError, match="damaged"):
        standing(moved)


def test_growth_is_proven(source: ListedSource) -> None:
    """From an older checkpoint to the newest, and the text says the same."""
    old = standing(LINES[12])
    proof = consistency(source, old.note, newest(source))
    assert proof.is_from(old.checkpoint.root)
    assert not proof.is_from(newest(source).checkpoint.root)
    assert str(proof).startswith("old 12\n")
    assert Consistency.parse(str(proof)) == proof
    same = consistency(source, newest(source).note, newest(source))
    assert same.hashes == ()


def remade(note: Note, **change: object) -> Note:
    """A note that says something else."""
    said = Checkpoint.parse(note.text)
    values = {n: change.get(n, getattr(said, n)) for n in ("origin", "size", "root", "extensions")}
    return Note(Checkpoint(**values).text, note.signatures)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change,why",
    [
        ({"origin": "mcp-envelope/ledger/other"}, "another ledger"),
        ({"size": 99}, "only 21"),
        ({"size": 0}, "only 21"),
        ({"root": b"x" * 32}, "not those of the older"),
        ({"extensions": ("line sha256:" + "0" * 64,)}, "not the one that the older"),
    ],
)
def test_what_is_not_its_past_is_refused(
    source: ListedSource, change: dict[str, object], why: str
) -> None:
    """Another ledger, a longer one, other lines, another last line: each in its own words."""
    old = remade(standing(LINES[12]).note, **change)
    with pytest.raises(UnprovenError, match=why):
        consistency(source, old, newest(source))


def test_a_line_at_the_place_of_a_checkpoint_is_not_it(source: ListedSource) -> None:
    """A root alone is not enough: the line that the older checkpoint stood in has to be there."""
    note = remade(standing(LINES[12]).note, size=11, root=newest_root(11))
    with pytest.raises(UnprovenError, match="line 11 is not"):
        consistency(source, note, newest(source))


def newest_root(size: int) -> bytes:
    """The root over so many lines of the example."""
    return range_hash(0, size, ListedSource(LINES).subtree)


def test_lines_that_are_not_there(source: ListedSource) -> None:
    """None, not an error."""
    assert line_at(source, 22) is None
    assert line_at(source, 0) == LINES[0]


NOTE = str(standing(LINES[21]).note)


@pytest.mark.parametrize(
    "text",
    [
        "",
        HEADER,
        f"{HEADER}\nindex 1\n",
        f"{HEADER}\nindex 1\n\n",
        f"{HEADER}\nindex 1\n\nno note",
        f"{HEADER}\n\n{NOTE}",
        f"{HEADER}\nindex 01\n\n{NOTE}",
        f"{HEADER}\nindex -1\n\n{NOTE}",
        f"{HEADER}\nindex 1\nAAAA\n\n{NOTE}",
        f"{HEADER}\nindex 1\nnot base64\n\n{NOTE}",
        f"{HEADER}\nindex 1\n" + "A" * 43 + f"=\n\n{NOTE}" * 2,
        f"{HEADER}2\nindex 1\n\n{NOTE}",
        f"{HEADER}\nindex 1\n" + ("A" * 43 + "=\n") * 64 + f"\n{NOTE}",
    ],
)
def test_texts_that_are_no_proof(text: str) -> None:
    """Each is refused, and no proof of growth either."""
    with pytest.raises(EnvelopeError):
        Inclusion.parse(text)
    with pytest.raises(EnvelopeError):
        Consistency.parse(text)


@given(st.binary(max_size=80) | st.text(max_size=80))
def test_nothing_else_goes_wrong(data: bytes | str) -> None:
    """Whatever it is, it is read or refused, with and without a good beginning."""
    for parse in (Inclusion.parse, Consistency.parse):
        with contextlib.suppress(EnvelopeError):
            parse(data)
