"""What can go wrong: the exceptions that callers catch, and the problems they carry.

Three families, because three different people have to act: :class:`EnvelopeError` is about
data from outside, :class:`ConfigError` about an operator's settings and :class:`UsageError`
about a call of this library. The canonical codes stand in :mod:`mcp_envelope.core.codes`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a document, and what to do about it.

    ``pointer`` is an RFC 6901 pointer into the document (``""`` is the whole of it), ``rule``
    a stable name that tests and scripts may compare, ``severity`` ``error`` or ``warning``.
    """

    pointer: str
    rule: str
    message: str
    hint: str = ""
    severity: str = "error"

    def __str__(self) -> str:
        place = self.pointer or "(whole document)"
        return f"{place}: {self.message}" + (f" ({self.hint})" if self.hint else "")


class EnvelopeError(Exception):
    """Data from outside that cannot be accepted: malformed, of the wrong shape, or too large.

    ``code`` is a code of the canonical table. Where the place is known it stands in
    ``pointer`` or in ``line`` and ``column`` (both from 1, the column in bytes).
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "INVALID_ENVELOPE",
        problems: Iterable[Problem] = (),
        pointer: str | None = None,
        line: int | None = None,
        column: int | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.problems = tuple(problems)
        self.pointer = pointer
        self.line = line
        self.column = column
        self.hint = hint
        #: What else the answer is to say, for programs.
        self.data: dict[str, object] = {}
        #: Whether somebody has answered so: sending the same again at once would be no help.
        self.was_answered = False

    @property
    def outline(self) -> str:
        """The rule and the place alone, without what stood there: for logs and records."""
        what = self.problems[0].rule if self.problems else self.message
        if self.line is not None:
            return f"{what} at line {self.line}, column {self.column}"
        return f"{what} at {self.pointer}" if self.pointer else what

    def __str__(self) -> str:
        place = ""
        if self.line is not None:
            place = f" at line {self.line}, column {self.column}"
        elif self.pointer:
            place = f" at {self.pointer}"
        return f"{self.message}{place}" + (f"; {self.hint}" if self.hint else "")


class ConversionError(EnvelopeError):
    """A conversion that would have no meaning, or is not exact although that was asked for.

    ``lost`` and ``filled`` are as in the result of ``convert``.
    """

    def __init__(
        self,
        message: str,
        *,
        lost: Iterable[str] = (),
        filled: Iterable[str] = (),
        hint: str = "",
        pointer: str | None = None,
        problems: Iterable[Problem] = (),
    ) -> None:
        super().__init__(message, hint=hint, pointer=pointer, problems=problems)
        self.lost = tuple(lost)
        self.filled = tuple(filled)


class ConfigError(Exception):
    """A setting, pattern or schema of the operator's that cannot be used; says how to mend it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.message = message
        self.hint = hint


class UsageError(Exception):
    """A call of this library, or a command line, that makes no sense as it stands."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.message = message
        self.hint = hint
