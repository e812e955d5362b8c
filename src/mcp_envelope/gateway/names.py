"""What tools and prompts are called where several upstreams stand behind one door."""

from __future__ import annotations

from typing import Final

#: Between a server's name and a tool's. Many model APIs refuse dots and slashes.
SEPARATOR: Final = "__"


def shown(server: str, name: str) -> str:
    """What clients see of a tool or prompt of a server's."""
    return f"{server}{SEPARATOR}{name}"


def split(name: str, servers: list[str]) -> tuple[str, str] | None:
    """The server, and its own name for the tool or prompt; None if no server is named.

    The longest server name that fits counts, so that servers called ``a`` and ``a__b`` can
    stand side by side.
    """
    fitting = [server for server in servers if name.startswith(server + SEPARATOR)]
    if not fitting:
        return None
    server = max(fitting, key=len)
    return server, name[len(server) + len(SEPARATOR) :]
