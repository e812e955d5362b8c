"""How it is said that a call was lost, and what is odd about a child."""

from __future__ import annotations

import logging
from typing import Final

from mcp_envelope.core.errors import EnvelopeError

from .backoff import UnavailableError
from .child import Gone
from .lines import Flaw

_log: Final = logging.getLogger("mcp_envelope.upstreams")
_LOUD: Final = 20


class Oddities:
    """What a child does that it should not: the first are warnings, the rest for debugging."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0

    def note(self, what: str, detail: object = "", *, excerpt: bytes = b"") -> None:
        """Log one; names and ids go into ``detail``.

        What may be a part of a result goes into ``excerpt``, which only level debug shows.
        """
        self._count += 1
        level = logging.WARNING if self._count <= _LOUD else logging.DEBUG
        if _log.isEnabledFor(level):
            text = repr(detail)[:200] if detail != "" else ""
            if excerpt and _log.isEnabledFor(logging.DEBUG):
                text = repr(excerpt)[:200]
            _log.log(level, "upstream %r: %s%s", self._name, what, text and f": {text}")
            if self._count == _LOUD:
                _log.warning("upstream %r: more of this is logged at level debug", self._name)


def lost(name: str, gone: Gone, mark: int) -> EnvelopeError:
    """What a call ends with whose child is gone."""
    if mark > gone.reached:
        return UnavailableError(
            f"upstream {name!r} {gone.how} before it read the message",
            hint="it is started again with the next message; its standard error may say why",
        )
    return EnvelopeError(
        f"upstream {name!r} {gone.how} while the call was under way",
        code="OUTCOME_UNKNOWN",
        hint="whether the call had an effect is not known; do not simply repeat it",
    )


def unreadable(name: str, flaw: Flaw) -> EnvelopeError:
    """What a call ends with whose answer cannot be read."""
    code = "TOO_LARGE" if flaw.why.code == "TOO_LARGE" else "OUTCOME_UNKNOWN"
    return EnvelopeError(
        f"the answer of upstream {name!r} cannot be accepted: {flaw.why.outline}",
        code=code,
        hint=flaw.why.hint if code == "TOO_LARGE" else "it acted, but what it said is not known",
    )


def ended(name: str) -> EnvelopeError:
    """What a call ends with whose conversation is closed under it."""
    return EnvelopeError(
        f"the conversation with upstream {name!r} was closed while the call was under way",
        code="OUTCOME_UNKNOWN",
        hint="whether the call had an effect is not known",
    )
