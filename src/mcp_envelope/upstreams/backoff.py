"""How soon a child may be started again, and how it is said that it may not yet."""

from __future__ import annotations

from typing import Final

from mcp_envelope.core.errors import EnvelopeError

_FIRST: Final = 0.25
_LONGEST: Final = 30.0
_LONG_LIFE: Final = 60.0


class UnavailableError(EnvelopeError):
    """Nothing reached the upstream. ``retry_after`` says in how many seconds it may be tried."""

    def __init__(self, message: str, *, hint: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, code="UPSTREAM_UNAVAILABLE", hint=hint)
        self.retry_after = retry_after


class Backoff:
    """Counts failures: the second start follows at once, further ones after 0.25, 0.5, 1 … 30 s.

    Times are seconds of a monotonic clock. A child that lived for more than a minute makes
    everything before it forgotten.
    """

    def __init__(self) -> None:
        self._failures = 0
        self._started = float("-inf")
        self._counted = float("-inf")

    def wait(self, now: float) -> float:
        """The seconds until the next start is due; 0 if it may be made now."""
        if self._failures < 2:
            return 0.0
        delay = min(_LONGEST, _FIRST * 2.0 ** min(self._failures - 2, 10))
        return max(0.0, self._started + delay - now)

    def start(self, now: float) -> None:
        """A start is made."""
        self._started = now

    def failed(self, started: float, now: float) -> None:
        """A child that was started then has ended now, or could not be started at all.

        Of several that failed side by side only one counts.
        """
        if now - started > _LONG_LIFE:
            self._failures = 0
        if started > self._counted:
            self._failures += 1
            self._counted = now

    def reset(self) -> None:
        """All is well."""
        self._failures = 0
