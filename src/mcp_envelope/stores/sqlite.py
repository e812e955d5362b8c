"""A ledger in a SQLite database: the default. Lines get there in groups, and can be searched.

With durability ``process`` a commit writes to the log of the database and waits for no disk. What
waits for one, bringing that log home, is done by a thread of its own.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mcp_envelope.core.errors import ConfigError
from mcp_envelope.core.merkle import Frontier
from mcp_envelope.core.ports import LedgerError, Writing

from .chain import Chain, Seal
from .draft import SEALED, SEGMENT
from .locks import note_of, open_locked, require_locks, unlock
from .places import path_of
from .sqlite_removal import Leaving
from .sqlite_sink import SqliteSink
from .sqlite_source import SqliteSource


class SqliteLedger(Chain):
    """The chain of one database: made if absent, else continued. ``path`` is where it is.

    A lock that dies with the process keeps it for one writer. LedgerError, naming the holder
    if that is known, if it is taken, no ledger, or out of reach.
    """

    def __init__(self, path: Path, writing: Writing | None = None) -> None:
        writing = writing or Writing()
        self.path = path
        try:
            real, note = path.resolve(), note_of(path)
        except (OSError, RuntimeError):
            raise LedgerError(f"{path} cannot be opened: it links to itself") from None
        fd = open_locked(note, path)
        try:
            os.ftruncate(fd, 0)
            os.write(fd, b"%d\n" % os.getpid())
            self._database = SqliteSink(real, path, note, fd, writing)
        except BaseException as error:
            unlock(fd, note)
            if isinstance(error, OSError) and not isinstance(error, LedgerError):
                reason = error.strerror
                raise LedgerError(f"{path} cannot be opened: {reason}") from None
            raise
        self._removing = asyncio.Lock()
        super().__init__(self._database, self._database.head, writing)

    @property
    def url(self) -> str:
        """``sqlite:PATH``."""
        return f"sqlite:{self.path}"

    async def remove(self, count: int, archive: Callable[[bytes], object] | None = None) -> int:
        """Take lines out, segment by segment; what a crash left undone is done first."""
        if self._sealing is None or not self._sealing.signers:
            raise ConfigError(
                "lines cannot be removed without a key", hint="a signed line says what was removed"
            )
        async with self._removing:
            source = SqliteSource(self.path)
            try:
                done = source.kept_from()
                await self._delete(done)
                end = _end_of(source, done, min(count, self._head.seq))
                if end <= done:
                    return 0
                removed = await Leaving(source, end, self._whole_tree).read(archive)
                if archive is not None:
                    archive(b"")
            finally:
                source.close()
            future = asyncio.get_running_loop().create_future()
            await self._seal(Seal((str(removed),), {"removed": str(end)}, future))
            await self._delete(end)
            return end - done

    def _whole_tree(self) -> Frontier:
        tree = self._head.tree
        assert tree is not None  # noqa: S101 - this kind of ledger always has one
        return tree

    async def _delete(self, before: int) -> None:
        """Delete lines and what belongs to them, a little at a time."""
        steps = (self._database.delete, self._database.delete_bodies)
        count = 0
        for step in steps:
            while done := await self._alone(partial(step, before)):
                count += done
        if count:
            await asyncio.to_thread(self._database.empty_log)


def _end_of(source: SqliteSource, begin: int, count: int) -> int:
    """Before which line a removal of ``count`` lines ends."""
    end = count // SEGMENT * SEGMENT
    while end > begin and source.at(end - 1).startswith(SEALED):
        end -= SEGMENT
    return end


class SqliteStore:
    """``sqlite:PATH``."""

    def open(self, place: str, writing: Writing | None = None) -> SqliteLedger:
        """The ledger in that database; ``~`` is the home folder."""
        require_locks("sqlite")
        return SqliteLedger(path_of("sqlite", place), writing)

    def read(self, place: str) -> SqliteSource:
        """The same, to be read."""
        return SqliteSource(path_of("sqlite", place))
