"""What `doctor` looks at of the record: where it is kept, who writes it, what signs it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from mcp_envelope.core.document import parse
from mcp_envelope.core.errors import ConfigError, EnvelopeError
from mcp_envelope.core.merkle import range_hash
from mcp_envelope.core.ports import LedgerError, Source
from mcp_envelope.core.proving import UnprovenError, newest_checkpoint, origin
from mcp_envelope.core.verification import Verifier
from mcp_envelope.stores import read_ledger
from mcp_envelope.stores.locks import holder_of, note_of

from . import parts
from .checkup import BROKEN, UNREACHABLE, Finding
from .keys import key_path, stored
from .remembering import Memory
from .settings import Settings

_AHEAD: Final = 60.0
#: Of so many lines all are looked at: that takes about a second.
_FEW: Final = 20_000


def store(settings: Settings) -> Iterator[Finding]:
    """Whether the record could be written; nothing is made or changed."""
    path = parts.ledger_path_of(settings)
    if path is None:
        hint = "name a file with --ledger sqlite:PATH to keep it"
        yield Finding("store", "note", "the record is in memory and gone with the process", hint)
        return
    scheme = (settings.ledger or "sqlite:").partition(":")[0]
    url = f"{scheme}:{path}"
    wrong = _obstacle(path)
    if wrong is not None:
        yield wrong
    elif path.exists():
        yield from _existing(url, path, settings)
    else:
        yield Finding("store", "ok", f"{url} will be made")


def key(settings: Settings) -> Iterator[Finding]:
    """Whether there is a key that signs the record, or can be one."""
    if parts.ledger_path_of(settings) is None:
        return
    if not settings.record.checkpoints:
        hint = "leave out record.checkpoints = false"
        yield Finding("key", "note", "the record is not signed: it could be written anew", hint)
        return
    named = settings.record.key
    try:
        path = key_path(Path(named) if named is not None else None)
        keys = stored(path)
    except (ConfigError, OSError) as error:
        yield Finding("key", "problem", str(error), "", UNREACHABLE)
        return
    if keys and keys[0].is_current:
        yield Finding("key", "ok", f"{keys[0].key.name} in {path}")
        return
    wrong = _obstacle(path, "key", "name another file with record.key")
    yield wrong if wrong is not None else Finding("key", "ok", f"{path} will be made")


def outside(settings: Settings) -> Iterator[Finding]:
    """Whether checkpoints can leave for where they are published, and old lines be kept."""
    record = settings.record
    if record.publish_file is not None:
        path = Path(record.publish_file)
        other = "name another file with record.publish_file"
        wrong = _obstacle(path, "record", other)
        if wrong is None and not path.parent.is_dir():
            message = f"checkpoints cannot be published: there is no folder {path.parent}"
            wrong = Finding("record", "problem", message, f"make it, or {other}", UNREACHABLE)
        elif wrong is None and not os.access(path.parent, os.W_OK):
            message = f"checkpoints cannot be published: {path.parent} cannot be written"
            wrong = Finding("record", "problem", message, other, UNREACHABLE)
        yield wrong or Finding("record", "ok", f"checkpoints are published to {path}")
    if record.publish_command:
        yield _program(record.publish_command[0])
    if record.archive is not None:
        yield _archive(Path(record.archive))


def _program(name: str) -> Finding:
    if shutil.which(name) is not None:
        return Finding("record", "ok", f"checkpoints are published by {Path(name).name!r:.200}")
    message = f"checkpoints cannot be published: there is no program {name!r:.200}"
    hint = "install it, or write its whole path in record.publish_command"
    return Finding("record", "problem", message, hint, UNREACHABLE)


def _archive(path: Path) -> Finding:
    other = "name another folder with record.archive"
    if path.is_dir():
        if os.access(path, os.W_OK):
            return Finding("record", "ok", f"old lines are kept in {path}")
        message = f"old lines cannot be kept: {path} cannot be written"
        return Finding("record", "problem", message, other, UNREACHABLE)
    if path.exists():
        message = f"old lines cannot be kept: {path} is no folder"
        return Finding("record", "problem", message, other, UNREACHABLE)
    wrong = _obstacle(path, "record", other)
    return wrong or Finding("record", "ok", f"old lines are kept in {path}, which will be made")


def _obstacle(
    path: Path, area: str = "store", other: str = "name another file with --ledger sqlite:PATH"
) -> Finding | None:
    """Why a file cannot be written, as far as that can be seen without doing it."""
    if path.exists() and not path.is_file():
        return Finding(area, "problem", f"{path} is no regular file", other, UNREACHABLE)
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    if place != path and not place.is_dir():
        return Finding(area, "problem", f"{place} is no folder", other, UNREACHABLE)
    if not os.access(place, os.W_OK):
        hint = f"change its permissions, or {other}"
        return Finding(area, "problem", f"{place} cannot be written", hint, UNREACHABLE)
    return None


def _existing(url: str, path: Path, settings: Settings) -> Iterator[Finding]:
    is_named = settings.ledger is not None
    locked = note_of(path) if url.startswith("sqlite:") else path
    try:
        held = holder_of(locked, path)
        count, newest, damage = _newest(url)
    except (ConfigError, LedgerError, EnvelopeError, OSError) as error:
        yield Finding("store", "problem", str(error), "", UNREACHABLE)
        return
    if held is not None and is_named:
        yield Finding("store", "problem", held.message, held.hint, UNREACHABLE)
    elif held is not None:
        yield Finding("store", "ok", f"{held.message}: the next free file beside it is used")
    elif not damage and (other := _other(url, settings)) is not None:
        yield Finding("store", "problem", other.message, other.hint, UNREACHABLE)
    elif not damage:
        yield Finding("store", "ok", f"{url} goes on: {count:,} lines")
    if damage:
        hint = "mcp-envelope ledger verify says more; keep it as it is, and begin another one"
        yield Finding("store", "problem", f"{url} does not hold: {damage}", hint, BROKEN)
    if newest is not None and newest > datetime.now(UTC).timestamp() + _AHEAD:
        said = datetime.fromtimestamp(newest, UTC).isoformat(timespec="seconds")
        hint = "the clock of this machine was put back, or was wrong then: set it"
        yield Finding("clock", "problem", f"the newest line is from {said}", hint, BROKEN)


def _newest(url: str) -> tuple[int, float | None, str]:
    """How many lines have been written to a ledger, when the last one was, and what is wrong."""
    source = read_ledger(url)
    try:
        _, count = source.bounds()
        place = source.place_of(count - 1) if count else None
        if place is None:
            return count, None, ""
        time = parse(source.at(place)).value["time"]
        return count, datetime.fromisoformat(time).timestamp(), _damage(source)
    finally:
        source.close()


def _other(url: str, settings: Settings) -> LedgerError | None:
    """Why a gateway would not go on with a ledger: it is not the one that was signed here."""
    named = settings.record.key
    path = key_path(Path(named) if named is not None else None)
    source = read_ledger(url)
    try:
        if settings.record.checkpoints:
            Memory(path, source.url).examine(source, [one.key for one in stored(path)])
    except LedgerError as error:
        return error
    except (ConfigError, EnvelopeError, OSError):
        return None  # of the key, of which more is said elsewhere
    finally:
        source.close()
    return None


def _damage(source: Source) -> str:
    """What does not hold: of all lines, or where they are many of the last checkpoint."""
    first, end = source.bounds()
    try:
        if end - first <= _FEW:
            verifier = Verifier(removed=source.removed())
            for piece in source.physical():
                if not verifier.feed(piece):
                    break
            damage = verifier.finish().damage
            return f"line {damage.seq}: {damage}" if damage is not None else ""
        last = newest_checkpoint(source)
        if last is None:
            return ""
        said, own = last.checkpoint, origin(source)
        is_same = range_hash(0, said.size, source.subtree) == said.root
    except (UnprovenError, LedgerError) as error:
        return error.message
    if is_same and own in (None, said.origin):
        return ""
    return f"its last checkpoint, line {last.seq}, is not about its lines"
