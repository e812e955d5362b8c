"""How a JSON Lines ledger ends: its last line, and what was left behind it by a broken write."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from mcp_envelope.core.document import parse
from mcp_envelope.core.entry import GENESIS, MOST, VERSION
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.ports import LedgerError

#: How far from the end the last line is looked for: many times what one broken write leaves.
WINDOW: Final = 1 << 20

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_FIRST: Final = b'{"v":'


@dataclass(slots=True)
class Torn:
    """Bytes after the last line that belong to no line. They stay; the next line tells of them."""

    size: int = 0
    ends_line: bool = True
    _sum: Any = field(default_factory=sha256, repr=False)

    def add(self, data: bytes) -> None:
        """More of them."""
        if data:
            self.size += len(data)
            self.ends_line = data.endswith(b"\n")
            self._sum.update(data)

    def __bool__(self) -> bool:
        return self.size > 0

    @property
    def ending(self) -> bytes:
        """What has to be written to end them, so that the next line is one of its own."""
        return b"" if self.ends_line else b"\n"

    def warning(self) -> str:
        """What the next line says of them, once they are ended: how many, and their SHA-256."""
        total = self._sum.copy()
        total.update(self.ending)
        size = self.size + len(self.ending)
        return (
            f"torn tail: the {size} bytes before this line are no line, sha256:{total.hexdigest()}"
        )


@dataclass(slots=True)
class Tail:
    """Where a chain goes on: ``seq`` and ``prev`` of the next line, the size of the file."""

    seq: int
    prev: str
    size: int
    torn: Torn


def read_tail(fd: int) -> Tail:
    """The end of an open ledger file, in constant memory. LedgerError if it is no ledger's."""
    size = os.fstat(fd).st_size
    begin = max(0, size - WINDOW)
    window = _read(fd, begin, size - begin)
    torn = Torn()
    end = window.rfind(b"\n")
    while end >= 0:
        start = window.rfind(b"\n", 0, end) + 1
        # What begins before the window may be cut off, and so may look like anything.
        if start > 0 or begin == 0:
            text = window[start:end]
            seq = _seq_of(text)
            if seq is not None:
                torn.add(window[end + 1 :])
                return Tail(seq + 1, sha256(text).hexdigest(), size, torn)
        end = start - 1
    if begin > 0:
        raise LedgerError(
            f"its last {WINDOW:,} bytes hold no line of a ledger",
            hint="it is damaged or something else: keep it, and name another file",
        )
    first = window.partition(b"\n")[0]
    if window and not (first and (first.startswith(_FIRST) or _FIRST.startswith(first))):
        raise LedgerError("it is not a ledger", hint="name another file")
    torn.add(window)  # a first line that never was finished
    return Tail(0, GENESIS, size, torn)


def _read(fd: int, begin: int, size: int) -> bytes:
    parts = []
    while size > 0:
        part = os.pread(fd, size, begin)
        if not part:
            break
        parts.append(part)
        begin += len(part)
        size -= len(part)
    return b"".join(parts)


def _seq_of(text: bytes) -> int | None:
    """The ``seq`` of a line, None for what is no line. LedgerError for a newer format."""
    if not text.startswith(_FIRST) or len(text) > MOST:
        return None
    try:
        value = parse(text).value
    except EnvelopeError:
        return None
    version, seq, prev = value.get("v"), value.get("seq"), value.get("prev")
    if type(version) is not int or type(seq) is not int or type(prev) is not str:
        return None
    if version > VERSION:
        raise LedgerError(
            f"a newer version of mcp-envelope wrote it (format {version}, known: {VERSION})",
            hint="install that version, or name another file",
        )
    return seq if seq >= 0 and _DIGEST.fullmatch(prev) and "event" in value else None
