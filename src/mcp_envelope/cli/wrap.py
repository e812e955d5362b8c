"""``wrap``: any JSON into ``mcp.envelope.v0.1``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mcp_envelope as me

from .console import FINE, Console

if TYPE_CHECKING:
    import argparse

EXAMPLE = "mcp-envelope wrap result.json > envelope.json"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "file",
        metavar="FILE",
        help="the JSON to wrap; an envelope comes back as it is, byte for byte; "
        "- is standard input",
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    data = console.read(arguments.file)
    wrapped = me.wrap(data)
    if console.json:
        document = me.parse(wrapped, size=len(wrapped))
        console.result({"data": document, "unchanged": wrapped == data})
    else:
        console.write(wrapped)
    return FINE
