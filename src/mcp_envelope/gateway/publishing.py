"""Handing checkpoints to the outside: to a file, to a command.

Whoever holds a ledger and its key can write it anew. Only a checkpoint that lies elsewhere shows
that, and shows when lines at the end are gone: so it should leave this machine.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from .ground import log
from .whole_file import WholeFile

_TIMEOUT: Final = 30.0
_CLOSING: Final = 2.0
_SHOWN: Final = 300


class Publisher:
    """Publishes one note at a time; of those that wait meanwhile only the newest is kept.

    What goes wrong is logged, and never stops a call: the next note covers all lines before it.
    """

    def __init__(
        self, file: Path | None, command: Sequence[str], timeout: float = _TIMEOUT
    ) -> None:
        self._file = file
        self._command = tuple(command)
        self._timeout = timeout
        self._next: bytes | None = None
        self._task: asyncio.Task[None] | None = None

    def put(self, note: bytes) -> None:
        """Publish a note, soon. In the event loop; returns at once."""
        if self._file is None and not self._command:
            return
        self._next = note
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())

    async def close(self, within: float = _CLOSING) -> None:
        """Wait for what is under way, for so many seconds."""
        if self._task is None:
            return
        _, late = await asyncio.wait({self._task}, timeout=within)
        for task in late:
            log.error("the last checkpoint was not published within %g s", within)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _work(self) -> None:
        while (note := self._next) is not None:
            self._next = None
            if self._file is not None:
                try:
                    await asyncio.to_thread(_write, self._file, note)
                except OSError as error:
                    log.error("a checkpoint could not be written to %s: %s", self._file, error)
            if self._command:
                await self._run(note)

    async def _run(self, note: bytes) -> None:
        name = Path(self._command[0]).name
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            log.error("the command %s that publishes checkpoints: %s", name, error.strerror)
            return
        try:
            async with asyncio.timeout(self._timeout):
                _, said = await process.communicate(note)
        except TimeoutError:
            log.error("the command %s has not published within %g s", name, self._timeout)
            return
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            reason = said.decode(errors="replace").strip()[-_SHOWN:]
            log.error("the command %s ended with %d: %r", name, process.returncode, reason)


def _write(path: Path, note: bytes) -> None:
    """Replace a file, so that whoever reads it finds the old note or the new one, whole."""
    file = WholeFile(path, mode=0o644, over=True)
    try:
        file.write(note)
        file.finish()
    finally:
        file.discard()
