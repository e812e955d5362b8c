"""Bytes in a ledger that are no line: what writes left that broke off, or damage."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Literal


class Loose:
    """Some of them: how many, and their digest."""

    __slots__ = ("_sum", "size")

    def __init__(self, size: int = 0, total: Any = None) -> None:
        self.size = size
        self._sum = sha256() if total is None else total

    def add(self, data: bytes) -> None:
        """More of them."""
        self.size += len(data)
        self._sum.update(data)

    def copy(self) -> Loose:
        """The same, to which more can be added separately."""
        return Loose(self.size, self._sum.copy())

    def is_what(self, claim: tuple[int, str]) -> bool:
        """Whether they have this number and digest."""
        return claim[0] == self.size and claim[1] == self._sum.hexdigest()


class Ends:
    """What lies behind the last line and is none, and what lay before that line.

    That line too may be one that was never finished, if a later one says so: a line is only
    finished with its newline, and that may have been written later, to end it. ``text`` is it,
    empty if there is none yet.
    """

    def __init__(self) -> None:
        self.text = b""
        #: Whether the last piece lacks its newline.
        self.is_open = False
        #: Whether line ends of another system were among them.
        self.has_crlf = False
        self._unfinished = 0
        self._before: Loose | None = None
        self._behind: Loose | None = None
        self._whole: Loose | None = None

    @property
    def size(self) -> int:
        """How many bytes lie behind the last line."""
        return self._behind.size if self._behind else 0

    @property
    def is_unfinished(self) -> bool:
        """Whether they are one piece that lacks its newline."""
        return self.is_open and self.size == self._unfinished

    def add(self, piece: bytes) -> None:
        """One more piece that is no line."""
        if self._behind is None or self._whole is None:
            self._behind, self._whole = Loose(), self._with_text()
        self._behind.add(piece)
        self._whole.add(piece)
        self._unfinished = (self._unfinished if self.is_open else 0) + len(piece)
        self.is_open = not piece.endswith(b"\n")
        self.has_crlf = self.has_crlf or piece.endswith(b"}\r\n")

    def go_on(self, text: bytes) -> None:
        """There is a next line, and what lay before it is explained."""
        self.text = text
        if self._behind is not None or self._before is not None:
            self._before, self._behind = self._behind, None

    def explained(self, claim: tuple[int, str]) -> Literal["behind", "whole"] | None:
        """Which bytes a line says are none: those behind the last line, or with that line."""
        if self._behind is not None and self._behind.is_what(claim):
            return "behind"
        if not self.text:
            return None
        whole = self._whole if self._behind is not None else self._with_text()
        if whole is None or not whole.is_what(claim):
            return None
        self.text, self._behind, self._before = b"", whole, None
        return "whole"

    def _with_text(self) -> Loose:
        whole = self._before.copy() if self._before is not None else Loose()
        if self.text:
            whole.add(self.text + b"\n")
        return whole
