"""A server that has everything the official conformance suite asks for, made with the SDK.

Usage::

    python -m tests.conformance.everything                 over stdio
    python -m tests.conformance.everything --http PORT     http://127.0.0.1:PORT/mcp (0: a free one)

Over HTTP the line `everything: http://…/mcp` on stderr says that it listens.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import socket
import sys
import warnings
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.context import HandlerResult
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.lowlevel.server import RequestHandler
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

from . import everything_calls as calls
from . import everything_content as content
from . import everything_inputs as inputs
from . import everything_tasks as tasks
from .everything_content import INVALID_PARAMS, MODERN, Context, Json

_ALL = (*content.TOOLS, *calls.TOOLS, *inputs.TOOLS, *tasks.TOOLS)
TOOLS = {tool.name: tool for tool in _ALL}
# Children of one gateway may be asked in turn about one state, so they share the key.
_STATE_KEY = "the everything-server of mcp-envelope's tests guards nothing"


class _Events(EventStore):
    """Keeps the events of all streams, so that a client which was cut off gets the rest."""

    def __init__(self) -> None:
        self._events: list[tuple[str, types.JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        self._events.append((stream_id, message))
        return str(len(self._events) - 1)

    async def replay_events_after(
        self, last_event_id: str, send_callback: EventCallback
    ) -> str | None:
        if not last_event_id.isdecimal() or int(last_event_id) >= len(self._events):
            return None
        after = int(last_event_id) + 1
        stream = self._events[after - 1][0]
        for number, (of, message) in enumerate(self._events[after:], after):
            if of == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def _completed(handler: RequestHandler[Any, Any]) -> RequestHandler[Any, Any]:
    """``handler``, whose result says that it is complete where 2026-07-28 wants that said."""

    async def answer(ctx: Context, params: Any) -> HandlerResult:
        result = await handler(ctx, params)
        if ctx.protocol_version == MODERN and isinstance(result, dict):
            return {"resultType": "complete", **result}
        return result

    return answer


async def _list_tools(ctx: Context, params: Any) -> Json:
    return content.hinted(ctx, {"tools": [tool.listed() for tool in _ALL]})


async def _call_tool(ctx: Context, params: types.CallToolRequestParams) -> Json:
    tool = TOOLS.get(params.name)
    if tool is None:
        raise MCPError(INVALID_PARAMS, f"unknown tool: {params.name}")
    return await tool.run(ctx, dict(params.arguments or {}))


class _Everything(Server[Any]):
    def create_initialization_options(self, *words: Any, **options: Any) -> Any:
        """Say that lists change, however the transport asks."""
        changing = NotificationOptions(
            prompts_changed=True, resources_changed=True, tools_changed=True
        )
        return super().create_initialization_options(words[0] if words else changing, **options)


def everything() -> Server[Any]:
    """The server, with every handler in place."""
    server = _Everything(
        "everything",
        version="1.0.0",
        title="Everything",
        instructions="A server to test with.",
        get_tool_input_schema=lambda name: TOOLS[name].schema if name in TOOLS else None,
    )
    server.extensions.update({tasks.TASKS: {}, content.SKILLS: {"directoryRead": True}})
    server.middleware.append(
        RequestStateBoundary(RequestStateSecurity(keys=[_STATE_KEY]), default_audience="everything")
    )
    for method, kind, handler in (
        ("tools/list", types.PaginatedRequestParams, _list_tools),
        ("tools/call", types.CallToolRequestParams, _call_tool),
        ("resources/list", types.PaginatedRequestParams, content.list_resources),
        ("resources/templates/list", types.PaginatedRequestParams, content.list_templates),
        ("resources/read", types.ReadResourceRequestParams, content.read_resource),
        ("resources/subscribe", types.SubscribeRequestParams, calls.subscribe),
        ("resources/unsubscribe", types.UnsubscribeRequestParams, calls.subscribe),
        ("resources/directory/read", types.RequestParams, content.read_directory),
        ("prompts/list", types.PaginatedRequestParams, content.list_prompts),
        ("prompts/get", types.GetPromptRequestParams, inputs.get_prompt),
        ("completion/complete", types.CompleteRequestParams, content.complete),
        ("logging/setLevel", types.SetLevelRequestParams, calls.set_level),
        ("skills/list", types.RequestParams, content.list_skills),
        ("skills/get", types.RequestParams, content.get_skill),
        ("tasks/get", types.RequestParams, tasks.get_task),
        ("tasks/update", types.RequestParams, tasks.update_task),
        ("tasks/cancel", types.RequestParams, tasks.cancel_task),
        (
            "subscriptions/listen",
            types.SubscriptionsListenRequestParams,
            ListenHandler(calls.BUS),
        ),
    ):
        server.add_request_handler(method, kind, _completed(handler))
    return server


async def _over_stdio() -> None:
    server = everything()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def _over_http(port: int) -> None:
    app = everything().streamable_http_app(event_store=_Events(), retry_interval=100)
    listening = socket.create_server(("127.0.0.1", port))
    # httptools leaves the white space behind a header's value, which RFC 9110 says is not part of
    # it (and the suite sees that); h11 does not.
    settings = uvicorn.Config(app, http="h11", log_level="warning", timeout_graceful_shutdown=1)
    print(
        f"everything: http://127.0.0.1:{listening.getsockname()[1]}/mcp",
        file=sys.stderr,
        flush=True,
    )
    await uvicorn.Server(settings).serve(sockets=[listening])


def main(words: list[str]) -> int:
    """Serve until the input ends or a signal comes."""
    usage = argparse.ArgumentParser(prog="everything", description=__doc__)
    usage.add_argument("--http", type=int, metavar="PORT", help="serve over HTTP")
    options = usage.parse_args(words)
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(_over_stdio() if options.http is None else _over_http(options.http))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
