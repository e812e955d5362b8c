"""``ledger verifier``: the verifier in one file, for an auditor who trusts nothing else of ours."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

import mcp_envelope as me

from .console import FINE, Console, utf8
from .outputs import write_whole

if TYPE_CHECKING:
    import argparse

    from .arguments import Parser

EXAMPLE = "mcp-envelope ledger verifier --out verify_ledger.py"
_FILE: Final = Path(me.__file__).with_name("verify_ledger.py")


def configure(parser: Parser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("--out", metavar="FILE", help="write it there, instead of printing it")
    parser.add_argument("--force", action="store_true", help="replace that file if it is there")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    text = _FILE.read_bytes()
    if arguments.out is not None:
        write_whole(arguments.out, [text], force=arguments.force)
    if console.json:
        out = None if arguments.out is None else utf8(arguments.out)
        digest = sha256(text).hexdigest()
        digest = sha256(text).hexdigest()
        console.result({"out": out, "sha256": digest, "source": text.decode()})
    elif arguments.out is None:
        console.write(text)
    return FINE
