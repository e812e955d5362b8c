"""What every verb needs of the outside: reading a file, printing, complaining."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from mcp_envelope.core.document import DEFAULT_LIMITS, dump
from mcp_envelope.core.errors import ConversionError, EnvelopeError, Problem, UsageError

FINE: Final = 0
DOES_NOT_HOLD: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3

_CONTROLS: Final = {
    code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), *range(127, 160))
} | {code: f"\\u{code:04x}" for code in (0x2028, 0x2029, *range(0x202A, 0x202F), 0x2066, 0x2069)}


def shown(text: str) -> str:
    """Text from outside, made safe for a terminal."""
    return text.translate(_CONTROLS)


class Console:
    """Standard output and standard error, in human words or as JSON."""

    def __init__(self, *, json: bool) -> None:
        self.json = json

    def read(self, name: str) -> bytes:
        """The bytes of a file, or of standard input for ``-``."""
        most = DEFAULT_LIMITS.result + 1  # one byte over the limit is enough to refuse it
        if name == "-":
            return sys.stdin.buffer.read(most)
        try:
            with Path(name).open("rb") as file:
                return file.read(most)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            hint = "name a file, or - for standard input"
            raise UsageError(f"cannot read {shown(name)}: {reason}", hint=hint) from None

    def write(self, data: bytes) -> None:
        """Exact bytes on standard output; a terminal gets a line end after them."""
        sys.stdout.buffer.write(data)
        if sys.stdout.isatty() and not data.endswith(b"\n"):
            sys.stdout.buffer.write(b"\n")

    def say(self, line: str = "") -> None:
        """A line of text on standard output."""
        self.write(shown(line).encode(errors="backslashreplace") + b"\n")

    def note(self, line: str) -> None:
        """A line beside the result, on standard error."""
        print(shown(line), file=sys.stderr)

    def result(self, value: object) -> None:
        """A JSON value on standard output, a line; documents inside keep their exact bytes."""
        self.write(dump(value) + b"\n")

    def flush(self) -> None:
        sys.stdout.buffer.flush()

    def complain(self, error: Exception) -> None:
        """Say what went wrong on standard error; with ``--json`` as JSON on standard output."""
        if self.json:
            self.result({"error": described(error)})
            self.flush()
        else:
            self.note(f"mcp-envelope: {error}")
            for problem in getattr(error, "problems", ()):
                self.note(f"  {problem}")


def described(error: Exception) -> dict[str, Any]:
    """An error as JSON: what, where, and what to do."""
    found: dict[str, Any] = {"message": getattr(error, "message", None) or str(error)}
    if isinstance(error, EnvelopeError):
        found["code"] = error.code
        found["problems"] = problems_as_json(error.problems)
        for name in ("pointer", "line", "column"):
            if getattr(error, name) is not None:
                found[name] = getattr(error, name)
    if isinstance(error, ConversionError):
        found |= {"lost": list(error.lost), "filled": list(error.filled)}
    hint = getattr(error, "hint", "")
    if hint:
        found["hint"] = hint
    return found


def problems_as_json(problems: Iterable[Problem]) -> list[dict[str, str]]:
    """Problems as the JSON objects that ``--json`` documents."""
    return [
        {
            "pointer": problem.pointer,
            "rule": problem.rule,
            "message": problem.message,
            "hint": problem.hint,
            "severity": problem.severity,
        }
        for problem in problems
    ]
