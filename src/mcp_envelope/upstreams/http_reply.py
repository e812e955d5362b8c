"""An HTTP response as a reply: one JSON-RPC message, a stream of events, or something else."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from typing import Final

from mcp_envelope.core.document import Limits
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, FrameError, IdKey, id_key, read_frame
from mcp_envelope.core.link import Item
from mcp_envelope.core.sse import Event, EventReader

from .http_target import passed_back
from .http_wire import Response

_log = logging.getLogger("mcp_envelope.upstreams.http")
_OTHER_LIMIT: Final = 1024 * 1024
#: How many items are given before others have their turn: while both sides are quick nothing
#: has to wait, and a stream that never pauses would hold up all others for seconds.
_TURN: Final = 16
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_UNSURE: Final = "what it was asked to do may have been done, or not"

#: What may be asked a second time: it only reads.
_READING: Final = frozenset(
    [
        "initialize",
        "ping",
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "roots/list",
        "tasks/list",
    ]
)


def repeatable(frame: Frame) -> bool:
    """Whether a message may be sent again if it is not known what became of it."""
    return frame.shape == "request" and frame.method in _READING


def unknown(what: str) -> EnvelopeError:
    """That something was sent, and that it is not known what came of it."""
    return EnvelopeError(what, code="OUTCOME_UNKNOWN", hint=_UNSURE)


def _too_large(what: str) -> EnvelopeError:
    hint = "raise the limit for results, or let the tool return less at once"
    return EnvelopeError(what, code="TOO_LARGE", hint=hint)


class HttpReply:
    """What comes back over HTTP for one message, or for listening (``frame`` is None).

    Make one with :func:`read_reply`. A stream ends after the answer. Where it ends before that
    :meth:`ended_early` decides what that means.
    """

    def __init__(
        self,
        response: Response,
        frame: Frame | None,
        limits: Limits,
        *,
        shown: str = "",
        modern: bool = False,
    ) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = passed_back(response.headers)
        self.streams: bool | None = False
        self.body = b""
        self.answered = False
        self._response = response
        self._frame = frame
        self._limits = limits
        self._shown = shown
        self._modern = modern
        asked = frame is not None and frame.shape == "request"
        self._wanted: IdKey | None = None
        if asked and frame is not None and frame.id is not None:
            self._wanted = id_key(frame.id)
        self._items: deque[Item] = deque()
        self._taken = 0
        self.ended = False
        self._flaw: FrameError | None = None
        self._events: EventReader | None = None

    def __aiter__(self) -> HttpReply:
        return self

    async def __anext__(self) -> Item:
        self._taken += 1
        if not self._taken % _TURN:
            await asyncio.sleep(0)
        while not self._items:
            if self.ended:
                raise StopAsyncIteration
            await self._more()
        return self._items.popleft()

    async def close(self) -> None:
        """Want no more of it; the connection is closed unless the answer was there."""
        self._items.clear()
        self._stop()

    def _stop(self) -> None:
        """Nothing more will be read from the response."""
        self.ended = True
        if self.answered:
            self._response.finish()
        else:
            self._response.close()

    async def ended_early(self, error: EnvelopeError | None) -> None:
        """The stream ended before the answer; ``error`` tells if it broke off, and how."""
        if self._modern and error is not None and self._wanted is not None:
            raise error

    def receive(self, frame: Frame) -> Frame:
        """See a message before the caller does."""
        return frame

    async def load(self) -> None:
        """Read what is no stream to its end; OUTCOME_UNKNOWN for an answer that cannot be read."""
        response = self._response
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream" and response.status == 200:
            self._must_be_plain()
            self.streams = True
            self._events = EventReader(self._limits.result)
            return
        self.ended = True
        # What says nothing of its type may be a message as well.
        json = kind in ("application/json", "")
        body, whole = await response.body(self._limits.result if json else _OTHER_LIMIT)
        if response.closed and whole:
            return  # from here, by another task
        strict = json and bool(kind) and response.status == 200 and self._wanted is not None
        if not whole and json:
            raise _too_large(
                f"the upstream at {self._shown} answered with more than the "
                f"{self._limits.result:,} bytes accepted"
            )
        if response.status != 202 and not (json and self._is_message(body, strict=strict)):
            self.body = body[:_OTHER_LIMIT]

    def _is_message(self, body: bytes, *, strict: bool) -> bool:
        """Take a body as a message, if it is one; if it had to be, OUTCOME_UNKNOWN."""
        if strict:
            self._must_be_plain()
            if not body:
                raise unknown(f"the upstream at {self._shown} answered with nothing")
        try:
            frame = read_frame(body, limits=self._limits)
        except FrameError as error:
            if strict:
                raise self._unreadable(error) from None
            return False
        self._add(Item(self.receive(frame)))
        self.answered = True
        return True

    def _must_be_plain(self) -> None:
        if self._response.headers.get("content-encoding", "identity") != "identity":
            self._response.close()
            raise unknown(f"the upstream at {self._shown} compressed its answer, unasked")

    def _add(self, item: Item) -> None:
        self._items.append(item)

    async def _more(self) -> None:
        """Read on, until there is an item or the end."""
        broken: EnvelopeError | None = None
        try:
            data = await self._response.read()
        except EnvelopeError as error:
            data, broken = b"", error
        events = self._events
        if events is None:
            self.ended = True
            return
        try:
            found = events.feed(data) if data else events.finish()
        except EnvelopeError as error:  # an event beyond the limit
            self.ended = True
            self._response.close()
            raise _too_large(f"the upstream at {self._shown}: {error.message}") from None
        for event in found:
            self._event(event)
            if self.answered:
                self._stop()
                return
        if not data:
            await self._end(broken)

    async def _end(self, broken: EnvelopeError | None) -> None:
        if self.ended:
            return  # it was closed from here
        self.ended = True
        if self._flaw is not None and self._wanted is not None:
            raise self._unreadable(self._flaw)
        await self.ended_early(broken)

    def _event(self, event: Event) -> None:
        if not event.data or event.name not in (None, b"", b"message"):
            self._add(Item(None, event))
            return
        try:
            frame = read_frame(event.data, limits=self._limits)
        except FrameError as error:
            _log.warning(
                "an event of the upstream at %s is no message and was left out: %.200r",
                self._shown,
                error.outline,
            )
            self._flaw = error
            return
        self._flaw = None
        if frame.shape == "response" and self._wanted is not None:
            self.answered = frame.id is not None and id_key(frame.id) == self._wanted
        self._add(Item(self.receive(frame), event))

    def _unreadable(self, error: FrameError) -> EnvelopeError:
        return unknown(
            f"the upstream at {self._shown} answered with what is no JSON-RPC message: "
            f"{error.outline}"
        )


def refuse_redirect(response: Response, shown: str) -> None:
    """UPSTREAM_UNAVAILABLE for a redirect: following it could take credentials elsewhere."""
    if response.status not in _REDIRECTS:
        return
    response.close()
    place = response.headers.get("location", "").partition("?")[0].partition("#")[0]
    authority = place.partition("://")[2].partition("/")[0]
    if "@" in authority:
        place = place.replace(authority, authority.rpartition("@")[2], 1)
    raise EnvelopeError(
        f"the upstream at {shown} redirects ({response.status}) to {place[:200]!r}",
        code="UPSTREAM_UNAVAILABLE",
        hint="redirects are not followed: set this address as the url, if it is the right one",
    )
