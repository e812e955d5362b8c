"""``ledger checkpoint``: the newest signed checkpoint of a ledger, to be kept elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp_envelope as me
from mcp_envelope.core.notes import Note, base64_of
from mcp_envelope.core.proofs import Consistency
from mcp_envelope.core.proving import Standing, UnprovenError, consistency, fields_of

from . import sealing
from .console import FINE, Console
from .outputs import check_free, write_whole
from .records import LEDGER, notes_in, opened, path_of, url_of

if TYPE_CHECKING:
    import argparse

    from .arguments import Parser

EXAMPLE = "mcp-envelope ledger checkpoint calls.db --out calls.checkpoint"


def configure(parser: Parser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("ledger", metavar="URL|FILE", help=LEDGER)
    parser.add_argument("--out", metavar="FILE", help="write it there, instead of printing it")
    parser.add_argument("--force", action="store_true", help="replace that file if it is there")
    parser.add_argument(
        "--since",
        metavar="FILE",
        help="prove that the ledger only grew since the older checkpoint in this file",
    )
    sealing.configure(parser)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    url = url_of(arguments.ledger)
    older = None if arguments.since is None else _older(arguments.since, console)
    if arguments.out is not None:
        read = [path_of(url), *([] if older is None else [Path(arguments.since)])]
        check_free(arguments.out, force=arguments.force, read=read)
    found = sealing.sealed(url, arguments)
    if found.newest is None:
        raise _none(found)
    proof = None if older is None else _proof(url, older, found.newest)
    text = str(found.newest.note if proof is None else proof).encode()
    if arguments.out is not None:
        write_whole(arguments.out, [text], force=arguments.force)
    if console.json:
        console.result(_as_json(url, found, found.newest, proof))
        return FINE
    if arguments.out is None:
        console.write(text)
        console.flush()
    elif proof is not None and older is not None:
        console.say(f"holds: the ledger only grew from {proof.old:,} lines to {found.newest.seq:,}")
    for note in found.notes():
        console.note(note)
    return FINE


def _older(name: str, console: Console) -> Note:
    found = notes_in(name, "--since", console)
    if len(found) > 1:
        hint = "give one of them; ledger verify --checkpoint takes several"
        raise me.UsageError(f"--since {name}: it holds {len(found)} checkpoints", hint=hint)
    return found[0]


def _proof(url: str, older: Note, newest: Standing) -> Consistency:
    with opened(url) as source:
        return consistency(source, older, newest)


def _none(found: sealing.Sealed) -> UnprovenError:
    if not found.behind:
        return UnprovenError("the ledger has no line, and so no checkpoint")
    return UnprovenError(
        "the ledger has no checkpoint" + (f": {found.why_not}" if found.why_not else ""),
        hint="a gateway that seals the record makes one (docs/settings.md, record.checkpoints)",
    )


def _as_json(
    url: str, found: sealing.Sealed, newest: Standing, proof: Consistency | None
) -> dict[str, Any]:
    said = newest.checkpoint
    return {
        "ledger": url,
        "line": newest.seq,
        "time": fields_of(newest.line)["time"],
        "origin": said.origin,
        "size": said.size,
        "root": base64_of(said.root),
        "keys": [str(key) for key in newest.sealed.keys],
        "note": str(newest.note),
        "written": found.written,
        "behind": found.behind,
        "why_behind": found.why_not or None,
        "consistency": None
        if proof is None
        else {"old": proof.old, "hashes": [base64_of(one) for one in proof.hashes]},
    }
