"""Handing checkpoints to the outside: to a file, to a command.

Whoever holds a ledger and its key can write it anew. Only a checkpoint that lies elsewhere shows
that, and shows when lines at the end are gone: so it should leave this machine.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.notes import Checkpoint, Note

from .ground import log
from .whole_file import WholeFile

_TIMEOUT: Final = 30.0
_CLOSING: Final = 2.0
_SHOWN: Final = 300

#: Keeps a note somewhere. It may take its time; OSError if it cannot.
Keep = Callable[[bytes], None]


class Publisher:
    """Publishes one note at a time; of those that wait meanwhile only the newest is kept.

    What goes wrong is logged, and never stops a call: the next note covers all lines before it.
    """

    def __init__(self, command: Sequence[str], timeout: float = _TIMEOUT) -> None:
        #: Where each note is kept, before the command is given it.
        self.places: Final[list[Keep]] = []
        self._command = tuple(command)
        self._timeout = timeout
        self._next: bytes | None = None
        self._task: asyncio.Task[None] | None = None

    def put(self, note: bytes) -> None:
        """Publish a note, soon. In the event loop; returns at once."""
        if not self.places and not self._command:
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
            for keep in self.places:
                try:
                    await asyncio.to_thread(keep, note)
                except OSError as error:
                    log.error("a checkpoint could not be kept elsewhere: %s", error)
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


class PublishedFile:
    """A file that each checkpoint replaces: whoever reads it finds one of them, whole.

    Evidence is not overwritten: one of another ledger stays, and ours goes into a file beside
    it that is named after our origin; one of ours that covers more stays as well.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def keep(self, note: bytes) -> None:
        """Write a note. OSError if that cannot be done, or must not."""
        ours = Checkpoint.parse(Note.parse(note).text)
        path = self._path
        there = _checkpoint_in(path)
        if there is not None and there.origin != ours.origin:
            path = path.with_name(f"{path.stem}-{ours.origin[-8:]}{path.suffix}")
            there = _checkpoint_in(path)
        if there is not None and there.origin == ours.origin and there.size > ours.size:
            raise OSError(f"{path} has one over {there.size} lines, and this one is over less")
        try:
            with WholeFile(path, mode=0o644, over=True) as file:
                file.write(note)
                file.finish()
        except OSError as error:
            raise OSError(f"{path}: {error.strerror}") from None


def _checkpoint_in(path: Path) -> Checkpoint | None:
    try:
        return Checkpoint.parse(Note.parse(path.read_bytes()).text)
    except (FileNotFoundError, EnvelopeError):
        return None
