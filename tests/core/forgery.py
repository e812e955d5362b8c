"""What somebody can do to a ledger who renews all that can be renewed without the key."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256

from tests.core.cases import Case, layout
from tests.core.ledgers import NEXT, OURS, THEIRS, Book

from mcp_envelope.core.entry import GENESIS
from mcp_envelope.core.merkle import Frontier, leaf_hash
from mcp_envelope.core.notes import Signature
from mcp_envelope.core.seal import Signs, sealed_line


def digest_of(text: bytes) -> str:
    """What `prev` behind a line says."""
    return sha256(text).hexdigest()


def beginning_of(book: Book) -> str:
    """What `prev` of the first line says."""
    return book.removed.last if book.removed else GENESIS


def renew(book: Book, seq: int, change: Callable[[bytes], bytes], seals: str) -> Case | None:
    """Change a line, and ``prev`` of all behind it.

    With checkpoint lines nothing more is done (``seals`` is ``kept``), or they are made to fit,
    under signatures that then are wrong (``fitted``) or another key's (``signed``), or those are
    left out (``stripped``).
    """
    if any(not one.is_line for one in layout(book.data)):
        return None
    made = _Renewal(book)
    for number, text in enumerate(book.texts, book.first):
        made.add(change(text) if number == seq else text, number, seals if number >= seq else "")
    named = min((one for one in book.seals if one >= seq), default=None)
    if made.data == book.data or named is None:
        return None
    kinds = ("altered", "root", "signature", "unsigned", "fork")
    needs = "key" if seals == "signed" else ""
    named = 0 if made.origin != book.origin else named
    return Case(f"renew from {seq}, checkpoints {seals}", made.data, named, kinds, needs)


class _Renewal:
    """A ledger that is written anew."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.data = b""
        self.prev = beginning_of(book)
        removed = book.removed
        self.tree = Frontier(book.first, removed.nodes if removed else ())
        self.origin = book.origin

    def add(self, text: bytes, seq: int, seals: str) -> None:
        """Its next line."""
        if seals:
            head, mark, rest = text.partition(b'"prev":"')
            text = head + mark + self.prev.encode() + rest[64:]
            if seq in self.book.seals and seals != "kept":
                text = self._sealed(text, seq, seals)
        if seq == 0:
            self.origin = "mcp-envelope/ledger/" + digest_of(text)[:32]
        self.data += text + b"\n"
        self.prev = digest_of(text)
        self.tree.add(leaf_hash(text))

    def _sealed(self, text: bytes, seq: int, seals: str) -> bytes:
        if seals == "stripped":
            return text[: text.rindex(b"\\n\\n")] + b'\\n\\n"]}'
        said = json.loads(text)
        signers: list[Signs] = [THEIRS]
        if seals == "fitted":
            signers = [_Parrot(one) for one in self.book.seals[seq].signatures]
        return sealed_line(
            seq,
            self.prev,
            time=said["time"],
            instance=said["instance"],
            origin=self.origin,
            root=self.tree.root(),
            signers=signers,
            remarks=[one for one in said["warnings"][:-1] if not one.startswith("key: ")],
        )


class _Parrot:
    """Has no key: it repeats a signature that it has seen."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.key = next(one.key for one in (OURS, NEXT) if signature.is_by(one.key))

    def sign(self, text: str) -> Signature:
        """The signature of another text."""
        return self.signature


def replace_from(book: Book, seq: int, steps: str) -> Case | None:
    """Put another history in the place of all lines from number ``seq`` on.

    Of its ``steps`` ``c`` is a call and ``s`` a checkpoint line, by another key.
    """
    if any(not one.is_line for one in layout(book.data)):
        return None
    other = Book(THEIRS, instance="other")
    other.first = book.first
    removed = book.removed
    other.tree = Frontier(book.first, removed.nodes if removed else ())
    other.prev, other.origin = beginning_of(book), book.origin
    for text in book.texts[: seq - book.first]:
        other.add_forged(text)
    other.seals.clear()
    for step in steps:
        if step == "c":
            other.call()
        elif other.seq:
            other.seal()
    if other.data == book.data:
        return None
    kept = book.seq - 1
    first = min((one for one in other.seals if one <= kept), default=None)
    named = first if first is not None else min(kept, other.seq)
    named = 0 if seq == 0 and other.seq else named
    kinds = ("fork", "signature", "unsigned", "truncated")
    needs = "kept" if not other.seals else "key"
    return Case(f"replace from {seq} by {steps or 'nothing'}", other.data, named, kinds, needs)


def swap_notes(book: Book, one: int, other: int) -> Case | None:
    """Swap the checkpoints in two checkpoint lines."""
    seals = sorted(book.seals)
    if len(seals) < 2:
        return None
    first = seals.pop(one % len(seals))
    first, second = sorted((first, seals[other % len(seals)]))
    notes = [str(book.seals[seq]).replace("\n", "\\n").encode() for seq in (first, second)]
    mark = b"\x00" * 8
    data = book.data.replace(notes[0], mark).replace(notes[1], notes[0]).replace(mark, notes[1])
    return Case(f"swap the notes of {first} and {second}", data, first, ("altered",))


def respell(book: Book, at: int) -> Case:
    """Write the base64 of a signature in another way, of the same bytes."""
    seals = sorted(book.seals)
    seq = seals[at % len(seals)]
    line = next(one.data for one in layout(book.data) if one.is_line and one.seq == seq)
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    end = line.rindex(b'=\\n"]}') - 1
    other = digits[digits.index(chr(line[end])) ^ 1].encode()
    changed = line[:end] + other + line[end + 1 :]
    return Case(f"respell {seq}", book.data.replace(line, changed), seq, ("altered",))
