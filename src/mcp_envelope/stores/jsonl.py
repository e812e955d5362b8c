"""A ledger in a file of JSON Lines, which anybody can read and nothing rewrites.

Each line is handed to the operating system before ``append`` returns, so that it survives the
death of the process; nothing is forced to the disk, so that it may not survive a loss of power.

Lines are written by the event loop itself: a write of a line takes about 1 µs, handing it to a
thread 30 µs. Nothing can come in between, which also makes the order that of the calls.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import stat
import sys
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from mcp_envelope.core.entry import Facts, Receipt, line
from mcp_envelope.core.errors import ConfigError, EnvelopeError
from mcp_envelope.core.ports import LedgerError

from .places import make_private
from .tail import Tail, Torn, read_tail

if sys.platform != "win32":
    import fcntl

_log: Final = logging.getLogger("mcp_envelope.ledger")
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND
_TRIES: Final = 10


class JsonLinesLedger:
    """The chain of one file: made if absent, else continued. ``path`` is where it is.

    A lock that dies with the process keeps it for one writer. LedgerError, naming the holder
    if that is known, if it is taken, no ledger, or out of reach.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None
        fd = _open_locked(path)
        try:
            tail = _tail_of(fd, path)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        self._note = _note_of(path)
        self._seq = tail.seq
        self._prev = tail.prev
        self._size = tail.size
        self._torn = tail.torn
        self._is_failing = False
        if self._torn:
            size = self._torn.size
            _log.warning("%s ends in %d bytes of a line never finished; going on", path, size)
        # Only to name us to whoever comes second: the lock itself is on the ledger.
        with contextlib.suppress(OSError):
            _write_note(self._note)

    @property
    def url(self) -> str:
        """``jsonl:PATH``."""
        return f"jsonl:{self.path}"

    async def append(self, facts: Facts, bodies: Sequence[bytes] = ()) -> Receipt:
        """Write a line; when this returns it survives the death of the process."""
        before = b""
        torn = self._torn
        if torn:
            before = torn.ending
            facts = replace(facts, warnings=(torn.warning(), *facts.warnings))
        text = line(facts, self._seq, self._prev)
        self._write(b"%b%b\n" % (before, text))
        if torn:
            self._torn = Torn()
        receipt = Receipt(self._seq, sha256(text).hexdigest())
        self._seq += 1
        self._prev = receipt.digest
        return receipt

    async def close(self) -> None:
        """Let go of the file."""
        fd, self._fd = self._fd, None
        if fd is not None:
            # Ours as long as the lock is held, which ends with the descriptor.
            with contextlib.suppress(OSError):
                self._note.unlink()
            os.close(fd)

    def _write(self, data: bytes) -> None:
        fd = self._fd
        if fd is None:
            raise EnvelopeError("the record is closed", code="RECORD_UNAVAILABLE")
        done = 0
        try:
            self._look(fd)
            done = os.write(fd, data)
            while done < len(data):
                done += _write_more(fd, data[done:])
        except OSError as error:
            # What got there of it stays, and the next line that gets there tells of it.
            self._torn.add(data[:done])
            self._size += done
            raise self._unavailable(error) from None
        self._size += done
        if self._is_failing:
            self._is_failing = False
            _log.warning("%s can be written again", self.path)

    def _look(self, fd: int) -> None:
        """See that the file is still the one that was written so far: deleted, it would be lost."""
        found = os.fstat(fd)
        if found.st_nlink == 0:
            raise OSError(errno.ENOENT, "its file was deleted")
        if found.st_size != self._size:
            raise OSError(errno.EIO, "something else wrote to its file")

    def _unavailable(self, error: OSError) -> EnvelopeError:
        reason = error.strerror or type(error).__name__
        if not self._is_failing:
            self._is_failing = True
            _log.error("%s cannot be written: %s", self.path, reason)
        return EnvelopeError(
            f"the record cannot be written: {reason}",
            code="RECORD_UNAVAILABLE",
            hint=_HINTS.get(error.errno or 0, ""),
        )


_HINTS: Final = {
    errno.ENOSPC: "make room on the disk of the ledger",
    errno.EDQUOT: "make room: the disk quota of the ledger's owner is used up",
    errno.EFBIG: "the ledger has reached the largest size that is allowed for a file",
    errno.ENOENT: "restart the gateway: a new ledger begins",
    errno.EIO: "see that nothing else writes to the ledger, then restart the gateway",
}


class JsonLinesStore:
    """``jsonl:PATH``."""

    def open(self, place: str) -> JsonLinesLedger:
        """The ledger in that file; ``~`` is the home folder."""
        if sys.platform == "win32":
            hint = "the gateway runs on Linux and macOS"
            raise ConfigError("jsonl: ledgers cannot be locked on Windows", hint=hint)
        hint = "write jsonl:PATH, like jsonl:calls.jsonl or jsonl:/var/log/calls.jsonl"
        if not place or "\0" in place:
            raise ConfigError("a jsonl: ledger needs the path of a file", hint=hint)
        if place.startswith("//") and not place.startswith("///"):
            raise ConfigError("a jsonl: ledger is a file on this machine", hint=hint)
        try:
            return JsonLinesLedger(Path(place).expanduser().absolute())
        except RuntimeError:
            raise ConfigError("~ stands for no known home folder", hint=hint) from None


def _tail_of(fd: int, path: Path) -> Tail:
    try:
        return read_tail(fd)
    except LedgerError as error:
        raise LedgerError(f"{path}: {error.message}", hint=error.hint) from None
    except OSError as error:
        raise LedgerError(f"{path} cannot be read: {error.strerror}") from None


def _open_locked(path: Path) -> int:
    """An open file that is ours alone, and that stands at ``path``."""
    for _ in range(_TRIES):
        fd = _open(path)
        try:
            _lock(fd, path)
            # Between opening and locking it may have been deleted or replaced.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(fd), path.stat()):
                    return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
    raise LedgerError(f"{path} is deleted or replaced as fast as it is made")


def _open(path: Path) -> int:
    try:
        make_private(path.parent)
        fd = os.open(path, _FLAGS, 0o600)
    except OSError as error:
        raise LedgerError(
            f"{path} cannot be opened: {error.strerror}",
            hint="see to its folder and permissions, or name another file",
        ) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise LedgerError(f"{path} is not a regular file", hint="name another one")
    return fd


def _lock(fd: int, path: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = _read_note(_note_of(path))
        whom = f"process {holder}" if holder is not None else "another process"
        raise LedgerError(
            f"{path} is being written by {whom}",
            hint="a ledger has one writer: end that one, or name another file",
            taken=True,
            holder=holder,
        ) from None
    except OSError as error:
        raise LedgerError(
            f"{path} cannot be locked: {error.strerror}", hint="name a file on a local disk"
        ) from None


def _note_of(path: Path) -> Path:
    """Where the writer's process id is noted: beside the file itself, whatever links lead to it."""
    real = path.resolve()
    return real.with_name(real.name + ".lock")


def _write_note(note: Path) -> None:
    fd = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(fd, b"%d\n" % os.getpid())
    finally:
        os.close(fd)


def _read_note(note: Path) -> int | None:
    try:
        return int(note.read_bytes()[:20])
    except (OSError, ValueError):
        return None


def _write_more(fd: int, data: bytes) -> int:
    done = os.write(fd, data)
    if done == 0:
        raise OSError(errno.EIO, "the disk takes nothing more")
    return done
