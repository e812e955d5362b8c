"""A checkpoint of a ledger that no gateway writes: its verbs make one where one is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import mcp_envelope as me
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.ports import LedgerError, Sealing, Writing
from mcp_envelope.core.proving import Standing, newest_checkpoint
from mcp_envelope.core.signing import Signer, is_signed_by
from mcp_envelope.gateway import keys
from mcp_envelope.gateway.clockwork import Clockwork
from mcp_envelope.gateway.remembering import Memory
from mcp_envelope.stores import open_ledger

from .records import opened

if TYPE_CHECKING:
    import argparse

    from .arguments import Parser


@dataclass(frozen=True, slots=True)
class Sealed:
    """The newest checkpoint, if there is one, and how many lines stand behind it.

    ``written`` tells whether it was made just now, ``why_not`` why not; ``made_key`` is the file
    of a key that had to be made for it.
    """

    newest: Standing | None
    behind: int
    written: bool = False
    why_not: str = ""
    made_key: Path | None = None

    def notes(self) -> list[str]:
        """What a person should know of that."""
        said = []
        if self.made_key is not None:
            said.append(f"made a key to sign with: {self.made_key}")
        if self.written:
            said.append("wrote this checkpoint: nothing else writes the ledger")
        if self.behind and self.newest is not None:
            count = f"{self.behind:,} line{'s stand' if self.behind > 1 else ' stands'}"
            said.append(f"{count} behind it" + (f": {self.why_not}" if self.why_not else ""))
        return said


_READ_ONLY: Final = "--read-only was given"


def configure(parser: Parser) -> None:
    """Add the options."""
    parser.add_argument(
        "--read-only",
        action="store_true",
        help="write no checkpoint, even if there are lines without one and no gateway is running",
    )
    parser.add_argument(
        "--key-file",
        metavar="FILE",
        help="sign with the private key in this file; else with this machine's, if the ledger "
        "is signed by that",
    )


def sealed(url: str, arguments: argparse.Namespace, *, beyond: int | None = None) -> Sealed:
    """The newest checkpoint of a ledger, made now if that is needed and possible.

    It is needed if lines stand behind it; with ``beyond`` only if it does not cover that line.
    """
    before = _look(url)
    if before.behind == 0 or (
        beyond is not None and before.newest is not None and before.newest.seq > beyond
    ):
        return before
    if arguments.read_only:
        return Sealed(before.newest, before.behind, why_not=_READ_ONLY)
    path = Path(arguments.key_file) if arguments.key_file is not None else None
    why_not = "" if path is not None else foreign(before.newest)
    if why_not:
        return Sealed(before.newest, before.behind, why_not=why_not)
    signers, made = signers_of(path)
    try:
        asyncio.run(_seal(url, signers, path))
    except LedgerError as error:
        if not error.taken:
            raise
        why = f"{error.message}, which will seal them"
        return Sealed(before.newest, before.behind, why_not=why)
    except EnvelopeError as error:
        raise OSError(str(error)) from None
    after = _look(url)
    made_key = keys.key_path(path) if made else None
    return Sealed(after.newest, after.behind, written=True, made_key=made_key)


def signers_of(path: Path | None) -> tuple[Sequence[Signer], bool]:
    """The keys to sign with; a file that was named has to be there."""
    if path is not None and not path.is_file():
        hint = f"mcp-envelope keys new --out {path} makes one"
        raise me.UsageError(f"there is no key file {path}", hint=hint)
    return keys.signers(path)


def writing_with(signers: Sequence[Signer]) -> Writing:
    """How a verb writes a ledger: checkpoints where it asks for them, and nothing else."""
    real = Clockwork.real()
    return Writing(
        durability="power",
        sealing=Sealing(signers=signers, now=real.now, instance=real.instance, every=0),
    )


async def _seal(url: str, signers: Sequence[Signer], key: Path | None) -> None:
    ledger = open_ledger(url, writing=writing_with(signers))
    memory = Memory(keys.key_path(key), ledger.url)
    try:
        with opened(ledger.url) as source:
            memory.examine(source, [one.key for one in keys.stored(key)])
        await ledger.seal()
        with opened(ledger.url) as source:
            newest = newest_checkpoint(source)
        if newest is not None:
            memory.keep(str(newest.note).encode())
    finally:
        await ledger.close()


def _look(url: str) -> Sealed:
    with opened(url) as source:
        newest = newest_checkpoint(source)
        _, end = source.bounds()
    return Sealed(newest, end - (newest.seq + 1 if newest is not None else 0))


def foreign(newest: Standing | None) -> str:
    """Why this machine's key should not sign: the ledger is signed by others. Else nothing.

    So the copy of a ledger that an auditor looks at stays as it is.
    """
    if newest is None:  # if one was signed here before and is gone, it is remembered
        return ""
    try:
        if any(is_signed_by(newest.note, one.key) for one in keys.stored() if one.has_private):
            return ""
    except EnvelopeError as error:
        return error.message
    names = ", ".join(one.name for one in newest.sealed.keys)
    return f"{names} signs this ledger, and this machine has no such key (--key-file names one)"
