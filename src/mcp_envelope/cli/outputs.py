"""Files that verbs write, and how far a long one has come."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import mcp_envelope as me
from mcp_envelope.gateway.whole_file import WholeFile

from .spared import check_spared

_SILENT: Final = 1.0
_EVERY: Final = 0.2
_MINUTE: Final = 60


def write_whole(
    name: str, parts: Iterable[bytes], *, force: bool, read: Iterable[Path] = ()
) -> int:
    """Write a file completely, for its owner only, or not at all; how many bytes.

    UsageError if it is there already and not to be replaced, or can be none; a ledger, what
    belongs to one, a key and what is ``read`` are never replaced. What is no regular file, like
    ``/dev/null``, is written to as it is.
    """
    check_free(name, force=force, read=read)
    path, count = Path(name), 0
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as device:
                return sum(device.write(part) for part in parts)
        with WholeFile(path, over=force) as file:
            for part in parts:
                file.write(part)
                count += len(part)
            file.finish()
    except FileExistsError:
        raise _taken(name) from None
    except OSError as error:
        if error.errno is None:  # of a ledger, which says all that there is to say
            raise
        raise OSError(error.errno, error.strerror, name) from None
    return count


def check_free(name: str, *, force: bool, read: Iterable[Path] = ()) -> None:
    """See, before there is any work, that a file of this name can be written."""
    path = Path(name)
    if not name or path.is_dir():
        raise me.UsageError(f"{name or 'an empty name'} is no file", hint="name one with --out")
    if not path.parent.is_dir():
        raise me.UsageError(f"there is no folder {path.parent}", hint="make it first")
    check_spared(name, read)
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP) and os.path.lexists(path) and not force:
            raise _taken(name) from None
        return
    if stat.S_ISREG(mode) and not force:
        raise _taken(name)


def _taken(name: str) -> me.UsageError:
    return me.UsageError(f"{name} is there already", hint="name another file, or use --force")


class Progress:
    """A line on standard error, at a terminal only, that is gone at the end.

    ``total`` is how much there is of whatever ``at`` is told. It says nothing in the first
    second: short work needs no words.
    """

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._stream = sys.stderr
        self._is_on = self._stream is not None and self._stream.isatty()
        self._begin = time.monotonic()
        self._next = self._begin + _SILENT
        self._is_shown = False

    def at(self, place: int, lines: int) -> None:
        """So far it has come. Cheap enough to be called now and then, not for each line."""
        if not self._is_on:
            return
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _EVERY
        seconds = now - self._begin
        part = min(1.0, place / self._total) if self._total > 0 else 0.0
        said = f"{self._what}: {lines:,} lines, {lines / seconds:,.0f} a second"
        if part > 0:
            said += f", {part:.0%}, {_time(seconds * (1 - part) / part)} left"
        self._write(f"\r\x1b[K{said}")
        self._is_shown = True

    def end(self) -> None:
        """Take the line away."""
        if self._is_shown:
            self._write("\r\x1b[K")
            self._is_shown = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._is_on = False


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
