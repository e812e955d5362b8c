"""What tools and prompts are called where several upstreams stand behind one door."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .settings_names import prefix_of

#: Between a server's name and a tool's. Many model APIs refuse dots and slashes.
SEPARATOR: Final = "__"


def shown(server: str, name: str) -> str:
    """What clients see of a tool or prompt of a server's."""
    return f"{prefix_of(server)}{SEPARATOR}{name}"


def split(name: str, servers: Iterable[str]) -> tuple[str, str] | None:
    """The server, and its own name for the tool or prompt; None if no server is named."""
    prefix, separator, own = name.partition(SEPARATOR)
    if not separator:
        return None
    return next(((server, own) for server in servers if prefix_of(server) == prefix), None)
