"""Signed notes and checkpoints as texts: one spelling each, and nothing that hides."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.ledgers import OURS, THEIRS

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.notes import (
    MOST_SIGNATURES,
    Checkpoint,
    Note,
    Signature,
    VerifierKey,
    base64_of,
    bytes_of,
)
from mcp_envelope.core.signing import Signer, is_signed_by

# The example key of c2sp.org/signed-note and of Go's golang.org/x/mod/sumdb/note.
PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PETERS_NOTE = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
    "\n"
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpR"
    "Zb6KE6RyyBwJnAM=\n"
)
TEXT = "mcp-envelope/ledger/x\n7\nqg2bMFKbGzVwCIYqp8XkzWTvOHFDgtwzVbWtiBLRq5Q=\n"


def signed(text: str = TEXT, *signers: Signer) -> Note:
    """A note by those."""
    return Note(text, tuple(one.sign(text) for one in signers or (OURS,)))


def test_the_published_note_is_read_and_right() -> None:
    """That of the specification, made by another implementation."""
    key, note = VerifierKey.parse(PETER), Note.parse(PETERS_NOTE)
    assert (str(key), str(note)) == (PETER, PETERS_NOTE)
    assert is_signed_by(note, key)
    assert not is_signed_by(note, OURS.key)


def test_the_id_of_a_key_is_that_of_the_specification() -> None:
    """The first four bytes of SHA-256 over the name, a newline, 0x01 and the key."""
    key = OURS.key
    data = b"gateway.example\n\x01" + key.public
    assert key.id == hashlib.sha256(data).digest()[:4]
    name, id, rest = str(key).split("+", 2)
    assert (name, bytes.fromhex(id)) == ("gateway.example", key.id)
    assert base64.b64decode(rest) == b"\x01" + key.public


@given(st.binary(min_size=1, max_size=80))
def test_base64_goes_there_and_back(data: bytes) -> None:
    """In the standard alphabet, with padding."""
    assert base64_of(data) == base64.b64encode(data).decode()
    assert bytes_of(base64_of(data), "it") == data


@given(st.binary(min_size=1, max_size=80), st.data())
def test_each_value_has_one_spelling_in_base64(data: bytes, draw: st.DataObject) -> None:
    """Whatever else decodes to the same bytes is refused."""
    text = base64_of(data)
    at = draw.draw(st.integers(0, len(text)))
    more = draw.draw(st.sampled_from(["\n", " ", "=", "==", "\r", "\t", "-", "_", "\x00", "é"]))
    changed = text[:at] + more + text[at:]
    with pytest.raises(EnvelopeError, match="it is not base64"):
        bytes_of(changed, "it")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    if text.endswith("="):
        end = len(text.rstrip("=")) - 1
        other = text[:end] + alphabet[alphabet.index(text[end]) ^ 1] + text[end + 1 :]
        assert base64.b64decode(other) == data
        with pytest.raises(EnvelopeError, match="it is not base64"):
            bytes_of(other, "it")


@pytest.mark.parametrize("text", ["", "A", "AA", "AA=", "AA=A", "====", "A===", "Ab-_"])
def test_what_is_no_base64_is_refused(text: str) -> None:
    """Nothing at all too, as nothing in a note is empty."""
    with pytest.raises(EnvelopeError, match="the root is not base64"):
        bytes_of(text, "the root")


@pytest.mark.parametrize(
    "text,why",
    [
        ("", "no public key"),
        ("gateway", "no public key"),
        (str(OURS.key).replace("gateway.example", ""), "no public key"),
        (str(OURS.key).replace("gateway", "gate way"), "no public key"),
        (str(OURS.key).replace("gateway", "gatewax"), "not the one that its id says"),
        (str(OURS.key).replace(OURS.key.id.hex(), OURS.key.id.hex().upper()), "its id says"),
        (str(OURS.key)[:-1], "not base64"),
        (str(OURS.key) + "=", "not base64"),
        ("x+00000000+" + base64_of(b"\x02" + b"k" * 32), "no Ed25519 key"),
        ("x+00000000+" + base64_of(b"\x01" + b"k" * 31), "no Ed25519 key"),
        ("x+00000000+" + base64_of(b"\x01" + b"k" * 33), "no Ed25519 key"),
    ],
)
def test_what_is_no_public_key_is_refused(text: str, why: str) -> None:
    """And said why."""
    with pytest.raises(EnvelopeError, match=why):
        VerifierKey.parse(text)


def test_a_private_key_in_the_place_of_a_public_one_is_not_repeated() -> None:
    """Whoever pastes the wrong one does not find it in a log."""
    secret = OURS.secret_text()
    for text in (secret, f"  {secret}\n"):
        with pytest.raises(EnvelopeError, match="private key") as found:
            VerifierKey.parse(text)
        assert secret[-20:] not in f"{found.value} {found.value.hint} {found.value!r}"


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=60),
    st.integers(1, MOST_SIGNATURES),
)
def test_notes_go_there_and_back(text: str, count: int) -> None:
    """Any text of lines, and up to sixteen signatures."""
    text += "\n"
    note = signed(text, *(Signer(f"key-{number}", bytes([number]) * 32) for number in range(count)))
    assert Note.parse(str(note)) == note
    assert Note.parse(str(note).encode()) == note
    assert is_signed_by(note, Signer("key-0", bytes(32)).key)


def test_the_text_may_hold_empty_lines() -> None:
    """The last one is where the signatures begin."""
    note = signed("a\n\nb\n")
    assert Note.parse(str(note)) == note


@pytest.mark.parametrize("control", [*range(10), *range(11, 32)])
def test_a_note_holds_no_control_characters(control: int) -> None:
    """But newlines, as the specification says."""
    note = str(signed(f"a{chr(control)}b\n"))
    with pytest.raises(EnvelopeError, match="no signed note"):
        Note.parse(note)


@pytest.mark.parametrize(
    "text,why",
    [
        ("", "no signed note"),
        ("\n", "no signed note"),
        ("text\n", "no signed note"),
        ("text\n\n", "cannot be read"),
        (str(signed())[:-1], "no signed note"),
        (str(signed()) + "\n", "cannot be read"),
        (str(signed()) + "more\n", "cannot be read"),
        (str(signed()).replace("—", "-"), "cannot be read"),
        (str(signed()).replace("— gateway", "—  gateway"), "cannot be read"),
        (str(signed()).replace("— gateway", "— gate+way"), "cannot be read"),
        (f"{TEXT}\n— x {base64_of(b'abcd')}\n", "too short"),
        (f"{TEXT}\n— x AbC\n", "not base64"),
    ],
)
def test_what_is_no_note_is_refused(text: str, why: str) -> None:
    """And said why."""
    with pytest.raises(EnvelopeError, match=why):
        Note.parse(text)


def test_what_is_not_utf_8_is_refused() -> None:
    """Halves of surrogate pairs too, which JSON can bring."""
    for data in (b"\xff\n\n", "\ud800\n\n"):
        with pytest.raises(EnvelopeError, match="not UTF-8"):
            Note.parse(data)


def test_a_note_has_sixteen_signatures_at_most() -> None:
    """What nobody needs is not looked at."""
    one = OURS.sign(TEXT)
    most = Note(TEXT, (one,) * MOST_SIGNATURES)
    assert Note.parse(str(most)) == most
    with pytest.raises(EnvelopeError, match="more than 16"):
        Note.parse(str(Note(TEXT, (one,) * (MOST_SIGNATURES + 1))))


@given(st.integers(0, 10**19 - 1), st.binary(min_size=32, max_size=32))
def test_checkpoints_go_there_and_back(size: int, root: bytes) -> None:
    """With extension lines and without."""
    for extensions in ((), ("line sha256:ab",), ("one", "two")):
        checkpoint = Checkpoint("origin", size, root, extensions)
        assert Checkpoint.parse(checkpoint.text) == checkpoint


@pytest.mark.parametrize(
    "text,why",
    [
        ("", "no checkpoint"),
        ("origin\n7\n", "no checkpoint"),
        (TEXT[:-1], "no checkpoint"),
        (TEXT + "\n", "no checkpoint"),
        ("\n" + TEXT.partition("\n")[2], "no checkpoint"),
        (TEXT + "\nextension\n", "no checkpoint"),
        (TEXT.replace("\n7\n", "\n07\n"), "no number"),
        (TEXT.replace("\n7\n", "\n-7\n"), "no number"),
        (TEXT.replace("\n7\n", "\n\uff17\n"), "no number"),
        (TEXT.replace("\n7\n", "\n" + "1" * 20 + "\n"), "no number"),
        (TEXT.replace("=\n", "\n"), "not base64"),
        (TEXT.replace("5Q=\n", "5R=\n"), "not base64"),
        ("origin\n7\n" + base64_of(b"x" * 31) + "\n", "no SHA-256"),
    ],
)
def test_what_is_no_checkpoint_is_refused(text: str, why: str) -> None:
    """And said why."""
    with pytest.raises(EnvelopeError, match=why):
        Checkpoint.parse(text)


def test_a_signature_that_claims_a_key_and_is_wrong_is_an_error() -> None:
    """Of another text, cut short, too long, or one right and one wrong."""
    right, other = OURS.sign(TEXT), OURS.sign("other\n")
    assert is_signed_by(Note(TEXT, (right,)), OURS.key)
    for wrong in (
        (other,),
        (right, other),
        (other, right),
        (Signature(right.name, right.key_id, right.value[:-1]),),
        (Signature(right.name, right.key_id, right.value + b"x"),),
        (Signature(right.name, right.key_id, b"x"),),
    ):
        with pytest.raises(EnvelopeError, match=r"signature by gateway\.example is wrong"):
            is_signed_by(Note(TEXT, wrong), OURS.key)


def test_a_signature_by_somebody_else_is_none_of_ours() -> None:
    """Another name with the same id, or the same name with another."""
    right = OURS.sign(TEXT)
    for other in (
        Signature("somebody", right.key_id, right.value),
        Signature(right.name, b"\x00" * 4, right.value),
        THEIRS.sign(TEXT),
    ):
        assert not is_signed_by(Note(TEXT, (other,)), OURS.key)


@pytest.mark.parametrize("public", [b"\x00" * 32, b"\xff" * 32, b"\x01" + b"\x00" * 31])
def test_keys_that_are_no_points_of_the_curve_sign_nothing(public: bytes) -> None:
    """They are an error of the note, and none of the program."""
    key = VerifierKey("odd", public)
    assert VerifierKey.parse(str(key)) == key
    note = Note(TEXT, (Signature("odd", key.id, b"\x07" * 64),))
    with pytest.raises(EnvelopeError, match="wrong"):
        is_signed_by(note, key)


def test_private_keys_go_there_and_back_and_nowhere_else() -> None:
    """Neither what they print nor what goes wrong with them tells them."""
    secret = OURS.secret_text()
    again = Signer.parse(f"\n {secret}\n")
    assert (again.key, again.sign(TEXT)) == (OURS.key, OURS.sign(TEXT))
    hidden = (secret.rpartition("+")[2], bytes(range(32)).hex(), repr(bytes(range(32))))
    assert not any(one in f"{OURS!r} {OURS} {OURS.key!r}" for one in hidden)
    for bad in (
        secret.replace("PRIVATE+KEY+", ""),
        secret[:-4],
        secret + "A",
        secret.replace("gateway", "gatewax"),
        secret.replace("gateway", "gate way"),
        secret.replace("gateway", 'gate"way'),
        secret.replace("+AQ", "+Ag").replace("+AA", "+Ag"),
        "PRIVATE+KEY+" + secret.rpartition("+")[2],
    ):
        with pytest.raises(EnvelopeError) as found:
            Signer.parse(bad)
        told = f"{found.value} {found.value!r} {found.value.hint} {found.value.__context__!r}"
        assert not any(part in told for part in (*hidden, bad[-12:]))


@pytest.mark.parametrize("name", ["", "a b", "a+b", 'a"b', "a\\b", "a\nb", "é", "a\u202eb", "\x7f"])
def test_a_key_has_a_name_that_a_line_can_hold_as_it_is(name: str) -> None:
    """A checkpoint line repeats it, and is compared byte by byte."""
    with pytest.raises(EnvelopeError, match="the name of a key"):
        Signer(name, bytes(32))
