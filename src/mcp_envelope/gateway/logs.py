"""Log lines: one line each, whatever text from outside is in them, and without credentials."""

from __future__ import annotations

import logging
import re
import sys
from types import TracebackType
from typing import Final, TypeAlias

from mcp_envelope.core.bodies import USUAL

_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
# What ends a line, hides or reorders text, or steers a terminal; as in lines of the ledger.
_UNSEEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
#: What the lines of a traceback begin with, so that none passes for a log line.
_MARGIN: Final = "  | "

_Caught: TypeAlias = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)


class LineFormatter(logging.Formatter):
    """Writes records as lines. A traceback has some, each with a margin."""

    def __init__(self) -> None:
        super().__init__(_FORMAT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        """The first line."""
        return _visible(super().formatMessage(record))

    def formatException(self, ei: _Caught) -> str:  # noqa: N802
        """A traceback."""
        return _indented(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802
        """A stack."""
        return _indented(super().formatStack(stack_info))


def log_to_stderr(level: str) -> None:
    """Write everything of at least that level to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    logging.basicConfig(handlers=[handler], level=level.upper())


def _indented(text: str) -> str:
    clean = USUAL.line(text)
    return "\n".join(_MARGIN + _escaped(line) for line in clean.split("\n"))


def _visible(text: str) -> str:
    return _escaped(USUAL.line(text))


def _escaped(text: str) -> str:
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
