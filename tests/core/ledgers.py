"""Ledgers in memory, written as the stores write them, and strategies for all their shapes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256

from hypothesis import strategies as st
from tests.core.facts import DIGEST

from mcp_envelope.core.entry import GENESIS, Body, Facts, line, started, stopped
from mcp_envelope.core.merkle import Frontier, leaf_hash
from mcp_envelope.core.notes import Note, VerifierKey
from mcp_envelope.core.seal import Removed, origin_of, read_sealed, sealed_line
from mcp_envelope.core.signing import Signer
from mcp_envelope.core.verdict import Verdict
from mcp_envelope.core.verification import Verifier
from mcp_envelope.stores.tail import Torn

OURS = Signer("gateway.example", bytes(range(32)))
NEXT = Signer("gateway.example", bytes(range(32, 64)))
THEIRS = Signer("gateway.example", bytes(range(64, 96)))
TIME = "2026-11-20T00:%02d:%02d.%06dZ"


def pieces_of(data: bytes) -> list[bytes]:
    """What lies there, cut behind each newline."""
    return [part for part in (*(one + b"\n" for one in _but_last(data)), _last(data)) if part]


def _but_last(data: bytes) -> list[bytes]:
    return data.split(b"\n")[:-1]


def _last(data: bytes) -> bytes:
    return data.rpartition(b"\n")[2]


class Book:
    """A ledger that is written: ``data`` is what lies there, ``texts`` are its lines."""

    def __init__(self, *signers: Signer, every: int = 0, instance: str = "time-4c1a") -> None:
        self.signers: Sequence[Signer] = signers or (OURS,)
        self.every = every
        self.instance = instance
        self.data = b""
        self.texts: list[bytes] = []
        self.first = 0
        self.removed: Removed | None = None
        self.origin = ""
        self.prev = GENESIS
        self.tree = Frontier()
        self.seals: dict[int, Note] = {}
        self.tears = 0
        self._torn = Torn()
        self._calls = 0

    @property
    def seq(self) -> int:
        """The number of the line to come."""
        return self.first + len(self.texts)

    @property
    def keys(self) -> list[VerifierKey]:
        """Those of its signers."""
        return [one.key for one in self.signers]

    @property
    def kept(self) -> Note:
        """Its newest checkpoint, as somebody outside keeps it."""
        return Note.parse(str(self.seals[max(self.seals)]))

    def now(self) -> str:
        """A time that is later with each line."""
        return TIME % (self.seq // 60 % 60, self.seq % 60, self.seq % 1_000_000)

    def call(self, tool: str = "get_time") -> None:
        """A call that went well."""
        self.settle(self.admit(tool))

    def admit(self, tool: str = "get_time") -> str:
        """The beginning of a call; its id."""
        self._calls += 1
        id = f"0192f0c1-7777-7000-8000-{self._calls:012x}"
        self.write(self._facts("admitted", id, tool))
        return id

    def settle(self, id: str, tool: str = "get_time") -> None:
        """The end of a call."""
        facts = self._facts("settled", id, tool)
        output = Body(digest=DIGEST, size=112)
        self.write(facts._replace(outcome="ok", duration_ms=12.345, output=output))

    def refuse(self, message: str = "no") -> None:
        """A call that was refused."""
        facts = self._facts("refused", f"refused-{self.seq}", "rm")
        error = {"code": "POLICY_DENIED", "message": message}
        self.write(facts._replace(outcome="POLICY_DENIED", error=error))

    def start(self) -> None:
        """A gateway begins."""
        self.write(started(time=self.now(), instance=self.instance))

    def stop(self) -> None:
        """A gateway ends in order."""
        self.write(stopped(time=self.now(), instance=self.instance, duration_ms=9.5))

    def write(self, facts: Facts) -> None:
        """Any line, and a checkpoint line where it is due."""
        torn = self._torn
        warnings = (*((torn.warning(),) if torn else ()), *facts.warnings)
        self._add(line(facts._replace(warnings=warnings), self.seq, self.prev))
        if self.every and self.seq - max(self.seals, default=0) >= self.every:
            self.seal()

    def seal(self, *remarks: str, signers: Sequence[Signer] = ()) -> Note:
        """A checkpoint line."""
        seq, torn = self.seq, self._torn
        text = sealed_line(
            seq,
            self.prev,
            time=self.now(),
            instance=self.instance,
            origin=self.origin,
            root=self.tree.root(),
            signers=signers or self.signers,
            remarks=(*((torn.warning(),) if torn else ()), *remarks),
        )
        self._add(text)
        return self.seals[seq]

    def tear(self, done: int) -> None:
        """A write that broke off after so many bytes, at least 1 and without the newline."""
        facts = self._facts("refused", "torn", "get_time")
        torn = self._torn
        warnings = (torn.warning(),) if torn else ()
        text = line(facts._replace(warnings=warnings), self.seq, self.prev)
        data = torn.ending + text
        data = data[: max(1, min(done, len(data)))]
        torn.add(data)
        self.data += data
        self.tears += 1

    def remove(self, count: int) -> Removed:
        """Take the lines before number ``count`` out, as retention does."""
        tree = Frontier()
        for text in self.texts[:count]:
            tree.add(leaf_hash(text))
        last = sha256(self.texts[count - 1]).hexdigest()
        self.removed = Removed(count, last, tuple(tree.nodes))
        self.seal(str(self.removed))
        self.texts = self.texts[count:]
        self.first = count
        self.data = b"".join(text + b"\n" for text in self.texts)
        return self.removed

    def add_forged(self, text: bytes) -> None:
        """A line of anybody's, as if it were ours."""
        self._add(text)

    def _facts(self, event: str, id: str, tool: str) -> Facts:
        return Facts(
            event=event,  # type: ignore[arg-type]
            time=self.now(),
            instance=self.instance,
            kind=f"mcp/request:tools/call:{tool}",
            tool=tool,
            peer="stdio:1234",
            request_id=id,
            client_id=self._calls,
            door="stdio",
            dialect="mcp/2025-11-25",
            input=Body(digest=DIGEST, size=31),
        )

    def _add(self, text: bytes) -> None:
        if self.seq == 0:
            self.origin = origin_of(sha256(text).hexdigest())
        if text.startswith(b'{"v":1,"event":"checkpoint"'):
            self.seals[self.seq] = note_of(text)
        self.data += self._torn.ending + text + b"\n"
        self._torn, self.tears = Torn(), 0
        self.prev = sha256(text).hexdigest()
        self.tree.add(leaf_hash(text))
        self.texts.append(text)


def note_of(text: bytes) -> Note:
    """The note in a checkpoint line."""
    return read_sealed(text, json.loads(text)["warnings"]).note


def verdict_of(
    data: bytes | Sequence[bytes],
    keys: Iterable[VerifierKey] = (),
    known: Sequence[Note] = (),
    removed: Removed | None = None,
    sizes: Iterable[int] = (),
) -> Verdict:
    """What the verifier of the core says of what lies there."""
    verifier = Verifier(keys, known, removed, sizes)
    for piece in pieces_of(data) if isinstance(data, bytes) else data:
        if not verifier.feed(piece):
            break
    return verifier.finish()


STEPS = ("call", "call", "admit", "refuse", "start", "stop", "seal", "tear", "rotate")


@st.composite
def books(draw: st.DrawFn, seals: int = 1, steps: Sequence[str] = STEPS) -> Book:
    """A good ledger of any shape, with so many checkpoints or more; the last line is one."""
    book = Book()
    names = draw(st.lists(st.sampled_from(steps), max_size=14))
    for name in names:
        if name == "seal":
            if book.seq and book.seq - 1 not in book.seals:
                book.seal()
        elif name == "tear":
            book.tear(draw(st.integers(1, 400) | st.just(10_000)))
        elif name == "rotate":
            if book.seq and list(book.signers) == [OURS]:
                book.seal(signers=(NEXT, OURS))
                book.signers = (NEXT,)
        else:
            getattr(book, name)()
    if book.tears > 1:
        book.call()  # One unfinished line may end a ledger; of more only the next one can tell.
    if book.seq and book.seq - 1 not in book.seals:
        book.seal()
    while len(book.seals) < seals:
        book.call()
        book.seal()
    return book
