"""A ledger in a file of JSON Lines, which anybody can read and nothing rewrites.

With durability ``process`` lines are handed to the operating system before ``append`` returns, so
that they survive the death of the process; with ``power`` they are forced to the disk as well.

Lines are written by the event loop itself: a write of a line takes about 1 µs, handing it to a
thread 30 µs. Only where the disk has to be waited for a thread does it.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from mcp_envelope.core.ports import Durability, LedgerError, Writing

from .chain import Chain, Unwritten
from .draft import Batch, Head
from .jsonl_bodies import Bodies, force
from .jsonl_scan import head_of
from .jsonl_source import JsonLinesSource
from .locks import note_of, open_locked, require_locks, unlock, write_note
from .places import path_of
from .tail import Tail, Torn, read_tail

_log: Final = logging.getLogger("mcp_envelope.ledger")
_RESTART: Final = "restart the gateway once the disk is well"
_HINTS: Final = {
    errno.ENOSPC: "make room on the disk of the ledger",
    errno.EDQUOT: "make room: the disk quota of the ledger's owner is used up",
    errno.EFBIG: "the ledger has reached the largest size that is allowed for a file",
    errno.ENOENT: "restart the gateway: a new ledger begins",
    errno.EIO: "see that nothing else writes to the ledger, then restart the gateway",
}


class JsonLinesLedger(Chain):
    """The chain of one file: made if absent, else continued. ``path`` is where it is.

    A lock that dies with the process keeps it for one writer. LedgerError, naming the holder
    if that is known, if it is taken, no ledger, or out of reach.
    """

    def __init__(self, path: Path, writing: Writing | None = None) -> None:
        writing = writing or Writing()
        self.path = path
        fd = open_locked(path, path)
        try:
            tail = _tail_of(fd, path)
            head = Head(tail.seq, tail.prev, tree=None)
            if writing.sealing is not None:
                head = head_of(fd, path, tail)
        except BaseException:
            os.close(fd)
            raise
        super().__init__(_File(path, fd, tail, writing.durability), head, writing)

    @property
    def url(self) -> str:
        """``jsonl:PATH``."""
        return f"jsonl:{self.path}"


class _File:
    """The file of a ledger, for the one who holds the lock on it."""

    def __init__(self, path: Path, fd: int, tail: Tail, durability: Durability) -> None:
        self._path = path
        self._note = note_of(path)
        self._fd = fd
        self._size = tail.size
        self._torn = tail.torn
        self._forces = durability == "power"
        self._is_unsure = False
        self._bodies = Bodies(path, forces=self._forces)
        if self._torn:
            size = self._torn.size
            _log.warning("%s ends in %d bytes of a line never finished; going on", path, size)
        # Only to name us to whoever comes second: the lock itself is on the ledger.
        with suppress(OSError):
            write_note(self._note)
        if self._forces:
            _force_folder(path)

    @property
    def where(self) -> str:
        """Its path."""
        return str(self._path)

    def remarks(self) -> Sequence[str]:
        """What the next line says of a torn tail."""
        return (self._torn.warning(),) if self._torn else ()

    def write(self, batch: Batch) -> None:
        """All lines in one write, behind the bodies that belong to them."""
        if self._is_unsure:
            raise Unwritten("the disk lost what it had taken", hint=_RESTART)
        ending = self._torn.ending
        data = ending + b"\n".join(batch.lines) + b"\n"
        done = 0
        try:
            self._look()
            self._bodies.write(batch.bodies)
            done = os.write(self._fd, data)
            while done < len(data):
                done += _write_more(self._fd, data[done:])
        except OSError as error:
            lines = self._count(data[:done], len(ending))
            if lines:
                self._force()
            raise _unwritten(error, lines) from None
        self._size += done
        if self._torn:
            self._torn = Torn()
        self._force()

    def close(self) -> None:
        """Let go of the file."""
        self._bodies.close()
        unlock(self._fd, self._note)

    def _count(self, data: bytes, begin: int) -> int:
        """The lines in what got there; the rest stays, and the next line tells of it."""
        self._size += len(data)
        end = data.rfind(b"\n", begin) + 1
        if end == 0:
            self._torn.add(data)
            return 0
        self._torn = Torn()
        self._torn.add(data[end:])
        return data.count(b"\n", begin)

    def _force(self) -> None:
        if not self._forces:
            return
        try:
            force(self._fd)
        except OSError as error:
            # What the disk lost may look written ever after: nothing may be built on that.
            self._is_unsure = True
            raise Unwritten(error.strerror or "the disk fails", hint=_RESTART) from None

    def _look(self) -> None:
        """See that the file is still the one that was written so far: deleted, it would be lost."""
        found = os.fstat(self._fd)
        if found.st_nlink == 0:
            raise OSError(errno.ENOENT, "its file was deleted")
        if found.st_size != self._size:
            raise OSError(errno.EIO, "something else wrote to its file")


class JsonLinesStore:
    """``jsonl:PATH``."""

    def open(self, place: str, writing: Writing | None = None) -> JsonLinesLedger:
        """The ledger in that file; ``~`` is the home folder."""
        require_locks("jsonl")
        return JsonLinesLedger(path_of("jsonl", place), writing)

    def read(self, place: str) -> JsonLinesSource:
        """The same, to be read."""
        return JsonLinesSource(path_of("jsonl", place))


def _tail_of(fd: int, path: Path) -> Tail:
    try:
        return read_tail(fd)
    except LedgerError as error:
        raise LedgerError(f"{path}: {error.message}", hint=error.hint) from None
    except OSError as error:
        raise LedgerError(f"{path} cannot be read: {error.strerror}") from None


def _unwritten(error: OSError, done: int) -> Unwritten:
    reason = error.strerror or type(error).__name__
    return Unwritten(reason, hint=_HINTS.get(error.errno or 0, ""), done=done)


def _write_more(fd: int, data: bytes) -> int:
    done = os.write(fd, data)
    if done == 0:
        raise OSError(errno.EIO, "the disk takes nothing more")
    return done


def _force_folder(path: Path) -> None:
    """So that the name of a new file survives too."""
    with suppress(OSError):
        folder = os.open(path.resolve().parent, os.O_RDONLY)
        try:
            force(folder)
        finally:
            os.close(folder)
