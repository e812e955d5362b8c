"""What all conversations of a gateway share: the record, the clock, ids, compiled schemas."""

from __future__ import annotations

import logging
import os
import time
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime

from mcp_envelope.core.ports import Ledger
from mcp_envelope.core.strict import DEFAULT_LIMITS, Limits
from mcp_envelope.pipeline.catalog import Checks

log = logging.getLogger("mcp_envelope.gateway")


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """Shared by everything behind the doors. ``instance`` names this run of the gateway."""

    ledger: Ledger
    instance: str = field(default_factory=lambda: os.urandom(8).hex())
    checks: Checks = field(default_factory=Checks)
    limits: Limits = DEFAULT_LIMITS

    @staticmethod
    def now() -> str:
        """The time, as an RFC 3339 text in UTC with milliseconds."""
        return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    @staticmethod
    def tick() -> float:
        """A clock that never goes back, in seconds."""
        return time.monotonic()

    @staticmethod
    def new_id() -> str:
        """An id that nobody can guess."""
        return str(uuid.uuid4())
