"""One child process: started in a group of its own, spoken to in lines, ended for certain.

The pipes are read and written without asyncio's transports: it must be known how much of what
was sent was taken out of the pipe by the child, because only the rest may be sent again.

If the gateway itself is killed (SIGKILL), nothing here can run any more. Children then see the
end of their standard input and should end by themselves; those that do not become orphans.
"""

from __future__ import annotations

import array
import asyncio
import fcntl
import logging
import os
import select
import signal
import subprocess
import termios
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from mcp_envelope.core.lines import LineCutter, Overlong

from .launch import Launch, ended_how, spawn

_log: Final = logging.getLogger("mcp_envelope.upstreams")
_CHUNK: Final = 64 * 1024
_FULL: Final = 256 * 1024
_LAST_READS: Final = 64  # more than a pipe holds
_PATIENCE: Final = 0.5  # between the end of a pipe and that of the process, usually together
_GLANCE: Final = 0.02

OnLine = Callable[[bytes | Overlong], None]
OnGone = Callable[["Child"], None]


@dataclass(frozen=True, slots=True)
class Gone:
    """How a child ended, and how much of what was sent to it had certainly been in reach of it.

    ``reached`` counts bytes; what was to be sent beyond that reached nobody.
    """

    how: str
    reached: int


class Child:
    """A running child. Made only on a running loop, by starting the process.

    ``on_line`` gets each line, ``on_gone`` is called once when no further line can come; both
    are called from the loop, never from within a method of this class. ``started`` is the
    monotonic clock's time, ``heard`` is for whoever understands what the child says.
    UnavailableError if the process cannot be started.
    """

    def __init__(self, launch: Launch, on_line: OnLine, on_gone: OnGone) -> None:
        self._loop = asyncio.get_running_loop()
        self._launch = launch
        self._on_line = on_line
        self._on_gone = on_gone
        self._cutter = LineCutter(launch.limit)
        self._unsent: deque[memoryview] = deque()
        self._unsent_size = 0
        self._room: list[asyncio.Future[None]] = []
        self._paused = self._closing = self._overdue = self._group_is_empty = False
        self._flaw = ""
        self._ending: asyncio.Task[None] | None = None
        self._finished = self._loop.create_future()
        self._exited = self._loop.create_future()
        self.accepted = 0
        self.gone: Gone | None = None
        self.started = time.monotonic()
        self.heard = False
        self._pidfd = -1
        self._process, self._stdin, self._stdout = spawn(launch)
        self.pid = self._process.pid
        self._loop.add_reader(self._stdout, self._read)
        self._watch()

    @property
    def usable(self) -> bool:
        """Whether it can still be spoken to."""
        return self._stdin >= 0 and not self._closing and not self._flaw and self.gone is None

    @property
    def is_ending(self) -> bool:
        """Whether it is being ended by us."""
        return self._ending is not None

    @property
    def full(self) -> bool:
        """Whether it reads more slowly than it is written to; then wait for :meth:`room`."""
        return self._unsent_size > _FULL

    async def room(self) -> None:
        """Wait until it is no longer full, or not usable."""
        while self.full and self.usable:
            waiter = self._loop.create_future()
            self._room.append(waiter)
            await waiter

    async def finished(self) -> Gone:
        """Wait until it is gone."""
        gone: Gone = await asyncio.shield(self._finished)
        return gone

    def write(self, data: bytes) -> bool:
        """Send bytes, or keep them until the child reads; False if it cannot be reached.

        What was sent ends at ``accepted``, to be compared with :attr:`Gone.reached`.
        """
        if not self.usable:
            return False
        sent = 0
        if not self._unsent:
            try:
                sent = os.write(self._stdin, data)
            except BlockingIOError:
                pass
            except OSError:
                self._leave("closed its standard input")
                return False
        self.accepted += len(data)
        if sent < len(data):
            if not self._unsent:
                self._loop.add_writer(self._stdin, self._write_on)
            self._unsent.append(memoryview(data)[sent:])
            self._unsent_size += len(data) - sent
        return True

    def pause(self) -> None:
        """Read no further for now; the child will have to wait once the pipe is full."""
        if not self._paused and not self._closing and self.gone is None:
            self._paused = True
            if self._stdout >= 0:
                self._loop.remove_reader(self._stdout)

    def resume(self) -> None:
        """Read on."""
        if self._paused:
            self._paused = False
            if self.gone is None and self._stdout >= 0:
                self._loop.add_reader(self._stdout, self._read)
                if self._overdue or self._exited.done():
                    self._loop.call_soon(self._read_rest)

    async def end(self) -> None:
        """End it and all that is in its group: close, wait, SIGTERM, wait, SIGKILL.

        Whoever is cancelled while waiting for this does not stop it; if it is stopped
        nevertheless, the group is killed at once.
        """
        if self._ending is None:
            self._ending = self._loop.create_task(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        try:
            self._paused, resume = False, self._paused
            self._closing = True
            if resume and self._stdout >= 0 and self.gone is None:
                self._loop.add_reader(self._stdout, self._read)
            if not self._unsent:
                self._close_input()
            await asyncio.wait([self._exited], timeout=self._launch.grace)
            self._signal(signal.SIGTERM)
            await self._wait_for_group()
            self._signal(signal.SIGKILL)
            await asyncio.wait([self._exited], timeout=1.0)
        finally:
            self._signal(signal.SIGKILL)
            if self._process.returncode is None:
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(1.0)
            self._unwatch()
            self._finish()

    async def _wait_for_group(self) -> None:
        late = self._loop.time() + self._launch.grace
        while not (self._exited.done() and self._group_is_empty) and self._loop.time() < late:
            await asyncio.wait([self._exited], timeout=_GLANCE)
            if self._exited.done():
                self._signal(0)
                if not self._group_is_empty:
                    await asyncio.sleep(_GLANCE)

    def _signal(self, number: int) -> None:
        """Signal the group, whose leader may have gone before the others."""
        if not self._group_is_empty:
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                self._group_is_empty = True
            except PermissionError:
                _log.debug("upstream %r: may not signal all of its group", self._launch.name)

    def _watch(self) -> None:
        """Have :meth:`_exit` called when the process has ended."""
        open_pidfd = getattr(os, "pidfd_open", None)
        if open_pidfd is not None:
            with suppress(OSError):  # an old kernel
                self._pidfd = open_pidfd(self.pid)
                self._loop.add_reader(self._pidfd, self._exit)
                return

        def wait() -> None:
            self._process.wait()
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._exit)

        threading.Thread(target=wait, daemon=True, name=f"wait-{self.pid}").start()

    def _exit(self) -> None:
        self._unwatch()
        self._process.wait()
        if not self._exited.done():
            self._exited.set_result(None)
        self._read_rest()

    def _unwatch(self) -> None:
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1

    def _read_rest(self) -> None:
        """Nothing more will come, though others may hold the pipe open: take what is in it."""
        for _ in range(_LAST_READS):
            if self._paused:
                return
            if self._stdout < 0 or not self._read():
                break
        self._finish()

    def _read(self) -> bool:
        try:
            data = os.read(self._stdout, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._close_output()
            self._leave("closed its standard output")
            return False
        for line in self._cutter.feed(data):
            self._on_line(line)
        return True

    def _write_on(self) -> None:
        """The pipe takes bytes again."""
        try:
            while self._unsent:
                sent = os.write(self._stdin, self._unsent[0])
                self._unsent_size -= sent
                if sent == len(self._unsent[0]):
                    self._unsent.popleft()
                else:
                    self._unsent[0] = self._unsent[0][sent:]
        except BlockingIOError:
            pass
        except OSError:
            self._loop.remove_writer(self._stdin)
            self._leave("closed its standard input")
            return
        if not self._unsent:
            self._loop.remove_writer(self._stdin)
            if self._closing:
                self._close_input()
        if not self.full:
            self._wake()

    def _wake(self) -> None:
        waiters, self._room = self._room, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _leave(self, flaw: str) -> None:
        """A pipe has ended. If the process does too, that says more, so it is waited for."""
        if self.gone is None and not self._flaw:
            self._flaw = flaw
            self._wake()
            self._loop.call_later(_PATIENCE, self._give_up)

    def _give_up(self) -> None:
        self._overdue = True
        self._read_rest()

    def _finish(self) -> None:
        if self.gone is not None:
            return
        rest = self._cutter.rest()
        if rest is not None:
            self._on_line(rest)
        code = self._process.returncode
        flaw = self._flaw or "did not end"
        how = f"{flaw} while it went on running" if code is None else ended_how(code)
        self.gone = Gone(how, self._reached())
        self._close_input()
        self._close_output()
        self._wake()
        self._finished.set_result(self.gone)
        self._on_gone(self)

    def _reached(self) -> int:
        """How much of ``accepted`` may have been read by somebody."""
        written = self.accepted - self._unsent_size
        if self._stdin < 0:
            return written
        poll = select.poll()
        poll.register(self._stdin, 0)
        if not any(events & select.POLLERR for _, events in poll.poll(0)):
            return written  # somebody may still read it
        unread = array.array("i", [0])
        with suppress(OSError):
            fcntl.ioctl(self._stdin, termios.FIONREAD, unread)
        return written - unread[0]

    def _close_input(self) -> None:
        if self._stdin >= 0:
            self._loop.remove_writer(self._stdin)
            os.close(self._stdin)
            self._stdin = -1

    def _close_output(self) -> None:
        if self._stdout >= 0:
            self._loop.remove_reader(self._stdout)
            os.close(self._stdout)
            self._stdout = -1
