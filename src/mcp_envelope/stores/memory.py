"""A ledger that is gone with the process: for tests, and to try things out."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, NoReturn

from mcp_envelope.core.errors import ConfigError
from mcp_envelope.core.ports import Writing

from .chain import Chain
from .draft import Batch, Head

KEPT: Final = 10_000


class _Shelf:
    """The newest lines, and the bodies that belong to them."""

    where: Final = "the ledger in memory"

    def __init__(self, keep: int) -> None:
        self.lines: deque[bytes] = deque(maxlen=keep)
        self.bodies: dict[str, tuple[int, bytes]] = {}
        self._keep = keep

    def remarks(self) -> Sequence[str]:
        """None."""
        return ()

    def write(self, batch: Batch) -> None:
        """Keep it."""
        # Copies: what orjson writes keeps the much larger block that it was written into.
        self.lines.extend(bytes(memoryview(text)) for text in batch.lines)
        if not batch.bodies and not self.bodies:
            return
        for digest, seq, body in batch.bodies:
            self.bodies.pop(digest, None)  # so that the oldest are always the first
            self.bodies[digest] = (seq, body)
        begin = batch.seq + len(batch.lines) - self._keep
        while self.bodies and next(iter(self.bodies.values()))[0] < begin:
            del self.bodies[next(iter(self.bodies))]

    def close(self) -> None:
        """Nothing to let go of."""


class MemoryLedger(Chain):
    """Keeps the newest ``keep`` lines; the chain goes on over those that were dropped."""

    def __init__(self, keep: int = KEPT, writing: Writing | None = None) -> None:
        writing = writing or Writing()
        self._shelf = _Shelf(keep)
        head = Head() if writing.sealing else Head(tree=None)
        # There is no disk to wait for.
        super().__init__(self._shelf, head, Writing(sealing=writing.sealing))

    @property
    def url(self) -> str:
        """``memory:``."""
        return "memory:"

    @property
    def lines(self) -> list[bytes]:
        """The lines that are kept, oldest first, without newlines. Readable after closing."""
        return list(self._shelf.lines)

    @property
    def bodies(self) -> dict[str, bytes]:
        """The bodies that are kept with them, by their SHA-256 (hex)."""
        return {digest: body for digest, (_, body) in self._shelf.bodies.items()}


class MemoryStore:
    """``memory:``."""

    def open(self, place: str, writing: Writing | None = None) -> MemoryLedger:
        """A new ledger, each time."""
        if place:
            hint = "write memory: alone, or sqlite:PATH for a file"
            raise ConfigError("a ledger in memory has no place", hint=hint)
        return MemoryLedger(writing=writing)

    def read(self, place: str) -> NoReturn:
        """Never."""
        raise ConfigError(
            "a ledger in memory is gone with its process", hint="name one that was kept in a file"
        )
