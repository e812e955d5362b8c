"""``convert``: one dialect into another, with a list of what did not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import mcp_envelope as me
from mcp_envelope.dialects import TABLE
from mcp_envelope.dialects.options import OPTIONS

from .console import FINE, UNREACHABLE, Console

if TYPE_CHECKING:
    import argparse

EXAMPLE = "mcp-envelope convert call.json --to tool/1.0 --timestamp 2026-01-01T00:00:00Z"
_METAVARS: Final = {
    "id": "ID",
    "timestamp": "T",
    "from_peer": "ID",
    "tool": "NAME",
    "method": "NAME",
    "correlation_id": "ID",
    "tier": "TIER",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("file", metavar="FILE", help="the envelope; - is standard input")
    parser.add_argument(
        "--to", metavar="D", required=True, help=f"the dialect wanted: {', '.join(TABLE)}"
    )
    parser.add_argument(
        "--from", metavar="D", dest="source", help="the dialect it is in; recognised if not given"
    )
    parser.add_argument(
        "--strict", action="store_true", help="refuse if anything is lost or filled in"
    )
    for name, meaning in OPTIONS.items():
        parser.add_argument(
            "--" + name.replace("_", "-"),
            dest=name,
            metavar=_METAVARS.get(name, "TEXT"),
            help=f"fill in, if needed and lacking: {meaning}",
        )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    filling = {name: getattr(arguments, name) for name in OPTIONS}
    _check_text(filling)
    data = console.read(arguments.file)
    converted = me.convert(data, arguments.to, arguments.source, arguments.strict, **filling)
    if console.json:
        console.result(
            {
                "from": converted.source,
                "to": converted.target,
                "data": me.parse(converted.data, size=len(converted.data)),
                "lost": list(converted.lost),
                "filled": list(converted.filled),
            }
        )
        return FINE
    console.write(converted.data)
    console.flush()
    for pointer in converted.lost:
        place = pointer or "(whole document)"
        console.note(f"lost: {place}: {converted.target} cannot hold it")
    for pointer in converted.filled:
        console.note(f"filled: {pointer}: {converted.source} does not say it")
    return UNREACHABLE if console.notes_lost else FINE


def _check_text(filling: dict[str, str | None]) -> None:
    for name, value in filling.items():
        if value is not None and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                option = "--" + name.replace("_", "-")
                raise me.UsageError(f"{option} is not UTF-8", hint="JSON is") from None
