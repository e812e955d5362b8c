"""What each family of plug-ins must offer: one Protocol a family, in the words of the core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from .document import Document
from .entry import Facts, Receipt
from .errors import Problem
from .message import Message
from .seal import Removed, Signs


@dataclass(frozen=True, slots=True)
class Encoded:
    """What encoding a message gave.

    ``lost`` are pointers into the document that the message was read from (``/<field>`` for a
    message made by hand), ``filled`` pointers into ``document``.
    """

    document: Document
    lost: tuple[str, ...] = ()
    filled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Filling:
    """Values for what a dialect requires and a message may lack; else placeholders are used.

    The names are those of ``convert``'s options, with underscores.
    """

    values: Mapping[str, str] = field(default_factory=dict)


class Dialect(Protocol):
    """A wire format. ``parts`` names what it consists of, each with its published schema."""

    id: str
    parts: Mapping[str, str]

    def detect(self, value: object) -> str | None:
        """The part that a plain value looks like, valid or not; None if it is not ours."""

    def part_of(self, value: object) -> str:
        """The part to read a value as, once it is known to be this dialect's."""

    def problems(self, document: Document, part: str) -> list[Problem]:
        """Everything that is wrong, and warnings, with the schema and beyond it."""

    def decode(self, document: Document, part: str) -> Message:
        """The message; EnvelopeError if the document breaks the part's schema."""

    def encode(self, message: Message, filling: Filling) -> Encoded:
        """The envelope; EnvelopeError if the dialect cannot say this at all."""

    def schemas(self) -> Mapping[str, Document]:
        """The published schemas by file name."""


class LedgerError(OSError):
    """A ledger that cannot be opened as things stand: taken, damaged, out of reach.

    The settings may be right; the command line ends with 3. ``taken`` tells whether another
    process writes it, ``holder`` is that process's id where it is known. ``reached`` is the
    number of the line from which on it cannot be read, where it breaks off.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        taken: bool = False,
        holder: int | None = None,
        reached: int | None = None,
    ) -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.message = message
        self.hint = hint
        self.taken = taken
        self.holder = holder
        self.reached = reached


#: What a line survives before ``append`` returns: the process, or a loss of power as well.
Durability = Literal["process", "power"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealing:
    """How a ledger gets its checkpoints: who signs them, and after how many lines.

    ``every`` is the most lines without one; 0 for none but those that are asked for. ``now``
    and ``instance`` are what their lines say. ``publish`` is handed each note once its line is
    written, and must neither wait nor raise.
    """

    signers: Sequence[Signs]
    now: Callable[[], str]
    instance: str
    every: int = 1_000
    publish: Callable[[bytes], None] = lambda note: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """How a ledger is written."""

    durability: Durability = "process"
    sealing: Sealing | None = None


class Ledger(Protocol):
    """A record that is being written: one chain of lines, one writer, one event loop.

    ``seq`` is given in the order in which ``append`` was called, without gaps: what could not
    be written leaves its place to what comes next.
    """

    @property
    def url(self) -> str:
        """Where it is, without secrets."""

    async def append(self, facts: Facts, bodies: Sequence[bytes] = ()) -> Receipt:
        """Write a line; returns once it is as durable as the store promises.

        ``bodies`` are canonical forms that are kept beside it, each under its SHA-256.

        What was begun is finished: where the caller is cancelled meanwhile, CancelledError comes
        after the line was written, never instead; if it could not be, with the error as its cause.

        EnvelopeError RECORD_UNAVAILABLE, with the reason and without paths or secrets, if it
        was not written.
        """

    async def seal(self) -> Receipt | None:
        """Write a checkpoint line over all lines so far.

        None, and nothing is written, if the last line is one, if there is no line yet, or if
        nothing was said of signers. EnvelopeError as with :meth:`append`.
        """

    async def remove(self, count: int, archive: Callable[[bytes], object] | None = None) -> int:
        """Take the lines before number ``count`` out of the ledger; how many were taken.

        It takes fewer: what is left begins at a multiple of 256, and a checkpoint is never the
        last of what goes. ``archive`` is handed each line, with its newline, before it goes, and
        then ``b""``: all that it was handed has to be safe when that returns. If it raises
        nothing goes. A checkpoint line says what was removed, and is written first.
        ConfigError where the store cannot do it, or nobody signs.
        """

    async def close(self) -> None:
        """Let go of it. A second time does nothing."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A line of a ledger with its place, and the place where what follows begins.

    A place is a number that a source understands: the ``seq`` of the line or its offset.
    """

    place: int
    after: int
    line: bytes


class Source(Protocol):
    """A ledger that is read, while it is written or later. It changes nothing of it.

    LedgerError from any method where it cannot be read, or holds less than it should.
    """

    @property
    def url(self) -> str:
        """Where it is, without secrets."""

    @property
    def size(self) -> int:
        """About how much there is to read, in the unit of places; for showing progress."""

    def physical(self) -> Iterator[bytes]:
        """All of it as it lies there, cut behind each newline; of what is torn, all pieces.

        The last piece may lack its newline.
        """

    def after(self, place: int) -> Iterator[Placed]:
        """The lines from a place on, 0 for the first; without what is torn, as far as is known."""

    def at(self, place: int) -> bytes:
        """The line at a place, without its newline. LedgerError if there is none."""

    def place_of(self, seq: int) -> int | None:
        """The place of the line with that number, None if there is none."""

    def bounds(self) -> tuple[int, int]:
        """The number of the first line that is there, and that of the line to come."""

    def subtree(self, level: int, index: int) -> bytes:
        """The hash of a complete subtree, for proofs."""

    def removed(self) -> Removed | None:
        """What was taken out of it, as the newest checkpoint line that says so says it."""

    def body(self, digest: str) -> bytes | None:
        """What was kept under a SHA-256 (hex), None if nothing was."""

    def close(self) -> None:
        """Let go of it."""


class Store(Protocol):
    """A way to keep a ledger."""

    def open(self, place: str, writing: Writing = ...) -> Ledger:
        """Open the ledger at ``place``, which is what a URL has after its scheme.

        ConfigError for a place that makes no sense, LedgerError for one that cannot be opened.
        """

    def read(self, place: str) -> Source:
        """Read the ledger at ``place``. The same errors; it is never made or changed."""
