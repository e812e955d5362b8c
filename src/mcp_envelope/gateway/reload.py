"""Settings that change while the gateway runs: looked for each second, and on SIGHUP.

A file that is broken changes nothing: the settings before it stay, and each mistake is logged.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from mcp_envelope.core.errors import ConfigError, UsageError

from .files import stamp_of
from .settings import Settings
from .settings_changes import Changes, adopt, changes
from .settings_mistakes import SettingsError

_LOG: Final = logging.getLogger("mcp_envelope.settings")
_INTERVAL: Final = 1.0

#: Takes the settings that hold from now on, and what differs from those before.
Apply = Callable[[Settings, Changes], None]


class Reloader:
    """Keeps settings up to date.

    ``reread`` reads everything anew (``settings_file.load`` with what was given at the start).
    ``apply`` is called in the event loop whenever something changed that may change while the
    gateway runs; what needs a restart is only logged. ``current`` is what holds now.
    """

    def __init__(self, current: Settings, reread: Callable[[], Settings], apply: Apply) -> None:
        self.current = current
        self._latest = current
        self._reread = reread
        self._apply = apply
        self._path = Path(current.path) if current.path is not None else None
        self._stamp = stamp_of(self._path) if self._path is not None else None
        self._asked = asyncio.Event()

    async def watch(self, interval: float = _INTERVAL) -> None:
        """Look at the file each ``interval`` seconds, and on SIGHUP; until it is cancelled.

        Without a file it waits for SIGHUP alone, which reads the environment's files anew.
        """
        with _hangups(self._asked):
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(interval if self._path is not None else None):
                        await self._asked.wait()
                self.look(force=self._asked.is_set())
                self._asked.clear()

    def look(self, *, force: bool = False) -> bool:
        """Read the file if it changed (or in any case), take over what can be.

        True if the settings could be read or need not be.
        """
        if self._path is not None:
            stamp = stamp_of(self._path)
            if stamp == self._stamp and not force:
                return True
            self._stamp = stamp
        try:
            found = self._reread()
        except (ConfigError, UsageError, OSError) as error:
            self._say_broken(error)
            return False
        new = changes(self._latest, found)
        self._latest = found
        self._take(new, found)
        return True

    def _take(self, new: Changes, found: Settings) -> None:
        if not new:
            _LOG.info("settings read again: nothing changed")
            return
        if new.needs_restart:
            _LOG.warning("these settings need a restart: %s", ", ".join(new.needs_restart))
        if new.safe:
            self.current = adopt(self.current, found)
            self._apply(self.current, new)
            _LOG.info("settings taken over: %s", ", ".join(new.safe))

    def _say_broken(self, error: Exception) -> None:
        mistakes = error.mistakes if isinstance(error, SettingsError) else (error,)
        for mistake in mistakes:
            _LOG.error("%s", mistake)
        _LOG.error("the settings are broken: those from before stay in force")


@contextlib.contextmanager
def _hangups(asked: asyncio.Event) -> Iterator[None]:
    """Let SIGHUP set the event, where there are such signals and we may have them."""
    loop = asyncio.get_running_loop()
    number = getattr(signal, "SIGHUP", None)
    if number is None:
        yield
        return
    try:
        loop.add_signal_handler(number, asked.set)
    except (ValueError, RuntimeError, NotImplementedError):  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(number)
