"""``ledger prune``: the oldest lines go, and a signed line says so."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import mcp_envelope as me
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.proving import UnprovenError, newest_checkpoint
from mcp_envelope.core.signing import Signer
from mcp_envelope.gateway.archiving import SEGMENT, Archive, Plan, older_than, planned, remove
from mcp_envelope.stores import open_ledger

from . import ledger_verify, sealing
from .console import FINE, Console, utf8
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
    parser.add_argument("ledger", metavar="URL|FILE", help="the ledger: sqlite:PATH, or its file")
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
        help="write the lines to a file in this folder first; without it they are gone",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    parser.add_argument("--key-file", metavar="FILE", help=KEY_FILE)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    if (arguments.keep is None) == (arguments.before is None):
        raise me.UsageError("one of --keep and --before is needed", hint="like --keep 90d")
    limit = _limit(arguments)
    url = url_of(arguments.ledger)
    if not url.lower().startswith("sqlite:"):
        hint = "begin a new file instead, while no gateway writes this one"
        raise me.UsageError("lines can be removed from sqlite: ledgers only", hint=hint)
    with opened(url) as source:
        before = limit if isinstance(limit, int) else older_than(source, limit)
        plan = planned(source, before)
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
        for line in _said(done, before, is_dry=arguments.dry_run):
            console.say(line)
    if done.made_key:
        console.note("made a key to sign with: mcp-envelope keys show")
    return FINE


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
        return _as_written(at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC))
    except (ValueError, OverflowError):
        message = f"--before: {arguments.before!r:.80} is neither a line's number nor a time"
        raise me.UsageError(message, hint=f"write 4711, {_TIME}") from None


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


def _said(done: _Done, before: int, *, is_dry: bool) -> list[str]:
    plan = done.plan
    if not plan.lines:
        return [
            f"nothing to remove before line {before:,}: the ledger begins with {plan.first:,}",
            f"  (it goes in segments of {SEGMENT} lines, of which a checkpoint is never the last)",
        ]
    which = f"lines {plan.first:,} to {plan.end - 1:,}, {plan.lines:,} in number"
    if is_dry:
        return [f"would remove {which}"]
    said = [f"removed {which}"]
    if done.archive is not None:
        said.append(f"  they are in {done.archive}; it and an export of the rest, one behind the")
        said.append("  other, are the whole ledger: that can be verified, and each line proven")
    else:
        said.append("  they are gone: only their digests are left, in the tree and the checkpoints")
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
