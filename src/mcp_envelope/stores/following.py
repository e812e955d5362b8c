"""A thread that keeps the search index of a ledger up to date, out of everybody's way."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
from collections.abc import Callable
from typing import Final

from mcp_envelope.core.errors import ConfigError, EnvelopeError
from mcp_envelope.core.ports import Source

from .index import LINES, Index

_log: Final = logging.getLogger("mcp_envelope.stores")
_TROUBLE: Final = (OSError, EnvelopeError, ConfigError, sqlite3.Error, MemoryError, ValueError)
#: Kibibytes of the index that are kept in memory: the process has other things to do.
_CACHE: Final = 2_000


class Follower:
    """Follows a ledger while it is written: what is new is in the index ``every`` seconds later.

    ``open_source`` opens the ledger for reading; it is called in the thread. Whatever goes wrong
    is logged once and tried again later; nobody else learns of it.
    """

    def __init__(
        self,
        open_source: Callable[[], Source],
        *,
        every: float = 1.0,
        pause: float = 0.05,
        retry: float = 30.0,
        most: int = LINES,
    ) -> None:
        self._open_source = open_source
        self._every = every
        self._pause = pause
        self._retry = retry
        self._most = most
        self._is_failing = False
        self._stop = threading.Event()
        self._index: Index | None = None
        self._thread = threading.Thread(target=self._run, name="ledger-index", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, wait: float = 2.0) -> None:
        """End, at once: what is not done is left to whoever follows next."""
        self._stop.set()
        index = self._index
        if index is not None:
            with contextlib.suppress(sqlite3.Error):  # it may just have been closed
                index.interrupt()
        if self._thread.is_alive():
            self._thread.join(wait)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except _TROUBLE as error:
                if not self._stop.is_set():
                    self._report(error)
                self._stop.wait(self._retry)

    def _follow(self) -> None:
        source = self._open_source()
        try:
            self._index = index = Index(source, temporary=False)
            try:
                while not self._stop.is_set():
                    index.db.execute(f"PRAGMA cache_size = -{_CACHE}")  # it may have been reopened
                    taken = index.turn(self._most)
                    self._is_failing = False
                    self._stop.wait(self._pause if taken else self._every)
            finally:
                self._index = None
                index.close()
        finally:
            source.close()

    def _report(self, error: BaseException) -> None:
        if not self._is_failing:
            self._is_failing = True
            _log.warning("the search index cannot follow the record: %s; trying again", error)
