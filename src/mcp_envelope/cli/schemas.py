"""``schemas``: the published JSON Schemas, listed or written to a folder."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_envelope.core.errors import UsageError
from mcp_envelope.dialects import DIALECTS

from .console import FINE, Console

HELP = "list the published JSON Schemas, or write them to a folder"
EXAMPLE = "mcp-envelope schemas --dialect tool/1.0 --out schemas/"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dialect", metavar="D", help="only those of this dialect")
    parser.add_argument(
        "--out", metavar="DIR", help="write them to DIR/<dialect>/<name>, made if need be"
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    found = list(_published(arguments.dialect))
    written = []
    for dialect, name, text, _ in found:
        if arguments.out is not None:
            written.append(str(_write(Path(arguments.out), dialect, name, text)))
    if console.json:
        keys = ("dialect", "name", "schema")
        listed = [dict(zip(keys, (d, n, schema), strict=True)) for d, n, _, schema in found]
        console.result({"schemas": listed, "written": written})
    elif arguments.out is not None:
        for path in written:
            console.say(path)
    else:
        for dialect, name, _, schema in found:
            console.say(f"{dialect:16} {name:40} {schema['title']}")
            console.say(f"{'':16} {schema['$id']}")
    return FINE


def _published(only: str | None) -> Iterator[tuple[str, str, bytes, dict[str, Any]]]:
    for dialect in [only] if only is not None else list(DIALECTS):
        for name, document in DIALECTS[dialect].schemas().items():
            yield dialect, name, document.raw, document.value


def _write(folder: Path, dialect: str, name: str, text: bytes) -> Path:
    path = folder / dialect / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"{folder} is not a folder", hint="name one with --out") from None
    path.write_bytes(text)
    return path
