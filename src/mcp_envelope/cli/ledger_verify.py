"""``ledger verify``: does the record hold, and if not, what is wrong where."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

import mcp_envelope as me
from mcp_envelope.core.notes import Checkpoint, Note, VerifierKey
from mcp_envelope.core.ports import LedgerError, Source
from mcp_envelope.core.proving import UnprovenError, newest_checkpoint, origin
from mcp_envelope.core.seal import Removed
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
_BY_STRANGERS: Final = frozenset({"unsigned", "signature"})


class _Reading(Protocol):
    """What is read of a ledger that is a file, or comes in from outside."""

    @property
    def url(self) -> str: ...

    @property
    def size(self) -> int: ...

    def physical(self) -> Iterator[bytes]: ...

    def removed(self) -> Removed | None: ...


@dataclass(slots=True)
class _Task:
    """A ledger that is to be verified, and what is known of it from outside."""

    name: str
    origin: str | None = None
    end: int = 0
    known: list[Note] = field(default_factory=list)


def configure(parser: Parser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "ledgers",
        metavar="URL|FILE ...",
        nargs="+",
        help="the ledgers: sqlite:PATH or jsonl:PATH, or just the files; - is JSON Lines from "
        "standard input",
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
        "torn tails",
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    trusted = keys_in(arguments.key, console)
    known = [
        note for name in arguments.checkpoint for note in notes_in(name, "--checkpoint", console)
    ]
    names = list(dict.fromkeys(arguments.ledgers))
    tasks = [_task(name) for name in names]
    findings = _assign(known, tasks)
    sizes = {task.end for task in tasks} if len(tasks) > 1 else set()
    found = _verified(tasks, trusted, sizes)
    findings += verdicts.differences(found)
    report = verdicts.Report(found, findings, is_strict=arguments.strict, has_keys=bool(trusted))
    if console.json:
        console.result(report.as_json())
    else:
        for line in report.lines():
            console.say(line)
    return FINE if report.holds else DOES_NOT_HOLD


def _task(name: str) -> _Task:
    """Look at a ledger for what has to be known before it is read."""
    if name == "-":
        return _Task(name)
    task = _Task(name)
    try:
        with opened(name) as source:
            task.end = source.bounds()[1]
            task.origin = origin(source)
            newest = newest_checkpoint(source) if task.origin is None else None
            if newest is not None:
                task.origin = newest.checkpoint.origin
    except (LedgerError, UnprovenError):
        pass  # it will be told with its verdict
    return task


def _assign(known: Sequence[Note], tasks: list[_Task]) -> list[verdicts.Finding]:
    """Give each checkpoint to the ledger that it is about; what is said of the others.

    A single ledger gets all of them: if one is of another ledger, that is its damage.
    """
    findings = []
    for note in known:
        said = Checkpoint.parse(note.text)
        mine = [task for task in tasks if task.origin == said.origin or len(tasks) == 1]
        for task in mine:
            task.known.append(note)
        if not mine:
            findings.append(verdicts.of_nobody(said))
    return findings


def _verified(
    tasks: list[_Task], trusted: tuple[VerifierKey, ...], sizes: set[int]
) -> list[verdicts.Found]:
    """The verdicts. A key that one ledger hands on to is trusted in the others as well."""
    found = {task.name: _verify(task, trusted, sizes) for task in tasks}
    for _ in tasks if trusted else ():
        handed = dict.fromkeys(key for one in found.values() for key in one.handed_on)
        new = tuple(key for key in handed if key not in trusted)
        again = [
            task
            for task in tasks
            if (damage := found[task.name].verdict.damage) and damage.kind in _BY_STRANGERS
        ]
        if not new or not again:
            break
        trusted = (*trusted, *new)
        for task in again:
            if task.name != "-":
                found[task.name] = _verify(task, trusted, sizes)
    return list(found.values())


def _verify(task: _Task, trusted: tuple[VerifierKey, ...], sizes: set[int]) -> verdicts.Found:
    verifier, url = Verifier(trusted, task.known), task.name
    try:
        with _reading(task.name) as reading:
            url = reading.url
            verifier = Verifier(trusted, task.known, reading.removed(), sizes)
            with Progress(f"verifying {url}", _size(reading)) as progress:
                _feed(verifier, reading, progress)
        verdict = verifier.finish()
    except LedgerError as error:
        if error.reached is None:
            raise
        verdict = verifier.corrupt(error.message)
    handed_on = [key for _, key in verifier.vouching.rotations] if verdict.holds else []
    return verdicts.Found(url, verdict, tuple(handed_on))


def _size(reading: _Reading) -> int:
    """About how much there is; what is corrupt at its end can still be read from its beginning."""
    try:
        return reading.size
    except LedgerError:
        return 0


def _feed(verifier: Verifier, reading: _Reading, progress: Progress) -> None:
    by_lines = reading.url.startswith("sqlite:")
    size = 0
    for count, piece in enumerate(reading.physical(), 1):
        if not verifier.feed(piece):
            break
        size += len(piece)
        if count % _STEP == 0:
            progress.at(count if by_lines else size, count)


@contextlib.contextmanager
def _reading(name: str) -> Iterator[_Reading | Source]:
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
