"""Ways to damage a ledger, each with the number of the line that a verifier has to name.

What is damaged is a good ledger that ends in a checkpoint line, of which somebody outside has the
checkpoint (``book.kept``): with it, and with the key, each case here is to be found. Nothing here
uses a verifier of ours. ``CASES`` are functions that draw one case; ``cases`` draws any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st
from tests.core.cases import Case, Piece, gaps_in, joined, layout, lines_in
from tests.core.forgery import (
    beginning_of,
    digest_of,
    renew,
    replace_from,
    respell,
    swap_notes,
)
from tests.core.ledgers import Book

from mcp_envelope.core.entry import GENESIS


def flip(book: Book, at: int, mask: int) -> Case:
    """Change the byte at that place."""
    begin = 0
    for piece in layout(book.data):
        if at < begin + len(piece.data):
            break
        begin += len(piece.data)
    data = bytearray(book.data)
    data[at] ^= mask
    # What ends the last line is gone: then it looks like one that never was finished.
    is_end = piece.seq == book.seq - 1 and data[at : at + 1] != b"\n" == book.data[at : at + 1]
    kinds = ("unreadable", "altered", "root", "signature", "inserted", "fork", "duplicate")
    return Case(
        f"flip byte {at} (line {piece.seq}) by {mask}",
        bytes(data),
        piece.seq,
        ("truncated", "fork") if is_end and piece.is_line else kinds,
        "kept" if is_end and piece.is_line else "",
    )


def drop(book: Book, seqs: Sequence[int]) -> Case | None:
    """Leave lines out; the last line stays, or it would be the truncation that it is."""
    left = [one for one in layout(book.data) if not (one.is_line and one.seq in seqs)]
    if not seqs or book.seq - 1 in seqs:
        return None
    kinds = ("missing", "unreadable", "altered")
    return Case(f"drop {sorted(seqs)}", joined(left), min(seqs), kinds)


def truncate(book: Book, at: int) -> Case | None:
    """Cut everything off from that place on."""
    data, count, end = book.data[:at], book.first, 0
    for piece in layout(book.data):
        end += len(piece.data)
        if piece.is_line and end <= at:
            count = piece.seq + 1
    if count >= book.seq:
        return None
    name = "cut inside a line" if data and not data.endswith(b"\n") else "roll back"
    return Case(
        f"{name}: {at} bytes left", data, count, ("truncated", "unreadable", "fork"), "kept"
    )


def move(book: Book, seq: int, gap: int) -> Case | None:
    """Take a line out, and put it in before the piece that has then that index."""
    pieces = layout(book.data)
    at = next(at for at in lines_in(pieces) if pieces[at].seq == seq)
    is_torn = at > 0 and not pieces[at - 1].is_line
    line = pieces.pop(at)
    gaps = [one for one in gaps_in(pieces) if one != at]
    if is_torn or not gaps:
        return None
    gap = gaps[gap % len(gaps)]
    named = min(seq, pieces[gap].seq)
    pieces.insert(gap, line)
    kinds = ("reordered", "unreadable", "altered")
    return Case(f"move {seq} to {gap}", joined(pieces), named, kinds)


def move_last(book: Book, seq: int) -> Case | None:
    """Put a line behind all others."""
    pieces = layout(book.data)
    at = next(at for at in lines_in(pieces) if pieces[at].seq == seq)
    if (at > 0 and not pieces[at - 1].is_line) or not book.data.endswith(b"\n"):
        return None
    if at == len(pieces) - 1:
        return None
    line = pieces.pop(at)
    return Case(f"move {seq} to the end", joined([*pieces, line]), seq, ("reordered", "unreadable"))


def swap(book: Book, seq: int) -> Case | None:
    """Swap two lines that follow one another."""
    pieces = layout(book.data)
    at = next(at for at in lines_in(pieces) if pieces[at].seq == seq)
    if at + 1 >= len(pieces) or not pieces[at + 1].is_line:
        return None
    if at > 0 and not pieces[at - 1].is_line:
        return None
    pieces[at : at + 2] = pieces[at + 1], pieces[at]
    return Case(f"swap {seq} and the next", joined(pieces), seq, ("reordered",))


def duplicate(book: Book, seq: int, gap: int) -> Case:
    """Write a line once more somewhere."""
    pieces = layout(book.data)
    line = next(one for one in pieces if one.is_line and one.seq == seq)
    ends = [len(pieces)] if book.data.endswith(b"\n") else []
    gaps = [*gaps_in(pieces), *ends]
    gap = gaps[gap % len(gaps)]
    named = min(seq, pieces[gap].seq) if gap < len(pieces) else seq
    pieces.insert(gap, line)
    kinds = ("duplicate",) if named == seq else ("reordered",)
    return Case(f"copy {seq} to {gap}", joined(pieces), named, (*kinds, "altered"))


def duplicate_beside(book: Book, seq: int) -> Case:
    """Write a line twice."""
    pieces = layout(book.data)
    at = next(at for at in lines_in(pieces) if pieces[at].seq == seq)
    pieces.insert(at, pieces[at])
    return Case(f"double {seq}", joined(pieces), seq, ("duplicate", "altered"))


def insert(book: Book, gap: int, number: int | None, has_prev: bool) -> Case:
    """Put in a line that nobody wrote; with the right number if none is given.

    Never behind the last line: whoever can write there can go on with the ledger.
    """
    pieces = layout(book.data)
    gaps = [one for one in gaps_in(pieces) if pieces[one].seq < book.seq]
    gap = gaps[gap % len(gaps)]
    right = pieces[gap].seq
    before = [one for one in pieces[:gap] if one.is_line]
    prev = digest_of(before[-1].data[:-1]) if before else beginning_of(book)
    seq = right if number is None else number
    text = _forged(seq, prev if has_prev else "ab" * 32)
    pieces.insert(gap, Piece(text + b"\n", seq, True))
    named, kinds = _of_insertion(seq, right, has_prev)
    name = f"insert {seq} before {right}, {'right' if has_prev else 'wrong'} prev"
    return Case(name, joined(pieces), named, kinds)


def _of_insertion(seq: int, right: int, has_prev: bool) -> tuple[int, tuple[str, ...]]:
    if seq == right:
        return right, ("duplicate",) if has_prev else ("inserted",)
    if has_prev:
        return right, ("altered",)
    return (right, ("reordered", "missing")) if seq > right else (seq, ("duplicate",))


def _forged(seq: int, prev: str) -> bytes:
    book = Book()
    book.refuse("forged")
    head = b'{"v":1,"event":"refused","seq":%d,"prev":"%b"' % (seq, prev.encode())
    return head + book.texts[0].partition(b'"prev":"' + GENESIS.encode() + b'"')[2]


def _a_line(draw: st.DrawFn, book: Book) -> int:
    return draw(st.integers(book.first, book.seq - 1))


def _a_place(draw: st.DrawFn) -> int:
    return draw(st.integers(0, 1_000))


def _flip(draw: st.DrawFn, book: Book) -> Case:
    at = draw(st.integers(0, len(book.data) - 1 - len(book.data.rpartition(b"\n")[2])))
    return flip(book, at, draw(st.integers(1, 255)))


def _flip_last(draw: st.DrawFn, book: Book) -> Case:
    end = len(book.data) - len(book.data.rpartition(b"\n")[2])
    at = draw(st.integers(end - len(book.texts[-1]) - 1, end - 1))
    return flip(book, at, draw(st.integers(1, 255)))


def _drop(draw: st.DrawFn, book: Book) -> Case | None:
    return drop(book, draw(st.lists(st.integers(book.first, book.seq - 1), max_size=4)))


def _truncate(draw: st.DrawFn, book: Book) -> Case | None:
    return truncate(book, draw(st.integers(0, len(book.data))))


def _roll_back(draw: st.DrawFn, book: Book) -> Case | None:
    ends = [at + 1 for at, byte in enumerate(book.data) if byte == 10]
    return truncate(book, draw(st.sampled_from([0, *ends])))


def _renew(draw: st.DrawFn, book: Book) -> Case | None:
    seals = draw(st.sampled_from(["kept", "fitted", "signed"]))
    return renew(book, _a_line(draw, book), _changed, seals)


def _changed(text: bytes) -> bytes:
    return text.replace(b'"door":"stdio"', b'"door":"http"').replace(
        b'"outcome":"ok"', b'"outcome":"no"'
    )


def _same(text: bytes) -> bytes:
    return text


def _replace(draw: st.DrawFn, book: Book) -> Case | None:
    return replace_from(book, _a_line(draw, book), draw(st.text("cs", max_size=6)))


def _insert(draw: st.DrawFn, book: Book) -> Case:
    number = draw(st.none() | st.integers(0, book.seq + 3))
    return insert(book, _a_place(draw), number, draw(st.booleans()))


Draws = Callable[[st.DrawFn, Book], Case | None]

CASES: dict[str, Draws] = {
    "flip": _flip,
    "flip in the last line": _flip_last,
    "drop": _drop,
    "truncate": _truncate,
    "roll back": _roll_back,
    "move": lambda draw, book: move(book, _a_line(draw, book), _a_place(draw)),
    "move to the end": lambda draw, book: move_last(book, _a_line(draw, book)),
    "swap": lambda draw, book: swap(book, _a_line(draw, book)),
    "duplicate": lambda draw, book: duplicate(book, _a_line(draw, book), _a_place(draw)),
    "duplicate beside": lambda draw, book: duplicate_beside(book, _a_line(draw, book)),
    "insert": _insert,
    "renew": _renew,
    "strip": lambda draw, book: renew(book, _a_line(draw, book), _same, "stripped"),
    "sign anew": lambda draw, book: renew(book, _a_line(draw, book), _same, "signed"),
    "replace": _replace,
    "swap notes": lambda draw, book: swap_notes(book, _a_place(draw), _a_place(draw)),
    "respell": lambda draw, book: respell(book, _a_place(draw)),
}


@st.composite
def cases(draw: st.DrawFn, book: Book, names: Sequence[str] = tuple(CASES)) -> Case | None:
    """A case of one of these names; None where the ledger has nothing that can be damaged so."""
    return CASES[draw(st.sampled_from(names))](draw, book)
