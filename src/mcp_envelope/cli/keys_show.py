"""``keys show``: the public key, for whoever verifies the record."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_envelope.gateway import keys

from .console import FINE, Console, utf8
from .keys_new import KEY_FILE

if TYPE_CHECKING:
    import argparse

    from .arguments import Parser

EXAMPLE = "mcp-envelope keys show > ledger.pub"


def configure(parser: Parser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "--all",
        action="store_true",
        help="the older keys of this machine too, newest first: what they signed needs them",
    )
    parser.add_argument("--key-file", metavar="FILE", help=KEY_FILE)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    path = None if arguments.key_file is None else Path(arguments.key_file)
    found = keys.stored(path)
    if not arguments.all:
        found = [one for one in found if one.is_current]
    if not found:
        now = "" if path is None else f" --out {path}"
        raise keys.KeyFileError(
            f"there is no key {keys.key_path(path)}",
            hint=f"the gateway makes one when it first starts; or now: mcp-envelope keys new{now}",
        )
    if console.json:
        console.result({"keys": [_as_json(one) for one in found]})
        return FINE
    is_watched = sys.stderr is not None and sys.stderr.isatty()
    for one in found:
        console.say(str(one.key))
        console.flush()
        if is_watched:
            console.note(f"  id {one.key.id.hex()}, {_place(one)}")
    return FINE


def _as_json(one: keys.StoredKey) -> dict[str, object]:
    return {
        "key": str(one.key),
        "name": one.key.name,
        "id": one.key.id.hex(),
        "path": utf8(str(one.path)),
        "current": one.is_current,
        "private": one.has_private,
    }


def _place(one: keys.StoredKey) -> str:
    if one.is_current:
        return f"the private key is {one.path}"
    if one.has_private:
        return f"replaced, and signs along: {one.path}"
    return "replaced; its private key is gone"
