"""A call on its way through the gateway, and the stages that it is handed to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mcp_envelope.core.bodies import Keeping
from mcp_envelope.core.door import Outlet
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame
from mcp_envelope.core.kind import Kind
from mcp_envelope.core.link import Item, Link
from mcp_envelope.core.ports import Ledger

if TYPE_CHECKING:
    from .catalog import Tool

TOOL_CALL: Final = "tools/call"
#: What the ledger has lines for even if nothing goes wrong.
RECORDED: Final = frozenset({TOOL_CALL, "resources/read", "prompts/get", "completion/complete"})
#: What is kept of a call where nobody said anything.
KEEPING: Final = Keeping()


@dataclass(slots=True, kw_only=True, eq=False)
class Call:
    """One request of a client's, and what is known of it so far.

    ``frame`` is what the client sent, ``sent`` what goes to the upstream: the same, unless a
    name or an id had to change on the way. ``outlet`` is where everything goes that comes back.
    ``request_id`` is ours and unique, ``flaw`` why the call can go nowhere, ``keeping`` what may
    be said and kept of it. ``ended`` is the
    canonical code with which the call is
    ended from outside, None as long as it is not; ``dispatched`` whether the upstream may have
    seen it.
    """

    frame: Frame
    sent: Frame
    link: Link
    outlet: Outlet
    head: Mapping[str, str]
    kind: Kind | None
    revision: str
    door: str
    peer: str
    request_id: str
    run_id: str
    began: float
    trace_id: str | None = None
    correlation_id: str | None = None
    grant: str | None = None
    tool: Tool | None = None
    keeping: Keeping = KEEPING
    warnings: list[str] = field(default_factory=list)
    flaw: EnvelopeError | None = None
    ended: str | None = None
    dispatched: bool = False
    task: asyncio.Task[Any] | None = None

    @property
    def is_recorded(self) -> bool:
        """Whether the ledger has lines for it even if nothing goes wrong."""
        return self.frame.method in RECORDED

    def warn(self, text: str) -> None:
        """Note something that did not stop the call."""
        if text not in self.warnings:
            self.warnings.append(text)


#: Where in an answer something is put, and what.
Label = tuple[tuple[str, ...], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Answered:
    """What an upstream answered: HTTP status and headers where it has them, and the message.

    ``item`` is None where it answered with ``body``, something that is no JSON-RPC message.
    """

    status: int
    headers: Mapping[str, str]
    item: Item | None
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """What the exchange is handed. A stage stops a call by raising EnvelopeError.

    - ``authorize`` says what allowed the call; ``find`` looks its tool up; ``check_input`` and
      ``check_output`` hold it against the tool's schemas.
    - ``room`` is entered while the call is under way, and bounds how many are; ``timeout`` is
      how long it may take, 0 for as long as it likes; ``retries`` how often a call is sent
      again of which nothing reached the upstream.
    - ``resumed`` waits for the answer on another stream than the one that the call began, and
      sets where the rest of the call is to go (``call.outlet``).
    - ``passing`` gives what comes before an answer as the client is to see it, ``rename`` the
      answer; ``learn`` is shown each answer.
    - ``label`` gives what is put into an answer besides, and where; it is handed the facts about
      the call where that was recorded.
    - ``now`` is the time as lines say it, ``lasted`` how many milliseconds have gone since a
      time of the gateway's clock.
    - ``report`` is told of what nobody foresaw.
    """

    authorize: Callable[[Call], str | None]
    find: Callable[[Call], Awaitable[None]]
    check_input: Callable[[Call], Awaitable[None]]
    check_output: Callable[[Call, Frame], Awaitable[None]]
    room: Callable[[Call], AbstractAsyncContextManager[None] | None]
    timeout: Callable[[Call], float]
    retries: Callable[[Call], int]
    resumed: Callable[[Call], Awaitable[Item]]
    passing: Callable[[Item], Item]
    learn: Callable[[Call, Answered], None]
    rename: Callable[[Call, Frame], Frame]
    label: Callable[[Call, Frame, Mapping[str, Any] | None], Label | None]
    ledger: Ledger
    instance: str
    now: Callable[[], str]
    lasted: Callable[[float], float]
    report: Callable[[Call, BaseException], None]
