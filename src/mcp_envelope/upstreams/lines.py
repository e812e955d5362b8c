"""What a line that a child wrote holds, and what a spoilt one was about. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mcp_envelope.core import salvage
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, FrameError, Id, read_frame
from mcp_envelope.core.lines import Overlong
from mcp_envelope.core.strict import Limits

_LINE_ENDS: Final = bytes.maketrans(b"\r\n", b"  ")


@dataclass(frozen=True, slots=True)
class Flaw:
    """A line that is no message: why, and the id of the request that it seems to answer."""

    why: EnvelopeError
    id: Id | None
    excerpt: bytes


def read_line(line: bytes | Overlong, limits: Limits) -> Frame | Flaw | None:
    """What a line holds; None if it is blank."""
    if isinstance(line, Overlong):
        message = f"a line has {line.size:,} bytes, more than the {limits.result:,} accepted"
        hint = "raise the limit for results, or let the tool return less at once"
        why = EnvelopeError(message, code="TOO_LARGE", hint=hint)
        return Flaw(why, salvage.answered_in(line.head, line.tail), line.head[:200])
    if line.endswith(b"\r"):
        line = line[:-1]
    try:
        return read_frame(line, limits=limits, size=limits.result)
    except FrameError as error:
        if not line or line.isspace():
            return None
        return Flaw(error, salvage.answered(line), line[:200])


def one_line(raw: bytes) -> bytes:
    """A message as a line of its own; line ends in a JSON text are nothing but white space."""
    if b"\n" in raw or b"\r" in raw:
        raw = raw.translate(_LINE_ENDS)
    return raw + b"\n"
