"""``ledger verify``: does the record hold, and if not, what is wrong where."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import mcp_envelope as me
from mcp_envelope.core.merkle import range_hash
from mcp_envelope.core.notes import Note, VerifierKey
from mcp_envelope.core.ports import LedgerError
from mcp_envelope.core.seal import Removed
from mcp_envelope.core.together import Finding, Reading, compared
from mcp_envelope.core.verdict import Verdict
from mcp_envelope.core.verification import Verifier

from . import verdicts
from .console import DOES_NOT_HOLD, FINE, Console
from .outputs import Progress
from .records import KEY, keys_in, notes_in, opened

if TYPE_CHECKING:
    import argparse

    from .arguments import Parser

EXAMPLE = "mcp-envelope ledger verify calls.db --key ledger.pub --checkpoint kept.checkpoint"

_STEP: Final = 4_096
# More than a line may have: what comes in such pieces is none.
_LONGEST: Final = 1 << 17
_NO_TREE: Final = (
    "the tree that is kept beside the lines is damaged: proofs that are made with it do not hold, "
    "those of an export do (mcp-envelope ledger export)"
)
_BY_STRANGERS: Final = frozenset({"unsigned", "signature"})


class _Reading(Protocol):
    """What is read of a ledger that is a file, or comes in from outside."""

    @property
    def url(self) -> str: ...

    @property
    def size(self) -> int: ...

    def physical(self) -> Iterator[bytes]: ...

    def removed(self) -> Removed | None: ...

    def subtree(self, level: int, index: int) -> bytes: ...


def configure(parser: Parser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "ledgers",
        metavar="URL|FILE ...",
        nargs="+",
        help="the ledgers: sqlite:PATH or jsonl:PATH, just the files, or the names of upstreams "
        "whose default ones they are; - is JSON Lines from standard input",
    )
    parser.add_argument("--key", metavar="K", action="append", default=[], help=KEY)
    parser.add_argument(
        "--checkpoint",
        metavar="FILE",
        action="append",
        default=[],
        help="checkpoints that were kept elsewhere: they show lines that are gone from the end, "
        "and an old copy; may be given several times",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="exit with 1 also for what only somebody should look at: calls without an end, "
        "torn tails, lines that no checkpoint covers",
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    trusted = keys_in(arguments.key, console)
    known = [
        note for name in arguments.checkpoint for note in notes_in(name, "--checkpoint", console)
    ]
    names = tuple(dict.fromkeys(arguments.ledgers))
    if "-" in names and len(names) > 1:
        hint = "give it alone, or as a file: ledgers that are compared are read twice"
        raise me.UsageError("standard input among several ledgers", hint=hint)
    found = _verified(names, trusted, known)
    findings = _compared(found, known) if len(names) > 1 else ()
    report = verdicts.Report(found, findings, is_strict=arguments.strict, has_keys=bool(trusted))
    if console.json:
        console.result(report.as_json())
    else:
        for line in report.lines():
            console.say(line)
    return FINE if report.holds else DOES_NOT_HOLD


def _verified(
    names: tuple[str, ...], trusted: tuple[VerifierKey, ...], known: Sequence[Note]
) -> list[verdicts.Found]:
    """The verdicts. A key that one ledger hands on to is trusted in the others as well."""
    is_one = len(names) == 1
    found = {name: verify(name, trusted, known, is_one=is_one) for name in names}
    for _ in names if trusted and not is_one else ():
        handed = dict.fromkeys(key for one in found.values() for key in one.handed_on)
        new = tuple(key for key in handed if key not in trusted)
        again = [
            one.name
            for one in found.values()
            if one.verdict.damage is not None and one.verdict.damage.kind in _BY_STRANGERS
        ]
        if not new or not again:
            break
        trusted = (*trusted, *new)
        found |= {name: verify(name, trusted, known, is_one=is_one) for name in again}
    return list(found.values())


def verify(
    name: str,
    trusted: tuple[VerifierKey, ...] = (),
    known: Sequence[Note] = (),
    *,
    is_one: bool = True,
) -> verdicts.Found:
    """The verdict on one ledger, with progress at a terminal."""
    verifier, url, removed = Verifier(trusted, known, is_one_of_several=not is_one), name, None
    try:
        with _reading(name) as reading:
            url, verdict = reading.url, None
            while verdict is None:
                removed = reading.removed()
                verifier = Verifier(trusted, known, removed, is_one_of_several=not is_one)
                verdict = _verdict(name, verifier, reading)
    except LedgerError as error:
        if error.reached is None:
            raise
        verdict = verifier.corrupt(error.message)
    handed_on = [key for _, key in verifier.vouching.rotations] if verdict.holds else []
    return verdicts.Found(name, url, removed, verdict, trusted, tuple(handed_on))


def _verdict(name: str, verifier: Verifier, reading: _Reading) -> Verdict | None:
    """The verdict; None where a gateway removed lines meanwhile, so that it would say nothing."""
    try:
        with Progress(f"verifying {name}", _size(reading)) as progress:
            _feed(verifier, reading, progress)
    except LedgerError as error:
        if error.reached is None and _lost_lines(verifier, reading):
            return None
        raise
    verdict = _with_tree(verifier.finish(), reading)
    return verdict if verdict.holds or not _lost_lines(verifier, reading) else None


def _lost_lines(verifier: Verifier, reading: _Reading) -> bool:
    return _is_sqlite(reading) and reading.removed() != verifier.removed


def _with_tree(verdict: Verdict, reading: _Reading) -> Verdict:
    """The verdict, and whether the tree that is kept beside the lines is of any use.

    It is derived from them, and so no part of the record; proofs are made with it.
    """
    if not (_is_sqlite(reading) and verdict.holds and verdict.lines):
        return verdict
    try:
        if range_hash(0, verdict.next, reading.subtree) == verdict.root:
            return verdict
    except LedgerError:
        pass
    return replace(verdict, remarks=(*verdict.remarks, _NO_TREE))


def _compared(found: Sequence[verdicts.Found], known: Sequence[Note]) -> Sequence[Finding]:
    readings = [Reading(one.name, partial(_pieces, one), one.removed) for one in found]
    return compared(readings, [one.verdict for one in found], known)


def _pieces(found: verdicts.Found) -> Iterator[bytes]:
    with opened(found.name) as source:
        if _is_sqlite(source) and source.removed() != found.removed:
            hint = "verify them again"
            raise LedgerError(f"{found.name}: lines were removed meanwhile", hint=hint)
        yield from source.physical()


def _is_sqlite(reading: _Reading) -> bool:
    return reading.url.startswith("sqlite:")


def _size(reading: _Reading) -> int:
    """About how much there is; what is corrupt at its end can still be read from its beginning."""
    try:
        return reading.size
    except LedgerError:
        return 0


def _feed(verifier: Verifier, reading: _Reading, progress: Progress) -> None:
    by_lines = _is_sqlite(reading)
    size = 0
    for count, piece in enumerate(reading.physical(), 1):
        if not verifier.feed(piece):
            break
        size += len(piece)
        if count % _STEP == 0:
            progress.at(count if by_lines else size, count)


@contextlib.contextmanager
def _reading(name: str) -> Iterator[_Reading]:
    if name == "-":
        yield _Input()
        return
    with opened(name) as source:
        yield source


class _Input:
    """A ledger that comes in from outside, once."""

    url = "-"
    size = 0

    def __init__(self) -> None:
        if sys.stdin is None:
            raise me.UsageError("standard input is closed", hint="name a file")

    def physical(self) -> Iterator[bytes]:
        """Its lines."""
        stream = sys.stdin.buffer
        while piece := stream.readline(_LONGEST):
            yield piece

    def removed(self) -> Removed | None:
        """Nothing can be known of that before all of it is read."""
        return None

    def subtree(self, level: int, index: int) -> bytes:
        """Nothing is kept beside them."""
        raise LedgerError("there is no tree")
