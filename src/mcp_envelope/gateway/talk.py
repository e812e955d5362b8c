"""One client's conversation with one upstream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp_envelope.core import mcp_headers
from mcp_envelope.core.document import Document
from mcp_envelope.core.door import LEGACY, STATELESS, Answer, Outlet
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, FrameError, IdKey, id_key
from mcp_envelope.core.hops import hello
from mcp_envelope.core.link import Item, Link, Reply
from mcp_envelope.pipeline.call import Answered, Call, Stages
from mcp_envelope.pipeline.checks import check_input, check_output, is_final
from mcp_envelope.pipeline.exchange import exchange
from mcp_envelope.pipeline.record import LABEL

from .arrivals import check_headers, check_identity, kind_of, trace_of
from .ground import Ground, log
from .label import OFF, advertised, is_gateway, label_of, wanted_mode
from .lookup import LIST, Lookup, tool_of
from .malformed import call_without_id, record_malformed
from .resumption import Parked, Resumed
from .route import Route
from .tasks import Tasks

_PREFIX: Final = "io.modelcontextprotocol/"
_HANDSHAKES: Final = ("initialize", "server/discover")
_LIST_CHANGED: Final = "notifications/tools/list_changed"
_CANCELLED: Final = "notifications/cancelled"
#: How long an upstream may still answer what the client has cancelled.
_GRACE: Final = 2.0


class Talk:
    """A conversation with one upstream, as a door's :class:`~mcp_envelope.core.door.Conversation`.

    ``shared`` conversations serve many clients at once, whose ids may be the same; ``session``
    is the id that the gateway made for it; ``relays`` as in the protocol.
    """

    def __init__(
        self,
        route: Route,
        link: Link,
        ground: Ground,
        *,
        door: str,
        peer: str,
        relays: bool = False,
        shared: bool = False,
        session: str | None = None,
    ) -> None:
        self.session = session
        self.relays = relays
        self.on_session: Callable[[str, Talk], None] | None = None
        self.on_result: Callable[[object], None] | None = None
        self.on_failed: Callable[[], None] | None = None
        self._is_open = False
        self.used = ground.tick()
        self._route = route
        self._link = link
        self._ground = ground
        self._door = door
        self._peer = peer
        self._shared = shared
        #: The revision of messages that do not name theirs.
        self.agreed = LEGACY
        self.label_mode: str | None = None
        self._hello: asyncio.Task[None] | None = None
        self._tools = Lookup(route, link, ground, self._noticed)
        self._tasks = Tasks()
        self._calls: dict[int, Call] = {}
        self._parked: dict[IdKey, Parked] = {}
        self._listening = 0
        self._stages = self._make_stages()

    @property
    def resumable(self) -> bool:
        """Whether a client can take up a stream again that was closed before its answer."""
        return self.relays and not self._shared

    @property
    def is_idle(self) -> bool:
        """Whether no call is under way, and nobody listens."""
        return not self._calls and not self._listening

    # -- what the door calls ---------------------------------------------------------------

    async def handle(
        self,
        frame: Frame,
        head: Mapping[str, str],
        outlet: Outlet,
        *,
        sent: Frame | None = None,
        flaw: EnvelopeError | None = None,
    ) -> None:
        """Take one message all the way; the answer is given to the outlet before this returns.

        ``sent`` goes to the upstream in its place, ``flaw`` is why it goes to none.
        """
        self.used = self._ground.tick()
        if frame.shape != "request":
            if (why := call_without_id(frame)) is not None:
                await outlet.answer(await self.malformed(why, len(frame.raw)))
            else:
                await self._pass_on(sent or frame, head, outlet)
            return
        call = self._call(frame, head, outlet)
        call.sent, call.flaw = sent or frame, flaw or self._clash(frame)
        call.keeping = self._route.keeping(tool_of(call))
        self._calls[id(frame)] = call
        try:
            await exchange(call, self._stages)
        finally:
            del self._calls[id(frame)]
            self.used = self._ground.tick()
            if frame.method == _HANDSHAKES[0] and not self._is_open and self.on_failed is not None:
                self.on_failed()

    async def malformed(self, error: FrameError, size: int) -> Answer:
        """Record bytes that are no message, and say what is wrong with them."""
        return await record_malformed(
            error, self._ground, door=self._door, peer=self._peer, revision=self.agreed
        )

    async def listen(self, head: Mapping[str, str]) -> Reply:
        """What belongs to no message of the client's, and answers to calls that were parked."""
        self.used = self._ground.tick()
        reply = await self._link.listen(head)
        self._listening += 1
        return Resumed(reply, self._parked, self._noticed, self._listened)

    def gone(self, frame: Frame) -> None:
        """The client does not read the answer to this message any more."""
        call = self._calls.get(id(frame))
        if call is not None and call.revision >= STATELESS:
            _end(call)

    async def close(self) -> None:
        """The client has gone: end what is under way, then the link."""
        tasks = [call.task for call in self._calls.values() if call.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_GRACE)
        await self._link.close()

    def learn_tools(self, page: Document, *, whole: bool) -> None:
        """Take in a page of the upstream's list of tools, asked for by somebody else."""
        self._tools.catalog.learn(page, whole=whole)

    # -- messages that are no calls ----------------------------------------------------------

    async def _pass_on(self, frame: Frame, head: Mapping[str, str], outlet: Outlet) -> None:
        """Hand on a notification, or the answer to a question of the upstream's."""
        try:
            if frame.method == _CANCELLED and self._is_for_us(frame):
                answer = Answer(status=202)
            else:
                reply = await self._link.send(frame, head)
                answer = await _whole(reply)
        except EnvelopeError as error:
            log.warning("%s: a %s was not delivered: %s", self._route.name, frame.shape, error)
            answer = Answer(status=202)  # nobody waits for more
        await outlet.answer(answer)

    def _is_for_us(self, frame: Frame) -> bool:
        """Whether the upstream need not hear of a cancellation.

        Where many clients share the conversation an id may be anybody's, and closing the stream
        is how they cancel.
        """
        if self._shared:
            return not self.relays
        return self._withdraw(frame)

    def _withdraw(self, frame: Frame) -> bool:
        """End the call that a notification cancels; True if the upstream never heard of it."""
        wanted = frame.params.get("requestId")
        if not isinstance(wanted, (str, int, float)) or isinstance(wanted, bool):
            return False
        for call in self._calls.values():
            if call.frame.id is not None and id_key(call.frame.id) == id_key(wanted):
                if not call.dispatched:
                    _end(call)
                    return True
                call.ended = "CANCELLED"
                asyncio.get_running_loop().call_later(_GRACE, _end_if_there, self._calls, call)
        return False

    # -- calls -------------------------------------------------------------------------------

    def _call(self, frame: Frame, head: Mapping[str, str], outlet: Outlet) -> Call:
        request_id = self._ground.new_id()
        return Call(
            frame=frame,
            sent=frame,
            link=self._link,
            outlet=outlet,
            head=head,
            kind=None,
            revision=self._revision(frame, head),
            door=self._door,
            peer=self._peer,
            request_id=request_id,
            run_id=request_id,
            began=self._ground.tick(),
            trace_id=trace_of(frame, head),
            task=asyncio.current_task(),
        )

    def _clash(self, frame: Frame) -> EnvelopeError | None:
        """Why a request cannot be told from one that is under way."""
        if self._shared or self.relays or frame.id is None:
            return None
        key = id_key(frame.id)
        if all(id_key(call.frame.id or 0) != key for call in self._calls.values()):
            return None
        why = "a request with this id is under way"
        return EnvelopeError(why, pointer="/id", hint="give each request an id of its own")

    def _revision(self, frame: Frame, head: Mapping[str, str]) -> str:
        return frame.revision or head.get("mcp-protocol-version") or self.agreed

    def _make_stages(self) -> Stages:
        ground, route = self._ground, self._route
        return Stages(
            authorize=self._authorize,
            find=self._tools.find,
            check_input=self._check_input,
            check_output=self._check_output,
            room=lambda call: route.room(tool_of(call)) if call.is_recorded else None,
            timeout=lambda call: route.rules(tool_of(call)).timeout if call.is_recorded else 0.0,
            retries=lambda call: route.rules(tool_of(call)).retries,
            resumed=self._resumed,
            passing=self._noticed,
            learn=self._learn,
            rename=self._shown,
            label=self._label,
            ledger=ground.ledger,
            instance=ground.instance,
            now=ground.clockwork.now,
            lasted=ground.clockwork.lasted,
            report=_report,
        )

    def _authorize(self, call: Call) -> str | None:
        """Say what the call is about; who may call what is decided by a later policy."""
        if call.is_recorded:
            call.kind = kind_of(call)
        if call.flaw is not None:
            raise call.flaw
        if self._door == "http" and call.revision >= STATELESS:
            check_identity(call.frame)
            check_headers(call.frame, call.head)
        return None

    async def _check_input(self, call: Call) -> None:
        if call.tool is None:
            return
        if call.tool.names_headers and call.revision >= STATELESS:
            self._check_params(call, call.tool.input_schema)
        await check_input(call, self._route.rules(tool_of(call)).input, self._tools.again)

    def _check_params(self, call: Call, schema: object) -> None:
        """Hold the headers that repeat arguments against these, or make them for the upstream."""
        if self._door == "http":
            check_headers(call.frame, call.head, schema)
        if not self.relays:
            arguments = call.sent.params.get("arguments")
            if isinstance(arguments, dict):
                call.head = {**call.head, **mcp_headers.param_headers(schema, arguments)}

    async def _check_output(self, call: Call, frame: Frame) -> None:
        if call.tool is not None:
            mode = self._route.rules(tool_of(call)).output
            await check_output(call, frame, mode, self._tools.again)

    def _learn(self, call: Call, answered: Answered) -> None:
        frame = answered.item.frame if answered.item is not None else None
        if frame is None or (result := frame.result) is None or not result.is_object:
            return
        if self.on_result is not None:
            self.on_result(result.value)
        if call.frame.method == "initialize":
            self._is_open = True
            self.label_mode = wanted_mode(call.frame.params.get("capabilities"))
            agreed = result.value.get("protocolVersion")
            self.agreed = agreed if isinstance(agreed, str) else self.agreed
            if self.session is not None and is_gateway(result.value):
                self._hello = asyncio.create_task(self._say_hello())
            named = answered.headers.get("mcp-session-id")
            if named is not None and self.on_session is not None:
                self.on_session(named, self)
        elif call.frame.method == LIST:
            whole = "cursor" not in call.frame.params and "nextCursor" not in result.value
            self._tools.catalog.learn(result, whole=whole and not self._shared)

    async def _say_hello(self) -> None:
        try:
            await self._link.send(hello(), {})
        except EnvelopeError as error:
            log.info("%s does not hear that we are a gateway: %s", self._route.name, error)

    def _shown(self, call: Call, frame: Frame) -> Frame:
        if call.frame.method in _HANDSHAKES and self._route.rules().label != OFF:
            return advertised(frame, stateless=call.frame.revision is not None)
        return frame

    def _label(
        self, call: Call, frame: Frame, facts: Mapping[str, Any] | None
    ) -> tuple[tuple[str, ...], Mapping[str, Any]] | None:
        """Where a label goes, and what it says: into final results, at once or of a task."""
        mode = wanted_mode(call.frame.meta.get(f"{_PREFIX}clientCapabilities"))
        if OFF in (mode or self.label_mode, self._route.rules(tool_of(call)).label):
            return None
        if facts is None:
            found = self._tasks.finished(call.frame, frame)
            return None if found is None else (found[0], label_of({}, {}, found[1]))
        if is_final(frame):
            result = frame.value["result"]
            if not isinstance(result.get("_meta", {}), dict):
                return None
            return ("result", "_meta", LABEL), label_of(result, frame.meta, facts)
        self._tasks.accept(frame, facts, call.keeping)
        return None

    def _listened(self) -> None:
        self._listening -= 1
        self.used = self._ground.tick()

    def _noticed(self, item: Item) -> Item:
        frame = item.frame
        if frame is None or frame.shape != "notification":
            return item
        if frame.method == _LIST_CHANGED:
            self._tools.catalog.changed()
        found = self._tasks.announced(frame)
        if found is None:
            return item
        labelled = frame.put(found[0], label_of({}, {}, found[1]))
        event = item.event.with_data(labelled.raw) if item.event is not None else None
        return Item(labelled, event)

    async def _resumed(self, call: Call) -> Item:
        """Wait for an answer whose stream was closed, on a stream that the client opens next."""
        parked = Parked()
        key = id_key(call.frame.id if call.frame.id is not None else "")
        self._parked[key] = parked
        call.outlet = parked
        try:
            return await parked.arrival()
        finally:
            self._parked.pop(key, None)


def _end(call: Call) -> None:
    call.ended = "CANCELLED"
    if call.task is not None:
        call.task.cancel()


def _end_if_there(calls: Mapping[int, Call], call: Call) -> None:
    if calls.get(id(call.frame)) is call:
        _end(call)


async def _whole(reply: Reply) -> Answer:
    """What an upstream says to a message that wants no answer."""
    said: Frame | None = None
    async for item in reply:
        said = item.frame if item.frame is not None else said
    raw = said.raw if said is not None else None
    return Answer(raw=raw, body=reply.body, status=reply.status, headers=reply.headers)


def _report(call: Call, error: BaseException) -> None:
    foreseen = isinstance(error, EnvelopeError)
    log.error(
        "call %s (%s): %s",
        call.request_id,
        call.frame.method,
        error,
        exc_info=None if foreseen else error,
    )
