"""What all conversations of a gateway stand on: the record, the clock, ids, checks."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from mcp_envelope.core.ports import Ledger
from mcp_envelope.core.strict import DEFAULT_LIMITS, Limits
from mcp_envelope.pipeline.catalog import Checks

from .clockwork import Clockwork

log = logging.getLogger("mcp_envelope.gateway")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Shared by everything behind the doors. ``clockwork`` gives times and ids."""

    ledger: Ledger
    clockwork: Clockwork = field(default_factory=Clockwork.real)
    checks: Checks = field(default_factory=Checks)
    limits: Limits = DEFAULT_LIMITS

    @property
    def instance(self) -> str:
        """The name of this run of the gateway."""
        return self.clockwork.instance

    def now(self) -> str:
        """The time, as an RFC 3339 text in UTC with milliseconds."""
        return self.clockwork.now()

    def tick(self) -> float:
        """A clock that never goes back, in seconds."""
        return self.clockwork.tick()

    def new_id(self) -> str:
        """An id that nobody can guess."""
        return self.clockwork.new_id()
