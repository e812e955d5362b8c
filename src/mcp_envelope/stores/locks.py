"""One writer a ledger: a lock on a file, which the operating system takes back with the process.

It is a ``flock``, so it is also held against others in the same process. Windows has none.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path
from typing import Final

from mcp_envelope.core.errors import ConfigError
from mcp_envelope.core.ports import LedgerError

from .places import make_private

if sys.platform != "win32":
    import fcntl

_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND
_TRIES: Final = 10


def require_locks(scheme: str) -> None:
    """ConfigError where files cannot be locked."""
    if sys.platform == "win32":
        hint = "the gateway runs on Linux and macOS"
        raise ConfigError(f"{scheme}: ledgers cannot be locked on Windows", hint=hint)


def note_of(path: Path) -> Path:
    """Where the writer's process id is noted: beside the file itself, whatever links lead to it."""
    real = path.resolve()
    return real.with_name(real.name + ".lock")


def open_locked(path: Path, ledger: Path) -> int:
    """The file at ``path``, made if absent, open and locked: nobody else writes ``ledger``.

    LedgerError, naming the holder if that is known, if it is taken or out of reach.
    """
    for _ in range(_TRIES):
        fd = _open(path)
        try:
            _lock(fd, ledger)
            # Between opening and locking it may have been deleted or replaced.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(fd), path.stat()):
                    return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
    raise LedgerError(f"{path} is deleted or replaced as fast as it is made")


def write_note(note: Path) -> None:
    """Note who writes, for people and for whoever comes second."""
    fd = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(fd, b"%d\n" % os.getpid())
    finally:
        os.close(fd)


def unlock(fd: int, note: Path) -> None:
    """Let go of the lock, and of the note of it."""
    # Ours as long as the lock is held, which ends with the descriptor.
    with contextlib.suppress(OSError):
        note.unlink()
    os.close(fd)


def holder_of(path: Path, ledger: Path) -> LedgerError | None:
    """What whoever wants to write ``ledger`` now would be told, None if it is free.

    ``path`` is the file that its writers lock. Nothing is made or changed.
    """
    if sys.platform == "win32" or not path.is_file():
        return None
    fd = os.open(path, os.O_RDONLY)
    try:
        _lock(fd, ledger, fcntl.LOCK_SH)
    except LedgerError as error:
        return error
    finally:
        os.close(fd)
    return None


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


def _lock(fd: int, ledger: Path, how: int | None = None) -> None:
    try:
        fcntl.flock(fd, (fcntl.LOCK_EX if how is None else how) | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = _read_note(note_of(ledger))
        whom = f"process {holder}" if holder is not None else "another process"
        raise LedgerError(
            f"{ledger} is being written by {whom}",
            hint="a ledger has one writer: end that one, or name another file",
            taken=True,
            holder=holder,
        ) from None
    except OSError as error:
        raise LedgerError(
            f"{ledger} cannot be locked: {error.strerror}", hint="name a file on a local disk"
        ) from None


def _read_note(note: Path) -> int | None:
    try:
        return int(note.read_bytes()[:20])
    except (OSError, ValueError):
        return None
