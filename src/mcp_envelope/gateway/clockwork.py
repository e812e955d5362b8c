"""Where time and ids come from: the machine, or a count that is the same each time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from itertools import count
from typing import Final

_BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clockwork:
    """The source of all times and ids that are written down.

    ``now`` is the time, as an RFC 3339 text in UTC with milliseconds; ``tick`` a clock that
    never goes back, in seconds, which nothing that is written shows; ``lasted`` the milliseconds
    since one of its times. ``new_id`` is an id, ``instance`` what a run of the gateway is called.
    """

    now: Callable[[], str]
    tick: Callable[[], float]
    lasted: Callable[[float], float]
    new_id: Callable[[], str]
    instance: str
    is_deterministic: bool = False

    @classmethod
    def real(cls) -> Clockwork:
        """The machine's clocks, and ids that nobody can guess."""
        return cls(
            now=_now,
            tick=time.monotonic,
            lasted=_lasted,
            new_id=lambda: _uuid(os.urandom(16).hex()),
            instance=os.urandom(8).hex(),
        )

    @classmethod
    def deterministic(cls, seed: str = "") -> Clockwork:
        """Times and ids that are the same in each run, for tests and golden files only.

        Each time is a millisecond after the last one that was asked for, nothing takes any
        time, and anybody can guess the ids.
        """
        times, ids = count(), count()
        return cls(
            now=lambda: _text_of(_BEGINNING + timedelta(milliseconds=next(times))),
            tick=time.monotonic,
            lasted=lambda began: 0.0,
            new_id=lambda: _uuid(_digest(f"{seed}/{next(ids)}")),
            instance=_digest(f"{seed}/instance")[:16],
            is_deterministic=True,
        )


def _now() -> str:
    seconds, rest = divmod(time.time_ns(), 1_000_000_000)
    return f"{_second(seconds)}.{rest // 1_000_000:03d}Z"


def _lasted(began: float) -> float:
    return round((time.monotonic() - began) * 1000, 3)


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _text_of(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _uuid(text: str) -> str:
    """32 hex digits as a UUID of version 4, without the object that uuid makes."""
    variant = "89ab"[int(text[16], 16) & 3]
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:32]}"
