"""``wrap``: any JSON into ``mcp.envelope.v0.1``."""

from __future__ import annotations

import argparse

from mcp_envelope.core.document import parse
from mcp_envelope.dialects.wrap import wrap

from .console import FINE, Console

HELP = "wrap any JSON into mcp.envelope.v0.1; an envelope comes back as it is, byte for byte"
EXAMPLE = "mcp-envelope wrap result.json > envelope.json"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the JSON to wrap; - is standard input")


def run(arguments: argparse.Namespace, console: Console) -> int:
    data = console.read(arguments.file)
    wrapped = wrap(data)
    if console.json:
        console.result({"data": parse(wrapped), "unchanged": wrapped == data})
    else:
        console.write(wrapped)
    return FINE
