"""The HTTP door: Streamable HTTP at ``/mcp`` as an ASGI application, and the probes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from mcp_envelope.core.door import STATELESS, Answer, Conversation, Desk, RefusedError
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, FrameError, read_frame
from mcp_envelope.core.strict import Limits

from .http_answers import (
    Gate,
    HttpOutlet,
    Send,
    begin_stream,
    send_answer,
    send_body,
    send_stream,
    send_text,
)
from .http_replay import SINCE, KeptOutlet, Streams, send_again

log = logging.getLogger("mcp_envelope.http")

DOOR: Final = "http"
#: Whoever comes over HTTP, as long as nobody has to say who he is.
PEER: Final = "anonymous"
_PATH: Final = "/mcp"
#: Calls that take longer than this are watched for a client that goes away.
_WATCH_AFTER: Final = 0.05
_PING_EVERY: Final = 15.0
#: A weight of zero.
_NOTHING: Final = re.compile(r"q\s*=\s*0(\.0*)?")
_COME_BACK: Final = b"retry: 5000\r\n\r\n"

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class _GoneError(Exception):
    """The client went away in the middle of its request."""


class HttpDoor:
    """An ASGI application.

    ``gate`` gives who may come in, ``is_ready`` says what is not ready yet, "" for nothing.
    """

    def __init__(
        self,
        desk: Desk,
        gate: Callable[[], Gate],
        limits: Limits,
        *,
        is_ready: Callable[[], str] = str,
    ) -> None:
        self._desk = desk
        self._gate = gate
        self._limits = limits
        self._is_ready = is_ready
        self._streams: WeakKeyDictionary[Conversation, Streams] = WeakKeyDictionary()
        self._tasks: set[asyncio.Task[Any] | None] = set()
        self._is_stopping = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        path, method = scope["path"], scope["method"]
        if path == _PATH:
            await self._mcp(method, scope, receive, send)
        elif path == "/healthz":
            await send_text(send, 200, "ok\n")
        elif path == "/readyz":
            missing = self._is_ready()
            await send_text(send, 503 if missing else 200, f"{missing or 'ready'}\n")
        else:
            await send_text(send, 404, f"nothing is here; MCP is served at {_PATH}\n")

    async def stop(self, patience: float) -> None:
        """End what is under way: calls are answered as lost, streams are closed."""
        self._is_stopping = True
        tasks = {task for task in self._tasks if task is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=patience)

    async def _mcp(self, method: str, scope: Scope, receive: Receive, send: Send) -> None:
        head = _head_of(scope)
        refusal = self._gate().refusal(head)
        if refusal is not None:
            why = EnvelopeError(refusal, code="FORBIDDEN")
            await send_answer(send, await self._refuse(why, None, head, 403))
            return
        serve = {"POST": self._post, "GET": self._get, "DELETE": self._delete}.get(method)
        stateless = head.get("mcp-protocol-version", "") >= STATELESS
        if serve is None or (stateless and method != "POST"):
            allowed = "POST" if stateless else "GET, POST, DELETE"
            await send_text(send, 405, f"use {allowed}\n", {"allow": allowed})
            return
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            await serve(head, receive, send)
        except RefusedError as refused:
            await send_answer(send, refused.answer)
        except _GoneError:
            log.info("a client went away before it had sent its message")
        except asyncio.CancelledError:
            if not self._is_stopping:
                raise
            await _break_off(send)
        finally:
            self._tasks.discard(task)

    # -- messages ----------------------------------------------------------------------------

    async def _post(self, head: Mapping[str, str], receive: Receive, send: Send) -> None:
        body = await self._body(head, receive)
        if body is None:
            await self._too_large(send)
            return
        kind = head.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            why = EnvelopeError("content-type must be application/json")
            await send_answer(send, await self._refuse(why, None, head, 415))
            return
        try:
            frame = read_frame(body, limits=self._limits, size=self._limits.request)
        except FrameError as error:
            answer = await self._desk.malformed(error, len(body), door=DOOR, peer=PEER)
            await send_answer(send, answer)
            return
        conversation = await self._desk.converse(frame, head, door=DOOR, peer=PEER)
        accept = head.get("accept", "*/*").lower()
        if not conversation.relays and not _accepts_both(accept):
            why = EnvelopeError("accept must allow application/json and text/event-stream")
            await send_answer(send, await self._refuse(why, frame, head, 406))
            return
        extra = {}
        if conversation.session is not None and frame.method == "initialize":
            extra["mcp-session-id"] = conversation.session
        outlet = self._outlet(send, frame, head, conversation, extra)
        await _watched(frame, head, conversation, outlet, receive)

    def _outlet(
        self,
        send: Send,
        frame: Frame,
        head: Mapping[str, str],
        conversation: Conversation,
        extra: Mapping[str, str],
    ) -> HttpOutlet:
        version = head.get("mcp-protocol-version", "")
        kept = conversation.session is not None and SINCE <= version < STATELESS
        if kept and frame.shape == "request":
            streams = self._streams.get(conversation)
            if streams is None:
                streams = self._streams[conversation] = Streams()
            return KeptOutlet(send, streams, extra)
        return HttpOutlet(send, conversation.relays, conversation.resumable, extra)

    async def _body(self, head: Mapping[str, str], receive: Receive) -> bytes | None:
        """The body; None if it is too large, and then the rest is not read."""
        most = self._limits.request
        declared = head.get("content-length", "")
        if declared.isdigit() and int(declared) > most:
            return None
        message = await receive()
        body: bytes = message.get("body", b"")
        if message["type"] == "http.disconnect":
            raise _GoneError
        if not message.get("more_body", False):
            return body if len(body) <= most else None
        parts = [body]
        size = len(body)
        while message.get("more_body", False):
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _GoneError
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                return None
        return b"".join(parts)

    async def _too_large(self, send: Send) -> None:
        most = self._limits.request
        why = EnvelopeError(f"the message has more than {most:,} bytes", code="TOO_LARGE")
        answer = await self._desk.malformed(FrameError(why), most, door=DOOR, peer=PEER)
        await send_answer(send, Answer(raw=answer.raw, status=413, headers={"connection": "close"}))

    async def _refuse(
        self, why: EnvelopeError, frame: Frame | None, head: Mapping[str, str], status: int
    ) -> Answer:
        return await self._desk.refuse(why, frame, head, door=DOOR, peer=PEER, status=status)

    # -- streams and sessions ------------------------------------------------------------------

    async def _get(self, head: Mapping[str, str], receive: Receive, send: Send) -> None:
        if not _accepts(head.get("accept", "*/*").lower(), "text/event-stream"):
            why = EnvelopeError("accept must allow text/event-stream")
            await send_answer(send, await self._refuse(why, None, head, 406))
            return
        conversation = await self._desk.converse(None, head, door=DOOR, peer=PEER)
        streams = self._streams.get(conversation)
        found = streams.find(head.get("last-event-id", "")) if streams is not None else None
        if found is not None:
            await _until_gone(send_again(send, *found, _PING_EVERY), receive)
            return
        try:
            reply = await conversation.listen(head)
        except EnvelopeError as error:
            # An error would make some clients give up the session: they are to come back.
            log.warning("there is nothing to listen to now: %s", error)
            await begin_stream(send, 200, {})
            await send_body(send, _COME_BACK, last=True)
            return
        if reply.streams is False or reply.status >= 300:
            await send_answer(
                send, Answer(body=reply.body, status=reply.status, headers=reply.headers)
            )
            await reply.close()
            return
        try:
            await _until_gone(send_stream(send, reply, _PING_EVERY), receive)
        finally:
            await reply.close()

    async def _delete(self, head: Mapping[str, str], receive: Receive, send: Send) -> None:
        await send_answer(send, await self._desk.end(head, door=DOOR, peer=PEER))


async def _break_off(send: Send) -> None:
    """End a response because the door stops: a stream, or one that has not begun."""
    with contextlib.suppress(RuntimeError, asyncio.CancelledError):
        try:
            await send_text(send, 503, "the gateway is stopping\n", {"connection": "close"})
        except RuntimeError:  # it had begun
            await send_body(send, b"", last=True)


async def _watched(
    frame: Frame,
    head: Mapping[str, str],
    conversation: Conversation,
    outlet: HttpOutlet,
    receive: Receive,
) -> None:
    """Take a message all the way, with an eye on whether its client is still there."""
    watching: list[asyncio.Task[None]] = []

    def watch() -> None:
        watching.append(asyncio.ensure_future(_watch(frame, conversation, outlet, receive)))

    timer = asyncio.get_running_loop().call_later(_WATCH_AFTER, watch)
    try:
        await conversation.handle(frame, head, outlet)
    finally:
        timer.cancel()
        for task in watching:
            task.cancel()


async def _watch(
    frame: Frame, conversation: Conversation, outlet: HttpOutlet, receive: Receive
) -> None:
    while True:
        try:
            async with asyncio.timeout(_PING_EVERY):
                await _gone(receive)
        except TimeoutError:
            await outlet.ping()
            continue
        outlet.is_gone = True
        conversation.gone(frame)
        return


async def _until_gone(writing: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Write a stream until it ends, or the client has gone."""
    streaming = asyncio.create_task(writing)
    leaving = asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait({streaming, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        streaming.cancel()
        await asyncio.wait({streaming, leaving})
        if not streaming.cancelled() and (error := streaming.exception()) is not None:
            log.info("a stream ended: %s", error)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _head_of(scope: Scope) -> dict[str, str]:
    """The headers, in lower case; those that were sent twice are joined, as RFC 9110 has it."""
    head: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1"), value.decode("latin-1").strip(" \t")
        head[key] = f"{head[key]}, {text}" if key in head else text
    return head


def _accepts_both(accept: str) -> bool:
    return _accepts(accept, "application/json") and _accepts(accept, "text/event-stream")


def _accepts(accept: str, kind: str) -> bool:
    """Whether an Accept header (in lower case) allows a media type (RFC 9110, 12.5.1)."""
    wanted = {kind, f"{kind.partition('/')[0]}/*", "*/*"}
    for part in accept.split(","):
        name, *parameters = [word.strip() for word in part.split(";")]
        if name in wanted:
            return not any(_NOTHING.fullmatch(word) for word in parameters)
    return False
