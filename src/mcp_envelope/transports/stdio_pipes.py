"""Standard input and output as lines, kept clear of everything that is no message."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections import deque
from typing import Final

from mcp_envelope.core.lines import LineCutter, Overlong

_CHUNK: Final = 256 * 1024
#: Lines read ahead before the client is made to wait.
_AHEAD: Final = 256


def fill_gaps() -> None:
    """Open what of the three standard descriptors is closed, so that nothing else gets its number.

    To be called before anything else is opened.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one


def claim() -> tuple[int, int]:
    """Take standard input and output for messages alone; the descriptors to use instead.

    What anybody prints from now on goes to standard error, and what reads standard input finds
    it at its end.
    """
    source, target = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout.flush()
    os.dup2(2, 1)
    return source, target


class StdioPipes:
    """The lines of two descriptors. Made by :meth:`open` in a running loop."""

    def __init__(self, most: int, writer: _Writer) -> None:
        self._cutter = LineCutter(most)
        self._lines: deque[bytes | Overlong] = deque()
        self._ended = False
        self._arrived = asyncio.Event()
        self._taken = asyncio.Event()
        self._taken.set()
        self._source: asyncio.ReadTransport | None = None
        self._writer = writer
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, source: int, target: int, most: int) -> StdioPipes:
        """Lines from ``source``, at most ``most`` bytes long, and to ``target``."""
        made = cls(most, await _Writer.open(target))
        if _is_waitable(source):
            loop = asyncio.get_running_loop()
            file = os.fdopen(source, "rb", buffering=0)
            made._source, _ = await loop.connect_read_pipe(lambda: _Reader(made), file)
        else:
            made._reading = asyncio.create_task(made._read_file(source))
        return made

    async def read(self) -> bytes | Overlong | None:
        """The next line without its end, the ends of one that is too long; None at the end."""
        while not self._lines:
            if self._ended:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        if len(self._lines) == _AHEAD:
            self._taken.set()
            if self._source is not None:
                self._source.resume_reading()
        return self._lines.popleft()

    async def write(self, line: bytes) -> None:
        """Write a line, and wait until there is room for more. OSError if nobody reads."""
        await self._writer.write(line + b"\n")

    async def close(self) -> None:
        """Write out what is left, and let go of both ends."""
        if self._reading is not None:
            self._reading.cancel()
        if self._source is not None:
            self._source.close()
        await self._writer.close()

    def received(self, data: bytes) -> None:
        """Cut what has arrived into lines."""
        self._lines += self._cutter.feed(data)
        if len(self._lines) >= _AHEAD and self._taken.is_set():
            self._taken.clear()
            if self._source is not None:
                self._source.pause_reading()
        self._arrived.set()

    def ended(self) -> None:
        """There will be no more; a last line without an end counts."""
        last = self._cutter.rest()
        if last is not None:
            self._lines.append(last)
        self._ended = True
        self._arrived.set()

    async def _read_file(self, source: int) -> None:
        """Read what cannot be waited for, such as a file, in a thread."""
        while data := await asyncio.to_thread(os.read, source, _CHUNK):
            self.received(data)
            await self._taken.wait()
        self.ended()


class _Reader(asyncio.Protocol):
    def __init__(self, pipes: StdioPipes) -> None:
        self._pipes = pipes

    def data_received(self, data: bytes) -> None:
        self._pipes.received(data)

    def eof_received(self) -> None:
        self._pipes.ended()

    def connection_lost(self, exc: Exception | None) -> None:
        self._pipes.ended()


class _Writer(asyncio.BaseProtocol):
    """Writes to a pipe without blocking; to anything else, such as a file, as it comes."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._transport: asyncio.WriteTransport | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._lost = asyncio.Event()

    @classmethod
    async def open(cls, target: int) -> _Writer:
        made = cls(target)
        if _is_waitable(target):
            file = os.fdopen(target, "wb", buffering=0)
            loop = asyncio.get_running_loop()
            made._transport, _ = await loop.connect_write_pipe(lambda: made, file)
        return made

    async def write(self, data: bytes) -> None:
        if self._transport is None:
            while data:
                data = data[os.write(self._target, data) :]
            return
        if self._lost.is_set():
            raise BrokenPipeError("standard output is closed")
        self._transport.write(data)
        if not self._room.is_set():
            await self._room.wait()

    async def close(self) -> None:
        if self._transport is not None and not self._lost.is_set():
            self._transport.close()
            try:
                async with asyncio.timeout(1.0):
                    await self._lost.wait()
            except TimeoutError:
                self._transport.abort()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost.set()
        self._room.set()


def _is_waitable(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)
