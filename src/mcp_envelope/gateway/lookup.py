"""Looking up the tools of one upstream, and asking it for them where they are not known."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp_envelope.core.document import Document
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, frame_of
from mcp_envelope.core.link import Item, Link
from mcp_envelope.pipeline.call import TOOL_CALL, Call
from mcp_envelope.pipeline.catalog import Catalog, Tool

from .ground import Ground, log
from .route import Route

#: Ids of the gateway's own requests begin so.
OWN: Final = "mcp-envelope/"
LIST: Final = "tools/list"
_PREFIX: Final = "io.modelcontextprotocol/"
_IDENTITY: Final = ("protocolVersion", "clientCapabilities", "clientInfo")
#: How long the gateway's own questions may take.
_PATIENCE: Final = 10.0


class Lookup:
    """The tools as one conversation sees them. ``noticed`` is shown what comes on the way."""

    def __init__(
        self, route: Route, link: Link, ground: Ground, noticed: Callable[[Item], object]
    ) -> None:
        self.catalog = Catalog(ground.checks, ground.tick)
        self._route = route
        self._link = link
        self._instance = ground.instance
        self._noticed = noticed
        self._asked = 0

    async def find(self, call: Call) -> None:
        """Set the call's tool. TOOL_NOT_FOUND where there is none, if such calls are refused."""
        if call.frame.method != TOOL_CALL:
            return
        name = tool_of(call) or ""
        refuses = self._route.rules(name).unknown_tools == "refuse"
        call.tool = await self._of(call, anew=False, since=call.began if refuses else None)
        if call.tool is not None:
            return
        if not self.catalog.is_complete:
            call.warn("the list of tools could not be had, so nothing was checked against it")
            log.warning("%s does not list its tools: calls are not checked", self._route.name)
        elif refuses:
            raise EnvelopeError(
                f"there is no tool {name[:100]!r}",
                code="TOOL_NOT_FOUND",
                pointer="/params/name",
                hint="tools/list names those that there are",
            )
        else:
            call.warn("the tool is not in the server's list, so nothing was checked")

    async def again(self, call: Call, since: float | None) -> Tool | None:
        """The tool in a list that was not asked for before ``since``; None: than a moment ago."""
        return await self._of(call, anew=True, since=since)

    async def _of(self, call: Call, *, anew: bool, since: float | None) -> Tool | None:
        async def fetch(cursor: str | None) -> Document:
            return await self._ask(call, cursor)

        return await self.catalog.find(tool_of(call) or "", fetch, anew=anew, since=since)

    async def _ask(self, call: Call, cursor: str | None) -> Document:
        """A page of tools/list, asked for in the caller's name: what it may see is what counts."""
        self._asked += 1
        params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        meta = {
            _PREFIX + name: call.frame.meta[_PREFIX + name]
            for name in _IDENTITY
            if _PREFIX + name in call.frame.meta
        }
        if meta:
            params["_meta"] = meta
        own = f"{OWN}{self._instance}/{self._asked}"
        frame = frame_of({"jsonrpc": "2.0", "id": own, "method": LIST, "params": params})
        try:
            async with asyncio.timeout(_PATIENCE):
                return await self._result_of(frame, _head_for_list(call.head))
        except TimeoutError:
            raise EnvelopeError(
                "the upstream did not list its tools in time", code="UPSTREAM_UNAVAILABLE"
            ) from None

    async def _result_of(self, frame: Frame, head: Mapping[str, str]) -> Document:
        reply = await self._link.send(frame, head)
        async for item in reply:
            self._noticed(item)
            if item.frame is not None and item.frame.shape == "response":
                if item.frame.result is not None:
                    return item.frame.result
                break
        raise EnvelopeError("the upstream does not list its tools", code="UPSTREAM_UNAVAILABLE")


def tool_of(call: Call) -> str | None:
    """The upstream's name for the tool that is called, None where no tool is."""
    sent = call.sent
    name = sent.params.get("name") if sent.method == TOOL_CALL else None
    return name if isinstance(name, str) else None


def _head_for_list(head: Mapping[str, str]) -> dict[str, str]:
    kept = {
        name: value
        for name, value in head.items()
        if name not in ("mcp-name", "last-event-id") and not name.startswith("mcp-param-")
    }
    if "mcp-method" in kept:
        kept["mcp-method"] = LIST
    return kept
