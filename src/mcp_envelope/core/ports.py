"""What each family of plug-ins must offer: one Protocol a family, in the words of the core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from .document import Document
from .entry import Facts, Receipt
from .errors import Problem
from .message import Message


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
    process writes it, ``holder`` is that process's id where it is known.
    """

    def __init__(
        self, message: str, *, hint: str = "", taken: bool = False, holder: int | None = None
    ) -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.message = message
        self.hint = hint
        self.taken = taken
        self.holder = holder


class Ledger(Protocol):
    """A record that is being written: one chain of lines, one writer, one event loop.

    ``seq`` is given in the order in which ``append`` was called, without gaps: what could not
    be written leaves its place to what comes next.
    """

    @property
    def url(self) -> str:
        """Where it is, without secrets."""

    async def append(self, facts: Facts) -> Receipt:
        """Write a line; returns once it is as durable as the store promises.

        What was begun is finished: where the caller is cancelled meanwhile, CancelledError comes
        after the line was written, and never instead.

        EnvelopeError RECORD_UNAVAILABLE, with the reason and without paths or secrets, if it
        was not written.
        """

    async def close(self) -> None:
        """Let go of it. A second time does nothing."""


class Store(Protocol):
    """A way to keep a ledger."""

    def open(self, place: str) -> Ledger:
        """Open the ledger at ``place``, which is what a URL has after its scheme.

        ConfigError for a place that makes no sense, LedgerError for one that cannot be opened.
        """
