"""What all conversations of a gateway stand on: the record, the clock, ids, checks."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

from mcp_envelope.core.ports import Ledger
from mcp_envelope.core.strict import DEFAULT_LIMITS, Limits
from mcp_envelope.pipeline.catalog import Checks

log = logging.getLogger("mcp_envelope.gateway")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Shared by everything behind the doors. ``instance`` names this run of the gateway."""

    ledger: Ledger
    instance: str = field(default_factory=lambda: os.urandom(8).hex())
    checks: Checks = field(default_factory=Checks)
    limits: Limits = DEFAULT_LIMITS

    @staticmethod
    def now() -> str:
        """The time, as an RFC 3339 text in UTC with milliseconds."""
        seconds, rest = divmod(time.time_ns(), 1_000_000_000)
        return f"{_second(seconds)}.{rest // 1_000_000:03d}Z"

    @staticmethod
    def tick() -> float:
        """A clock that never goes back, in seconds."""
        return time.monotonic()

    @staticmethod
    def new_id() -> str:
        """An id that nobody can guess."""
        text = os.urandom(16).hex()  # as a UUID of version 4, without the object that uuid makes
        variant = "89ab"[int(text[16], 16) & 3]
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
