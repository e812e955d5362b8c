"""``schemas``: the published JSON Schemas, listed, printed or written to a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import mcp_envelope as me
from mcp_envelope.dialects import DIALECTS, TABLE
from mcp_envelope.gateway import settings_schema

from .arguments import nearest
from .console import FINE, Console, utf8
from .spared import check_spared

if TYPE_CHECKING:
    import argparse

EXAMPLE = "mcp-envelope schemas --dialect tool/1.0 --out schemas/"
#: What is no dialect and has a published schema all the same.
SETTINGS = "settings"


class _Published(NamedTuple):
    dialect: str
    name: str
    document: me.Document


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        help="print this schema: its file name (with --dialect, where several have one of that "
        "name) or its $id",
    )
    parser.add_argument(
        "--dialect",
        metavar="D",
        help=f"only those of this dialect: {', '.join(TABLE)}; or {SETTINGS}",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="write them to DIR/<dialect>/<name> instead; folders are made, older files replaced",
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    found = _published(arguments.dialect)
    if arguments.name is not None:
        found = [_named(arguments.name, found)]
    written = []
    if arguments.out is not None:
        folder = _folder(arguments.out)
        written = [_write(folder, schema) for schema in found]
    if console.json:
        listed = [{"dialect": s.dialect, "name": s.name, "schema": s.document} for s in found]
        console.result({"schemas": listed, "written": [utf8(str(path)) for path in written]})
    elif arguments.out is not None:
        for path in written:
            console.say(str(path))
    elif arguments.name is not None:
        console.write(found[0].document.raw)
    else:
        for schema in found:
            value = schema.document.value
            console.say(f"{schema.dialect:16} {schema.name:40} {value['title']}")
            console.say(f"{'':16} {value['$id']}")
    return FINE


def _published(only: str | None) -> list[_Published]:
    found = [
        _Published(dialect, name, document)
        for dialect in ([only] if only not in (None, SETTINGS) else DIALECTS)
        for name, document in DIALECTS[dialect].schemas().items()
        if only != SETTINGS
    ]
    if only in (None, SETTINGS):
        found.append(_Published(SETTINGS, settings_schema.NAME, settings_schema.document()))
    return found


def _named(name: str, published: list[_Published]) -> _Published:
    found = [s for s in published if name in (s.name, s.document.value["$id"])]
    if not found:
        near = nearest(name, [schema.name for schema in published])
        hint = f"did you mean {near}?" if near else "mcp-envelope schemas lists them"
        raise me.UsageError(f"no schema {name!r}", hint=hint)
    if len(found) > 1:
        owners = ", ".join(schema.dialect for schema in found)
        raise me.UsageError(
            f"{name} is a file of several dialects", hint=f"with --dialect: {owners}"
        )
    return found[0]


def _folder(name: str) -> Path:
    if not name:
        raise me.UsageError("the name of the folder is empty", hint="--out . is this folder")
    if Path(name).exists() and not Path(name).is_dir():
        raise me.UsageError(f"{name} is not a folder", hint="name one with --out")
    return Path(name)


def _write(folder: Path, schema: _Published) -> Path:
    path = folder / schema.dialect / schema.name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        hint = "name one with --out"
        raise me.UsageError(f"{error.filename} is not a folder", hint=hint) from None
    check_spared(str(path))
    path.write_bytes(schema.document.raw)
    return path
