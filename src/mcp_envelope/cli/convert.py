"""``convert``: one dialect into another, with a list of what did not fit."""

from __future__ import annotations

import argparse
from typing import Final

from mcp_envelope.core.document import parse
from mcp_envelope.dialects.convert import OPTIONS, convert

from .console import FINE, Console

HELP = "turn an envelope into one of another dialect, and list what was lost and filled in"
EXAMPLE = "mcp-envelope convert call.json --to tool/1.0 --timestamp 2026-01-01T00:00:00Z"
_METAVARS: Final = {"id": "ID", "timestamp": "T", "from_peer": "ID", "tool": "NAME"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the envelope; - is standard input")
    parser.add_argument("--to", metavar="D", required=True, help="the dialect wanted")
    parser.add_argument("--from", metavar="D", dest="source", help="the dialect it is in")
    parser.add_argument(
        "--strict", action="store_true", help="refuse if anything is lost or filled in"
    )
    for name, meaning in OPTIONS.items():
        parser.add_argument(
            "--" + name.replace("_", "-"),
            dest=name,
            metavar=_METAVARS.get(name, "TEXT"),
            help=f"{meaning}, where the target needs it and the source lacks it",
        )


def run(arguments: argparse.Namespace, console: Console) -> int:
    filling = {name: getattr(arguments, name) for name in OPTIONS}
    data = console.read(arguments.file)
    converted = convert(data, arguments.to, arguments.source, arguments.strict, **filling)
    if console.json:
        console.result(
            {
                "from": converted.source,
                "to": converted.target,
                "data": parse(converted.data),
                "lost": list(converted.lost),
                "filled": list(converted.filled),
            }
        )
        return FINE
    console.write(converted.data)
    for pointer in converted.lost:
        console.note(f"lost: {pointer or '(the whole document)'}: {converted.target} cannot hold it")
    for pointer in converted.filled:
        console.note(f"filled: {pointer}: {converted.source} does not say it")
    return FINE
