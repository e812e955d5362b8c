"""``keys new``: a key to sign the record with, in place of the one before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import mcp_envelope as me
from mcp_envelope.gateway import keys

from .console import FINE, Console, utf8
from .spared import check_spared

if TYPE_CHECKING:
    import argparse

    from .arguments import Parser

KEY_FILE: Final = "the private key, where record.key in the settings names another file"
EXAMPLE = "mcp-envelope keys new example.org/gateway-7"


def configure(parser: Parser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        help="what the key is called in signatures: letters, digits and . _ / - of ASCII; "
        "mcp-envelope/ and eight digits unless given",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="write it there, and FILE with .pub for its ending beside it, for another machine; "
        "this one's key stays as it is",
    )
    parser.add_argument("--key-file", metavar="FILE", help=KEY_FILE)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    if arguments.out is None:
        path = None if arguments.key_file is None else Path(arguments.key_file)
        made = keys.make(arguments.name, path)
    elif arguments.key_file is not None:
        raise me.UsageError("--out and --key-file do not go together", hint="leave one out")
    else:
        made = _elsewhere(arguments.out, arguments.name)
    key, replaced = made.signer.key, made.replaced
    if console.json:
        console.result(
            {
                "key": str(key),
                "name": key.name,
                "id": key.id.hex(),
                "path": utf8(str(made.path)),
                "public": utf8(str(keys.public_path(made.path))),
                "replaced": None if replaced is None else str(replaced.key),
            }
        )
        return FINE
    console.say(str(key))
    console.flush()
    console.note(f"private key: {made.path}")
    console.note(f"public key:  {keys.public_path(made.path)}")
    if replaced is not None:
        days = round(keys.SIGNS_ALONG / 86_400)
        console.note(f"replaced:    {replaced.key.name}, kept in {replaced.path}")
        console.note(
            f"restart the gateways: checkpoints are then signed by both, for {days} days, so "
            "that whoever trusts the old key learns of the new one"
        )
    return FINE


def _elsewhere(name: str, called: str | None) -> keys.Made:
    path = Path(name)
    hint = "name a new file with --out"
    if not name or path.is_dir():
        raise me.UsageError(f"{name or 'an empty name'} is no file", hint=hint)
    if path.suffix == ".pub":
        raise me.UsageError("the public key goes into FILE.pub", hint="give FILE another ending")
    if not path.parent.is_dir():
        raise me.UsageError(f"there is no folder {path.parent}", hint="make it first")
    for one in (path, keys.public_path(path)):
        if not one.exists():  # nor may it take the place of what belongs to a ledger
            check_spared(str(one))
    try:
        return keys.make_at(path, called)
    except FileExistsError as error:
        raise me.UsageError(str(error), hint=f"a key is never overwritten: {hint}") from None
