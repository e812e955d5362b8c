"""What every verb needs of the outside: reading a file, printing, complaining.

Three things hold for whatever is printed. Bytes for a file or a pipe are exact. Nothing from
outside can steer a terminal. And a stream that is closed, full or broken gives an exit code,
never a traceback, not even from Python's own last flush.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import mcp_envelope as me

if TYPE_CHECKING:
    from mcp_envelope.core.errors import Problem

FINE: Final = 0
DOES_NOT_HOLD: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3
INTERRUPTED: Final = 130

_LINE: Final = 2_000
_STDIN_HINT: Final = "name a file, or - for standard input"


class Console:
    """Standard input, output and error, in human words or as JSON."""

    def __init__(self, *, json: bool) -> None:
        self.json = json
        self._output_lost = False
        #: Whether a line for standard error could not be written there.
        self.notes_lost = False

    def read(self, name: str) -> bytes:
        """The bytes of a file, or of standard input for ``-``.

        UsageError if there is no such file, OSError if it cannot be read to its end. Reads one
        byte more than a document may have, which is enough to refuse it.
        """
        most = me.Limits().result + 1
        if name == "-":
            return self._read_input(most)
        try:
            file = Path(name).open("rb") if name else None  # noqa: SIM115  (the with is below)
        except (OSError, ValueError) as error:
            raise me.UsageError(f"cannot read {name}: {_reason(error)}", hint=_STDIN_HINT) from None
        if file is None:
            raise me.UsageError("the name of the file is empty", hint=_STDIN_HINT)
        with file, _named(name):
            return file.read(most)

    def _read_input(self, most: int) -> bytes:
        if sys.stdin is None:
            raise me.UsageError("standard input is closed", hint="name a file")
        if sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty():
            self.note("reading standard input; Ctrl-D ends it")
        with _named("standard input"):
            return sys.stdin.buffer.read(most)

    def write(self, data: bytes) -> None:
        """JSON text on standard output: exact bytes, but for a terminal.

        There it gets a line end, and what could steer the terminal is escaped. Only strings
        can hold such characters, so it is the same JSON value.
        """
        if sys.stdout is not None and sys.stdout.isatty():
            text = data.decode(errors="backslashreplace").replace("\r\n", "\n").replace("\r", "\n")
            lines = text.removesuffix("\n").split("\n")
            data = "".join(_escaped(line, _as_json, keep="\t") + "\n" for line in lines).encode()
        self._emit(data)

    def say(self, line: str = "") -> None:
        """A line of text on standard output."""
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        self._emit(f"{shown(line)}\n".encode(encoding, "backslashreplace"))

    def page(self, text: str) -> None:
        """Several lines of text on standard output."""
        for line in text.splitlines():
            self.say(line)

    def note(self, line: str) -> None:
        """A line beside the result, on standard error; nobody may be listening there."""
        if sys.stderr is None:
            return
        encoding = sys.stderr.encoding or "utf-8"
        text = f"{shown(line)}\n".encode(encoding, "backslashreplace").decode(encoding)
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            self.notes_lost = True
            _to_nowhere(sys.stderr)

    def result(self, value: object) -> None:
        """A JSON value on standard output, a line; documents inside keep their exact bytes."""
        self.write(me.dump(value) + b"\n")

    def flush(self) -> None:
        """Hand over what was printed so far, so that trouble shows here."""
        if sys.stdout is None or self._output_lost:
            return
        with self._output():
            sys.stdout.buffer.flush()

    def complain(self, error: BaseException) -> None:
        """Say what went wrong on standard error; with ``--json`` as JSON on standard output."""
        if self.json and not self._output_lost:
            try:
                self.result({"error": described(error)})
                self.flush()
                return
            except BrokenPipeError:
                pass
            except OSError as trouble:
                self._complain_in_words(trouble)
        self._complain_in_words(error)

    def _complain_in_words(self, error: BaseException) -> None:
        # What was printed before belongs above the complaint, if both go to a terminal.
        with contextlib.suppress(OSError):
            self.flush()
        mistakes = getattr(error, "mistakes", ())
        for mistake in mistakes:
            self.note(f"mcp-envelope: {mistake}")
        if mistakes:
            return
        said = _sentence(error)
        self.note(f"mcp-envelope: {said}")
        problems = getattr(error, "problems", ())
        if len(problems) > 1 or any(problem.pointer for problem in problems):
            for problem in problems:
                if problem.message not in said:
                    self.note(f"  {problem}")
        for what in ("lost", "filled"):
            for pointer in getattr(error, what, ()):
                self.note(f"  {what}: {pointer or '(whole document)'}")

    def _emit(self, data: bytes) -> None:
        if sys.stdout is None:
            self._output_lost = True
            raise OSError(errno.EBADF, "standard output is closed")
        with self._output():
            sys.stdout.buffer.write(data)

    @contextlib.contextmanager
    def _output(self) -> Iterator[None]:
        try:
            with _named("standard output"):
                yield
        except OSError:
            self._output_lost = True
            _to_nowhere(sys.stdout)
            raise


def shown(text: str) -> str:
    """Text from outside as one line that is safe on a terminal, cut if it is very long.

    Whatever is not plainly visible is escaped: control characters, line ends, characters that
    reorder or hide text, and bytes of file names that are not UTF-8.
    """
    if len(text) > _LINE:
        text = f"{text[:_LINE]}… ({len(text) - _LINE:,} characters more)"
    return _escaped(text, lambda char: char.encode("unicode_escape").decode())


def utf8(text: str) -> str:
    """Text that may hold bytes of a file name which are not UTF-8, as JSON can hold it."""
    return text.encode(errors="backslashreplace").decode()


def described(error: BaseException) -> dict[str, Any]:
    """An error as JSON: what, where, and what to do. Nothing that is not known is in it."""
    found: dict[str, Any] = {"message": utf8(getattr(error, "message", None) or _sentence(error))}
    for name in ("code", "pointer", "line", "column", "hint"):
        value = getattr(error, name, None)
        if value is not None and (value or name == "pointer"):
            found[name] = utf8(value) if isinstance(value, str) else value
    if hasattr(error, "mistakes"):
        found["mistakes"] = [
            {name: utf8(getattr(mistake, name)) for name in ("where", "message", "hint")}
            for mistake in error.mistakes
        ]
    if hasattr(error, "problems"):
        found["problems"] = problems_as_json(error.problems)
    for name in ("lost", "filled"):
        if hasattr(error, name):
            found[name] = list(getattr(error, name))
    return found


def problems_as_json(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    """Problems as the JSON objects that ``--json`` documents."""
    names = ("pointer", "rule", "message", "hint", "severity")
    return [{name: getattr(problem, name) for name in names} for problem in problems]


@contextlib.contextmanager
def _named(what: str) -> Iterator[None]:
    """Let errors say which file it was."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, _reason(error), what) from None


def _sentence(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "not enough memory"
    if isinstance(error, OSError):
        name = f"{os.fsdecode(error.filename)}: " if error.filename else ""
        return name + _reason(error)
    return str(error)


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)


def _escaped(text: str, escape: Callable[[str], str], keep: str = "") -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else escape(c) for c in text)


def _as_json(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i] << 8 | units[i + 1]:04x}" for i in range(0, len(units), 2))


def _to_nowhere(stream: TextIO) -> None:
    """Let Python's own flush at the end go somewhere: it would complain, and change the code."""
    # Streams that are no files have no number, and no such flush.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
