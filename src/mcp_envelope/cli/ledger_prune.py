"""``ledger prune``: the oldest lines go, and a signed line says so."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import mcp_envelope as me
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.ports import Source
from mcp_envelope.core.proving import UnprovenError, newest_checkpoint
from mcp_envelope.core.signing import Signer
from mcp_envelope.gateway.archiving import SEGMENT, Archive, Plan, older_than, planned, remove
from mcp_envelope.stores import open_ledger

from . import ledger_verify, sealing
from .console import FINE, Console, shown, utf8
from .entries import object_of
from .records import KEY_FILE, opened, url_of

if TYPE_CHECKING:
    import argparse

    from .arguments import Parser

EXAMPLE = "mcp-envelope ledger prune calls.db --keep 90d --archive archive/"

_AGE: Final = re.compile(r"([0-9]{1,9})([smhdw])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_TIME: Final = "2026-01-31 or 2026-01-31T12:00:00Z"


class _Done(NamedTuple):
    """What was removed, where it is kept, and the number of the line that tells of it."""

    plan: Plan
    archive: Path | None = None
    told_in: int | None = None
    made_key: bool = False


def configure(parser: Parser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "ledger",
        metavar="URL|FILE",
        help="the ledger: sqlite:PATH, its file, or the name of its upstream",
    )
    parser.add_argument(
        "--keep", metavar="AGE", help="remove what is older: 90d, or a number of s, m, h, d or w"
    )
    parser.add_argument(
        "--before",
        metavar="SEQ|TIME",
        help=f"remove what stands before this line, or is from before this time: {_TIME}",
    )
    parser.add_argument(
        "--archive",
        metavar="DIR",
        help="write the lines, without their bodies, to a file in this folder first",
    )
    parser.add_argument(
        "--discard", action="store_true", help="keep no copy: the lines are gone for good"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    parser.add_argument("--key-file", metavar="FILE", help=KEY_FILE)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    _look(arguments)
    limit = _limit(arguments)
    url = url_of(arguments.ledger)
    if not url.lower().startswith("sqlite:"):
        hint = "begin a new file instead, while no gateway writes this one"
        raise me.UsageError("lines can be removed from sqlite: ledgers only", hint=hint)
    with opened(url) as source:
        if isinstance(limit, int):
            _check_number(limit, source)
        before = limit if isinstance(limit, int) else older_than(source, limit)
        plan = planned(source, before)
        why_none = [] if plan.lines else list(_why_none(source, before, limit, arguments.keep))
        why = sealing.foreign(newest_checkpoint(source)) if arguments.key_file is None else ""
    done = _Done(plan)
    if plan.lines and not arguments.dry_run:
        if why:
            raise me.UsageError(f"nothing was removed: {why}")
        _check(url)
        done = _remove(url, plan, arguments)
    if console.json:
        console.result(_as_json(url, done, is_dry=arguments.dry_run))
    else:
        for line in why_none or _said(done, is_dry=arguments.dry_run):
            console.say(line)
    if done.made_key:
        console.note("made a key to sign with: mcp-envelope keys show")
    return FINE


def _look(arguments: argparse.Namespace) -> None:
    """Raise UsageError for words that do not go together, before anything is done."""
    if (arguments.keep is None) == (arguments.before is None):
        raise me.UsageError("one of --keep and --before is needed", hint="like --keep 90d")
    if arguments.archive is not None and arguments.discard:
        raise me.UsageError("--archive and --discard do not go together", hint="leave one out")
    if arguments.archive is None and not (arguments.discard or arguments.dry_run):
        hint = "--archive DIR keeps them, --discard does not, --dry-run only says which they are"
        raise me.UsageError("nothing says what becomes of the lines", hint=hint)


def _limit(arguments: argparse.Namespace) -> int | str:
    """A number of lines, or a time as lines write it."""
    if arguments.keep is not None:
        found = _AGE.fullmatch(arguments.keep)
        if found is None:
            hint = "write 90d, or a number of s, m, h, d or w"
            raise me.UsageError(f"--keep: {arguments.keep!r:.80} is no age", hint=hint)
        seconds = time.time() - int(found[1]) * _SECONDS[found[2]]
        return _as_written(datetime.fromtimestamp(max(0.0, seconds), UTC))
    if re.fullmatch(r"[0-9]{1,18}", arguments.before):
        return int(arguments.before)
    try:
        at = datetime.fromisoformat(arguments.before)
        at = at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        message = f"--before: {arguments.before!r:.80} is neither a line's number nor a time"
        raise me.UsageError(message, hint=f"write 4711, {_TIME}") from None
    if at > datetime.now(UTC):
        message = f"--before {arguments.before:.80}: this is in the future, and would be all lines"
        raise me.UsageError(message, hint="name a time that has been, or the number of a line")
    return _as_written(at)


def _as_written(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def _check(url: str) -> None:
    """See that the ledger holds: what goes could not be looked into any more."""
    damage = ledger_verify.verify(url).verdict.damage
    if damage is not None:
        raise UnprovenError(
            f"the ledger does not hold, and so nothing was removed: line {damage.seq}: {damage}",
            hint="mcp-envelope ledger verify says more",
        )


def _remove(url: str, plan: Plan, arguments: argparse.Namespace) -> _Done:
    key = Path(arguments.key_file) if arguments.key_file is not None else None
    signers, made_key = sealing.signers_of(key)
    archive = None
    if arguments.archive is not None:
        name = Path(url.partition(":")[2]).stem
        folder = Path(arguments.archive)
        try:
            archive = Archive(folder, name, plan)
        except FileExistsError as error:
            hint = "name another folder with --archive"
            raise me.UsageError(str(error), hint=hint) from None
    try:
        gone = asyncio.run(_go(url, signers, plan, archive))
    except EnvelopeError as error:
        raise OSError(f"nothing was removed: {error.message}") from None
    finally:
        if archive is not None:
            archive.close()
    with opened(url) as source:
        newest = newest_checkpoint(source)
    told_in = newest.seq if newest is not None else None
    return _Done(
        Plan(plan.first, plan.first + gone), archive.path if archive else None, told_in, made_key
    )


async def _go(url: str, signers: Sequence[Signer], plan: Plan, archive: Archive | None) -> int:
    ledger = open_ledger(url, writing=sealing.writing_with(signers))
    try:
        return await remove(ledger, plan, archive)
    finally:
        await ledger.close()


def _check_number(before: int, source: Source) -> None:
    """See that there are so many lines, or a slip of the hand would take them all."""
    first, end = source.bounds()
    if before > end:
        there = f"lines {first:,} to {end - 1:,}" if end > first else "no line"
        raise me.UsageError(
            f"--before {before}: it is beyond the end, the ledger has {there}",
            hint=f"--before {end} means all of them, as far as they can go",
        )


def _why_none(source: Source, before: int, limit: int | str, age: str | None) -> Iterator[str]:
    """Why nothing can be removed, and when something can."""
    first, end = source.bounds()
    if end == first:
        yield "nothing to remove: the ledger has no line"
        return
    if before > first:
        yield f"nothing to remove yet: of lines {first:,} to {before - 1:,} none can go alone"
    elif isinstance(limit, int):
        yield f"nothing to remove before line {before:,}: the ledger begins with {first:,}"
    else:
        yield f"nothing to remove: no line is older than {limit}, the first is of {_time(source)}"
    yield f"  lines go in segments of {SEGMENT}, of which a checkpoint is never the last"
    ends = range((first // SEGMENT + 1) * SEGMENT, end, SEGMENT)
    after = next((one for one in ends if planned(source, one).lines), None)
    if after is None:
        least = (first // SEGMENT + 1) * SEGMENT
        yield f"  there are {end - first:,} lines: none can go before line {least:,} is there"
    elif isinstance(limit, int):
        yield f"  the first that can go are lines {first:,} to {after - 1:,}: --before {after}"
    else:
        when = f", once that is older than {age}" if age is not None else ""
        yield f"  the first that can go are lines {first:,} to {after - 1:,}{when};"
        yield f"  line {after - 1:,} is of {_time(source, after - 1)}"


def _time(source: Source, seq: int | None = None) -> str:
    """The time of a line, or of the first one."""
    place = source.place_of(source.bounds()[0] if seq is None else seq)
    entry = object_of(source.at(place)) if place is not None else None
    return shown(str(entry.get("time"))) if entry is not None else "an unknown time"


def _said(done: _Done, *, is_dry: bool) -> list[str]:
    plan = done.plan
    which = f"lines {plan.first:,} to {plan.end - 1:,}, {plan.lines:,} in number"
    if is_dry:
        return [f"would remove {which}"]
    said = [f"removed {which}"]
    if done.archive is not None:
        said.append(f"  they are in {done.archive}; it and an export of the rest, one behind the")
        said.append("  other, are the whole ledger: that can be verified, and each line proven;")
        said.append("  bodies that were kept of these calls are not in it, and gone with the lines")
    else:
        said.append(
            "  they are gone, and bodies that were kept of them: what is left of them is in"
        )
        said.append("  the tree and the checkpoints")
    said.append(
        f"  line {done.told_in:,} says so, signed; the ledger goes on from {plan.end:,} and"
    )
    said.append("  holds as before, also against checkpoints that were kept elsewhere")
    return said


def _as_json(url: str, done: _Done, *, is_dry: bool) -> dict[str, object]:
    plan = done.plan
    return {
        "ledger": url,
        "dry_run": is_dry,
        "lines": plan.lines,
        "first": plan.first if plan.lines else None,
        "last": plan.end - 1 if plan.lines else None,
        "begins_at": plan.first if is_dry else plan.end,
        "archive": None if done.archive is None else utf8(str(done.archive)),
        "told_in": done.told_in,
    }
