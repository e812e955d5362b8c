"""The one writer behind all ledgers: it numbers, chains and seals lines, and groups them.

Whatever is appended in one turn of the event loop is written at once (a group commit), and a
lone line waits for nothing. What a kind of ledger has to bring is a :class:`Sink`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Final, Protocol, TypeVar

from mcp_envelope.core.entry import Facts, Receipt
from mcp_envelope.core.errors import ConfigError, EnvelopeError
from mcp_envelope.core.ports import Writing

from .draft import Batch, Draft, Head

T = TypeVar("T")

_log: Final = logging.getLogger("mcp_envelope.ledger")
#: The most lines that are written at once: the event loop is not held up for longer.
MOST_AT_ONCE: Final = 512
# How long appends wait for a store that somebody else holds, and how often they look.
_PATIENCE: Final = 2.0
# How much longer where it is certain that it will be free, unless the disk hangs.
_MORE: Final = 28.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05
# How long lines are written without a checkpoint that is due, where signing failed.
_SEAL_PAUSE: Final = 10.0


class Unwritten(Exception):  # noqa: N818 - not every one is an error: see Busy
    """What a sink could not write, and why. ``done`` lines of the batch are written all the same.

    ``reason`` and ``hint`` are shown to clients: they hold neither paths nor secrets.
    """

    def __init__(self, reason: str, *, hint: str = "", done: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.done = done


class Busy(Unwritten):
    """Nothing was written, but may be in a moment. ``is_ours``: for certain, we are tidying up."""

    def __init__(self, reason: str, *, hint: str = "", is_ours: bool = False) -> None:
        super().__init__(reason, hint=hint)
        self.is_ours = is_ours


class Sink(Protocol):
    """Where lines go. It is used by one thread at a time."""

    @property
    def where(self) -> str:
        """What the log calls it."""

    def remarks(self) -> Sequence[str]:
        """What the next line has to say of the ledger, before its own warnings."""

    def write(self, batch: Batch) -> None:
        """Write all of it, as durably as was asked for; :class:`Unwritten` if not."""

    def close(self) -> None:
        """Let go of it."""


class Wait:
    """A line, or a checkpoint where ``facts`` is None, that is to be written and waited for."""

    __slots__ = ("bodies", "error", "facts", "future", "is_settled")

    def __init__(
        self,
        facts: Facts | None,
        bodies: Sequence[bytes],
        future: asyncio.Future[Receipt | None],
    ) -> None:
        self.facts = facts
        self.bodies = bodies
        self.future = future
        self.is_settled = False
        self.error: Exception | None = None

    def settle(self, receipt: Receipt | None) -> None:
        """It is written (or, None, did not have to be)."""
        self.is_settled = True
        if not self.future.done():
            self.future.set_result(receipt)

    def fail(self, error: Exception) -> None:
        """It is not written."""
        self.is_settled = True
        self.error = error
        if not self.future.done():
            self.future.set_exception(error)

    async def outlast(self, cancelled: BaseException) -> Receipt | None:
        """Wait on although the caller was cancelled, until it is written or has failed."""
        while not self.is_settled:
            self.future = asyncio.get_running_loop().create_future()
            with contextlib.suppress(asyncio.CancelledError):
                await self.future
        if self.future.done() and not self.future.cancelled():
            self.future.exception()  # seen: nobody else will look
        raise cancelled from self.error


class Seal(Wait):
    """A checkpoint that has something to say, and so is written in any case."""

    __slots__ = ("marks", "remarks")

    def __init__(
        self,
        remarks: Sequence[str],
        marks: dict[str, str],
        future: asyncio.Future[Receipt | None],
    ) -> None:
        super().__init__(None, (), future)
        self.remarks = remarks
        self.marks = marks


class Chain:
    """A ledger over a sink, going on at ``head``."""

    def __init__(self, sink: Sink, head: Head, writing: Writing) -> None:
        self._sink = sink
        self._head = head
        self._sealing = writing.sealing
        self._queue: list[Wait] = []
        self._jobs: deque[tuple[Callable[[], None], asyncio.Future[None]]] = deque()
        self._is_scheduled = self._is_writing = self._is_failing = self._is_closed = False
        self._is_turn_of_jobs = self._is_ended = False
        # When a checkpoint may be tried again that could not be signed, 0 where all is well.
        self._seal_from = 0.0
        self._closing: asyncio.Future[None] | None = None
        self._thread: ThreadPoolExecutor | None = None
        if writing.durability == "power":
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")

    async def append(self, facts: Facts, bodies: Sequence[bytes] = ()) -> Receipt:
        """Write a line; returns once it is as durable as was asked for."""
        waiting = Wait(facts, bodies, asyncio.get_running_loop().create_future())
        self._queue_up(waiting)
        try:
            receipt = await waiting.future
        except asyncio.CancelledError as cancelled:
            receipt = await waiting.outlast(cancelled)
        assert receipt is not None  # noqa: S101 - only checkpoints may not be needed
        return receipt

    async def seal(self) -> Receipt | None:
        """Write a checkpoint line, where there is something to be sealed, and somebody to sign."""
        return await self._seal(Wait(None, (), asyncio.get_running_loop().create_future()))

    async def remove(self, count: int, archive: Callable[[bytes], object] | None = None) -> int:
        """Not here."""
        raise ConfigError(
            "lines can be removed from sqlite: ledgers only", hint="begin a new ledger instead"
        )

    async def close(self) -> None:
        """Let go of it, once all is written that waits; that goes on if the caller is cancelled."""
        self._is_closed = True
        if self._closing is None or self._closing.cancelled():
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        while self._queue or self._jobs or self._is_writing:
            await self._alone(lambda: None)
        if self._is_ended:
            return
        self._is_ended = True
        if self._thread is not None:
            self._thread.shutdown(wait=False)
        await asyncio.to_thread(self._sink.close)

    async def _seal(self, waiting: Wait) -> Receipt | None:
        self._queue_up(waiting)
        try:
            return await waiting.future
        except asyncio.CancelledError as cancelled:
            return await waiting.outlast(cancelled)

    def _queue_up(self, waiting: Wait) -> None:
        if self._is_closed:
            raise _unavailable("the record is closed")
        self._queue.append(waiting)
        if not self._is_scheduled:
            self._is_scheduled = True
            waiting.future.get_loop().call_soon(self._flush)

    async def _alone(self, job: Callable[[], T]) -> T:
        """Do something with the sink while nothing is written. EnvelopeError as of appends."""
        if self._is_ended:
            raise _unavailable("the record is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        results: list[T] = []
        self._jobs.append((lambda: results.append(job()), future))
        self._schedule()
        await future
        return results[0]

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        """Write what waits, or do a job; in turns where there is both."""
        self._is_scheduled = False
        if self._is_writing:
            return  # whoever ends that comes back here
        try:
            if self._jobs and (self._is_turn_of_jobs or not self._queue):
                self._is_turn_of_jobs = False
                job, future = self._jobs.popleft()
                self._begin(job, partial(_end_job, future))
            elif self._queue:
                self._is_turn_of_jobs = True
                group, self._queue = self._queue[:MOST_AT_ONCE], self._queue[MOST_AT_ONCE:]
                draft = self._drafted(group)
                if draft.ends:
                    self._begin(partial(self._sink.write, draft.batch), partial(self._end, draft))
        finally:
            if (self._queue or self._jobs) and not self._is_writing:
                self._schedule()

    def _drafted(self, group: list[Wait]) -> Draft:
        draft = Draft(self._head, self._sealing, self._sink.remarks())
        try:
            for waiting in group:
                facts = waiting.facts
                if facts is not None:
                    try:
                        draft.add(facts, waiting.bodies, waiting)
                    except TypeError as error:
                        waiting.fail(error)
                    if draft.is_due() and time.monotonic() >= self._seal_from:
                        self._seal_in(draft, None)
                elif isinstance(waiting, Seal) or draft.wants_seal():
                    self._seal_in(draft, waiting)
                else:
                    waiting.settle(None)
        except BaseException:
            for waiting in group:
                if not waiting.is_settled:
                    waiting.fail(_unavailable("the record cannot be written: something broke"))
            raise
        return draft

    def _seal_in(self, draft: Draft, waiting: Wait | None) -> None:
        """A checkpoint, if it can be signed: no line ever fails because it cannot."""
        remarks, marks = (waiting.remarks, waiting.marks) if isinstance(waiting, Seal) else ((), {})
        try:
            draft.seal(waiting, remarks, marks)
        except Exception as error:  # noqa: BLE001 - whatever a key in a device or a clock says
            said = f"{type(error).__name__}: {error}"
            if not self._seal_from:
                _log.error("%s gets no checkpoints: %s; trying again", self._sink.where, said)
            self._seal_from = time.monotonic() + _SEAL_PAUSE
            if waiting is not None:
                waiting.fail(_unavailable("the checkpoint cannot be signed", "see the log"))
        else:
            if self._seal_from:
                _log.warning("%s gets checkpoints again", self._sink.where)
            self._seal_from = 0.0

    def _begin(self, work: Callable[[], None], end: Callable[[BaseException | None], None]) -> None:
        """Do some work with the sink, and try again while that is busy."""
        self._is_writing = True
        loop = asyncio.get_running_loop()
        self._try(_Try(loop, work, end, loop.time() + _PATIENCE))

    def _try(self, one: _Try) -> None:
        try:
            if self._thread is not None:
                future = self._thread.submit(one.work)
                future.add_done_callback(partial(self._came_back, one))
                return
            one.work()
        except BaseException as error:
            self._tried(one, error)
            if not isinstance(error, Unwritten):
                raise
        else:
            self._tried(one, None)

    def _came_back(self, one: _Try, future: Future[None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            one.loop.call_soon_threadsafe(self._tried, one, future.exception())

    def _tried(self, one: _Try, error: BaseException | None) -> None:
        if isinstance(error, Busy) and one.loop.time() < one.until + _MORE * error.is_ours:
            one.pause = min(one.pause * 1.5, _LONGEST_PAUSE)
            one.loop.call_later(one.pause, self._try, one)
            return
        self._is_writing = False
        try:
            self._tell(error)
            one.end(error)
        finally:
            if self._queue or self._jobs:
                self._schedule()

    def _tell(self, error: BaseException | None) -> None:
        """Say in the log when it begins to fail, and when it works again."""
        if (error is not None) == self._is_failing:
            return
        self._is_failing = error is not None
        if error is None:
            _log.warning("%s can be written again", self._sink.where)
        else:
            _log.error("%s cannot be written: %s", self._sink.where, error)

    def _end(self, draft: Draft, error: BaseException | None) -> None:
        """Take over what is written of a draft, and tell those who wait."""
        ends = draft.ends
        done = len(ends)
        if error is not None:
            done = error.done if isinstance(error, Unwritten) else 0
            draft = draft.cut(self._head, done)
        self._head = draft.head
        notes = []
        for place, (waiting, receipt, note) in enumerate(ends):
            if place >= done:
                if waiting is not None:
                    waiting.fail(_error_of(error))
                continue
            if waiting is not None:
                waiting.settle(receipt)
            if note is not None:
                notes.append(note)
        if notes and self._sealing is not None:
            for note in notes:
                self._sealing.publish(note)


class _Try:
    """Some work with a sink that may have to be tried again."""

    __slots__ = ("end", "loop", "pause", "until", "work")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Callable[[], None],
        end: Callable[[BaseException | None], None],
        until: float,
    ) -> None:
        self.loop = loop
        self.work = work
        self.end = end
        self.until = until
        self.pause = _FIRST_PAUSE


def _end_job(future: asyncio.Future[None], error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(_error_of(error))


def _error_of(error: BaseException | None) -> Exception:
    if isinstance(error, Unwritten):
        return _unavailable(f"the record cannot be written: {error.reason}", error.hint)
    return _unavailable("the record cannot be written: something broke")


def _unavailable(message: str, hint: str = "") -> EnvelopeError:
    return EnvelopeError(message, code="RECORD_UNAVAILABLE", hint=hint)
