"""Checkpoint lines: not a byte of one can change unseen, and what they say comes back."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.ledgers import NEXT, OURS, THEIRS, Book

from mcp_envelope.core.entry import MOST
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.merkle import EMPTY, Frontier, leaf_hash
from mcp_envelope.core.notes import MOST_SIGNATURES, base64_of
from mcp_envelope.core.seal import (
    ORIGIN,
    Removed,
    Sealed,
    origin_of,
    read_sealed,
    sealed_line,
)
from mcp_envelope.core.signing import Signer, is_signed_by

TIME = "2026-11-20T00:00:00.000000Z"


def a_line(*signers: Signer, instance: str = "time-4c1a", remarks: tuple[str, ...] = ()) -> bytes:
    """A checkpoint line, number 1000."""
    return sealed_line(
        1_000,
        "ab" * 32,
        time=TIME,
        instance=instance,
        origin=origin_of("cd" * 32),
        root=EMPTY,
        signers=signers or (OURS,),
        remarks=remarks,
    )


def read(text: bytes) -> Sealed:
    """What is in it; EnvelopeError too where it is no JSON."""
    try:
        warnings = json.loads(text)["warnings"]
        assert isinstance(warnings, list)
    except (ValueError, KeyError, TypeError):
        raise EnvelopeError("no line at all") from None
    return read_sealed(text, warnings)


def checked(text: bytes, *signers: Signer) -> Sealed:
    """The same; EnvelopeError also where one of these, else we, have not signed it."""
    sealed = read(text)
    if not all(is_signed_by(sealed.note, one.key) for one in signers or (OURS,)):
        raise EnvelopeError("not signed by all of them")
    return sealed


def test_the_bytes_of_a_checkpoint_line_are_these() -> None:
    """Ledgers written once must verify for ever, so not a byte of this may change."""
    line = a_line(remarks=("a remark",))
    blank, _, note = line.partition(b'"mcp-envelope/ledger/')
    commitment = sha256(blank + b'""]}').hexdigest()
    text = (
        "mcp-envelope/ledger/cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd\n1000\n"
        f"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\nline sha256:{commitment}\n"
    )
    assert blank.decode() == (
        '{"v":1,"event":"checkpoint","seq":1000,"prev":"' + "ab" * 32 + '","time":"' + TIME + '",'
        '"instance":"time-4c1a","kind":null,"tool":null,"definition":null,"peer":null,"grant":null,'
        '"request_id":null,"client_id":null,"run_id":null,"trace_id":null,"correlation_id":null,'
        '"door":null,"dialect":null,"outcome":"ok","error":null,"duration_ms":null,'
        '"input":{"state":"absent"},"output":{"state":"absent"},"warnings":["a remark",'
        f'"key: {OURS.key}",'
    )
    assert json.loads(b'"mcp-envelope/ledger/' + note.removesuffix(b"]}")) == (
        f"{text}\n{OURS.sign(text)}\n"
    )


@given(
    st.lists(st.sampled_from([OURS, NEXT, THEIRS]), min_size=1, max_size=3, unique=True),
    st.lists(st.text(max_size=30), max_size=3),
    st.text(max_size=20),
)
def test_a_checkpoint_line_says_what_was_put_into_it(
    signers: list[Signer], remarks: list[str], instance: str
) -> None:
    """Whatever the remarks and the name of the gateway are."""
    text = a_line(*signers, instance=instance, remarks=tuple(remarks))
    sealed = read(text)
    assert sealed.keys[-len(signers) :] == tuple(one.key for one in signers)
    assert (sealed.checkpoint.size, sealed.checkpoint.root) == (1_000, EMPTY)
    assert sealed.checkpoint.origin == ORIGIN + "cd" * 16
    assert all(is_signed_by(sealed.note, one.key) for one in signers)


@given(st.data())
def test_any_flipped_byte_in_a_checkpoint_line_is_an_error(data: st.DataObject) -> None:
    """Wherever it is, by one key or two."""
    signers = data.draw(st.sampled_from([(OURS,), (OURS, NEXT)]))
    text = bytearray(a_line(*signers, remarks=("a remark",)))
    at, mask = data.draw(st.integers(0, len(text) - 1)), data.draw(st.integers(1, 255))
    text[at] ^= mask
    with pytest.raises(EnvelopeError):
        checked(bytes(text), *signers)


def test_every_byte_of_a_checkpoint_line_counts() -> None:
    """All of them, with one bit changed."""
    text = a_line()
    for at in range(len(text)):
        with pytest.raises(EnvelopeError):
            checked(text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :])


@given(st.data())
def test_nothing_can_be_put_into_a_checkpoint_line_or_taken_out(data: st.DataObject) -> None:
    """Not even white space, or another spelling of the same JSON."""
    text = a_line()
    at = data.draw(st.integers(0, len(text)))
    more = data.draw(st.sampled_from([b" ", b"\t", b"\\n", b"0", b'"', b"=", b"\r"]))
    with pytest.raises(EnvelopeError):
        checked(text[:at] + more + text[at:])
    end = data.draw(st.integers(at, len(text)))
    if at < end:
        with pytest.raises(EnvelopeError):
            checked(text[:at] + text[end:])
    with pytest.raises(EnvelopeError):
        checked(text.replace("—".encode(), b"\\u2014"))


@pytest.mark.parametrize("warnings", [[], ["x"], ["mcp-envelope/ledger/x\n"]])
def test_a_line_without_a_checkpoint_is_refused(warnings: list[str]) -> None:
    """Whatever its event is."""
    book = Book()
    book.call()
    with pytest.raises(EnvelopeError):
        read_sealed(book.texts[0], warnings)
    with pytest.raises(EnvelopeError):
        read_sealed(a_line(), warnings)


def test_a_checkpoint_that_does_not_commit_to_its_line_is_refused() -> None:
    """A checkpoint of somewhere else, put into a line, is not this line's."""
    one, other = a_line(), a_line(instance="other")
    note = one[one.rindex(b'"mcp-envelope') :]
    with pytest.raises(EnvelopeError, match="not the one that was signed"):
        read(other[: other.rindex(b'"mcp-envelope')] + note)


def test_a_checkpoint_that_fits_no_line_is_not_written() -> None:
    """Rather than one that nobody could read."""
    long = tuple("x" * 4_000 for _ in range(20))
    with pytest.raises(EnvelopeError, match="does not fit"):
        a_line(remarks=long)
    signers = [Signer(f"key-{number}", bytes([number]) * 32) for number in range(MOST_SIGNATURES)]
    assert len(a_line(*signers)) < MOST
    assert len(read(a_line(*signers)).keys) == MOST_SIGNATURES


@given(st.integers(1, 2**63) | st.integers(0, 62).map(lambda bits: (2 << bits) - 1))
def test_what_is_kept_of_removed_lines_goes_there_and_back(count: int) -> None:
    """One hash for each bit of their number, however many there are."""
    nodes = tuple(sha256(b"%d" % number).digest() for number in range(count.bit_count()))
    removed = Removed(count, "ef" * 32, nodes)
    assert Removed.parse(str(removed)) == removed
    assert str(removed).startswith(f"removed: lines 0 to {count - 1}, the last sha256:efef")
    for other in (nodes[:-1], (*nodes, EMPTY)):
        assert Removed.parse(str(Removed(count, "ef" * 32, other))) is None


def test_the_longest_remark_of_removed_lines_fits_into_a_line() -> None:
    """That of 2^63 - 1 lines, which has 63 hashes."""
    removed = Removed((1 << 63) - 1, "ef" * 32, tuple(EMPTY for _ in range(63)))
    text = a_line(remarks=(str(removed),))
    assert Removed.parse(json.loads(text)["warnings"][0]) == removed
    assert read(text).keys == (OURS.key,)


GOOD = str(Removed(3, "ef" * 32, (EMPTY, EMPTY)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "removed: lines",
        GOOD.replace("0 to 2", "0 to 02"),
        GOOD.replace("0 to 2", "0 to -1"),
        GOOD.replace("0 to 2", "1 to 2"),
        GOOD.replace("0 to 2", "0 to \u0662"),
        GOOD.replace("efef", "EFEF"),
        GOOD.replace("tree ", "tree  "),
        GOOD + " ",
        GOOD + "\n",
        GOOD[:-1],
        GOOD.replace(base64_of(EMPTY), base64_of(EMPTY[:-1])),
    ],
)
def test_what_is_no_remark_of_removed_lines_is_none(text: str) -> None:
    """Of which there is one spelling only."""
    assert Removed.parse(GOOD) is not None
    assert Removed.parse(text) is None


def test_what_is_kept_of_removed_lines_is_their_tree() -> None:
    """It goes on from there."""
    book = Book()
    for _ in range(5):
        book.call()
    book.seal()
    removed = book.remove(7)
    tree = Frontier(removed.count, removed.nodes)
    for text in book.texts:
        tree.add(leaf_hash(text))
    assert tree.root() == book.tree.root()
    assert book.texts[0].startswith(
        b'{"v":1,"event":"settled","seq":7,"prev":"%b"' % (removed.last.encode())
    )
