"""The ways to a server. Adding one is a file in this package and a line in :data:`TABLE`."""

from __future__ import annotations

import importlib
from typing import Any, Final

from mcp_envelope.core.errors import UsageError

# They are classes to make upstreams of, each with arguments of its own; loaded when asked for.
TABLE: Final = {
    "stdio": "mcp_envelope.upstreams.stdio:StdioUpstream",
    "http": "mcp_envelope.upstreams.http:HttpUpstream",
}


def upstream_class(name: str) -> Any:
    """The class of that name in the table."""
    if name not in TABLE:
        raise UsageError(f"no upstream {name!r}", hint=f"known: {', '.join(sorted(TABLE))}")
    module, _, attribute = TABLE[name].partition(":")
    return getattr(importlib.import_module(module), attribute)
