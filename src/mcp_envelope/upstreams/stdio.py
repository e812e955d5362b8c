"""Servers that are programs of this machine, spoken to over their standard input and output."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from mcp_envelope.core.errors import UsageError
from mcp_envelope.core.link import Link
from mcp_envelope.core.strict import DEFAULT_LIMITS, Limits

from .backoff import Backoff, UnavailableError
from .child import Child, OnGone, OnLine
from .launch import Launch
from .own import OwnLink
from .reports import Oddities
from .shared import Pool

_log: Final = logging.getLogger("mcp_envelope.upstreams")
_EARLY: Final = 0.005  # timers are not exact; who waits as long as told is served
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class StdioUpstream:
    """An upstream whose conversations are with child processes.

    ``env`` is added to the gateway's own environment. A child has ``grace`` seconds to end by
    itself, and as many again after SIGTERM; ``processes`` is the most of them at once.
    ``limits.result`` bounds a line of their output, ``idle`` the seconds that an additional
    shared child is kept unused. ``stderr`` is a file descriptor for what they say there, None
    for the gateway's own standard error.

    Use it on one running loop, and close it: nothing that was started outlives that.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str] = _NOTHING,
        cwd: str | None = None,
        limits: Limits = DEFAULT_LIMITS,
        grace: float = 2.0,
        processes: int = 64,
        idle: float = 60.0,
        stderr: int | None = None,
    ) -> None:
        if isinstance(command, str) or not command:
            raise UsageError("a command is a sequence of words, the program first")
        self.name = name
        self.limits = limits
        self.oddities = Oddities(name)
        self._launch = Launch(
            name=name,
            command=tuple(command),
            env=dict(env),
            cwd=cwd,
            stderr=stderr,
            limit=limits.result,
            grace=grace,
        )
        self._processes = processes
        self._backoff = Backoff()
        self._links: set[OwnLink] = set()
        self._endings: set[asyncio.Task[None]] = set()
        self._pool = Pool(self, idle)
        self._closed = False

    def __repr__(self) -> str:
        return f"<StdioUpstream {self.name!r}>"

    async def connect(self, *, stateless: bool) -> Link:
        """A conversation: with the shared children, or with a child of its own."""
        if self._closed:
            raise UnavailableError(f"upstream {self.name!r} is closed")
        if stateless:
            self._pool.open()
            return self._pool.link()
        if not self.has_room():
            raise self.crowded()
        link = OwnLink(self, self._leave)
        link.open()
        self._links.add(link)
        return link

    def relay(self) -> None:
        """None: there is no HTTP to hand on."""

    async def close(self) -> None:
        """End everything, all at once; takes at most little more than twice ``grace``."""
        self._closed = True
        links = [link.close() for link in list(self._links)]
        await asyncio.gather(*links, self._pool.close())
        while self._endings:
            await asyncio.wait(self._endings)

    # What the links ask for.

    def has_room(self) -> bool:
        """Whether one more child may be started."""
        return len(self._links) + self._pool.count < self._processes

    def crowded(self) -> UnavailableError:
        """What is said where one more may not."""
        return UnavailableError(
            f"upstream {self.name!r} has {self._processes} processes, and may have no more",
            hint="end conversations that are not used, or raise the upstream's `processes`",
        )

    def _leave(self, link: OwnLink) -> None:
        self._links.discard(link)
        self._pool.next_turn()

    def start(self, on_line: OnLine, on_gone: OnGone, backoff: Backoff) -> Child:
        """A new child; UnavailableError if there is none, or not yet."""
        if self._closed:
            raise UnavailableError(f"upstream {self.name!r} is closed")
        now = time.monotonic()
        wait = max(self._backoff.wait(now), backoff.wait(now))
        if wait > _EARLY:
            wait = math.ceil(wait * 100) / 100
            raise UnavailableError(
                f"upstream {self.name!r} has ended several times and is not started again yet",
                hint=f"retry after {wait:.2f} s; its standard error may say why it ended",
                retry_after=wait,
            )
        self._backoff.start(now)
        backoff.start(now)
        try:
            child = Child(self._launch, on_line, on_gone)
        except UnavailableError as error:
            self._backoff.failed(now, time.monotonic())
            _log.warning("%s", error)
            raise
        _log.info("upstream %r: started process %d", self.name, child.pid)
        return child

    def bury(self, child: Child, backoff: Backoff) -> None:
        """A child is gone: count it if it went by itself, and end what is left of its group."""
        if child.heard:
            self._backoff.reset()
        if not child.is_ending and child.gone is not None:
            now = time.monotonic()
            _log.warning("upstream %r: process %d %s", self.name, child.pid, child.gone.how)
            backoff.failed(child.started, now)
            if not child.heard:
                self._backoff.failed(child.started, now)
            self.end(child)

    def end(self, child: Child) -> None:
        """End a child without waiting for it; closing the upstream does wait."""
        task = asyncio.get_running_loop().create_task(child.end())
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)
