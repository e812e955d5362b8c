"""``run``: the gateway, in front of one server or several."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mcp_envelope as me
from mcp_envelope.gateway import app
from mcp_envelope.gateway.settings_file import Given, load

from . import sources

if TYPE_CHECKING:
    import argparse

    from mcp_envelope.gateway.settings import Settings

    from .arguments import Parser
    from .console import Console

EXAMPLE = "mcp-envelope run -- uvx mcp-server-time"


def configure(parser: Parser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "--stdio", action="store_true", help="speak MCP on standard input and output (the default)"
    )
    parser.add_argument(
        "--http",
        metavar="HOST:PORT",
        help="speak Streamable HTTP instead; PORT alone is on 127.0.0.1, and port 0 any free one",
    )
    sources.configure(parser)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    given = sources.given(arguments, stdio=arguments.stdio, http=arguments.http)
    loaded = load(given, console.read)
    if loaded.settings.http is None and "-" in (given.config_file, given.clients):
        raise me.UsageError(
            "standard input cannot hold both the settings and the conversation",
            hint="name a file, or use --http",
        )
    for note in loaded.notes:
        console.note(f"mcp-envelope: {note}")
    return app.run(loaded.settings, reread=lambda: _reread(given))


def _reread(given: Given) -> Settings:
    return load(given).settings
