"""A placeholder on this branch: NOT to be merged."""

from __future__ import annotations

from collections.abc import Callable

from .settings import Settings


def run(settings: Settings, *, reread: Callable[[], Settings] | None = None) -> int:
    """Serve until the end; the exit code."""
    raise NotImplementedError
