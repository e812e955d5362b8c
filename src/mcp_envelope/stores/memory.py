"""A ledger that is gone with the process: for tests, and to try things out."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from mcp_envelope.core.entry import GENESIS, Facts, Receipt, line
from mcp_envelope.core.errors import ConfigError, EnvelopeError

KEPT: Final = 10_000


class MemoryLedger:
    """Keeps the newest ``keep`` lines; the chain goes on over those that were dropped."""

    def __init__(self, keep: int = KEPT) -> None:
        self._lines: deque[bytes] = deque(maxlen=keep)
        self._seq = 0
        self.bodies: dict[str, bytes] = {}
        self._prev = GENESIS
        self._is_open = True

    @property
    def url(self) -> str:
        """``memory:``."""
        return "memory:"

    @property
    def lines(self) -> list[bytes]:
        """The lines that are kept, oldest first, without newlines. Readable after closing."""
        return list(self._lines)

    async def append(self, facts: Facts, bodies: Sequence[bytes] = ()) -> Receipt:
        """Keep a line, and bodies."""
        if not self._is_open:
            raise EnvelopeError("the record is closed", code="RECORD_UNAVAILABLE")
        text = line(facts, self._seq, self._prev)
        receipt = Receipt(self._seq, sha256(text).hexdigest())
        # A copy: what orjson writes keeps the much larger block that it was written into.
        self._lines.append(bytes(memoryview(text)))
        self._seq += 1
        self.bodies |= {sha256(body).hexdigest(): body for body in bodies}
        self._prev = receipt.digest
        return receipt

    async def close(self) -> None:
        """Take no more lines."""
        self._is_open = False


class MemoryStore:
    """``memory:``."""

    def open(self, place: str) -> MemoryLedger:
        """A new ledger, each time."""
        if place:
            hint = "write memory: alone, or jsonl:PATH for a file"
            raise ConfigError("a ledger in memory has no place", hint=hint)
        return MemoryLedger()
