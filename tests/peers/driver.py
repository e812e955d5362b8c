"""Drives a server with the SDK's client and keeps every message that came back, as it came.

The client's own results would not do: a typed layer drops what it does not know, and that is
just what a gateway must not do.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

Json = dict[str, Any]
Step = tuple[str, Json]
PATIENCE = 30.0
OURS = "dev.mcp-envelope"
_NONE = "(nothing)"


@dataclass
class Heard:
    """What a client heard, in an order that does not depend on how streams interleave."""

    answers: dict[str, Any] = field(default_factory=dict)
    calls: list[Json] = field(default_factory=list)

    def note(self, message: Any) -> None:
        """Keep one message."""
        told = message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        told.pop("jsonrpc", None)
        if "method" in told:
            told.pop("id", None)  # a server's ids are its own, and the gateway may have its own too
            self.calls.append(told)
        else:
            self.answers[repr(told.pop("id", None))] = told

    def told(self) -> Json:
        """All of it, without what is ours."""
        return {
            "answers": without_ours(self.answers),
            "calls": sorted(self._once(map(without_ours, self.calls)), key=repr),
        }

    @staticmethod
    def _once(calls: Iterable[Json]) -> Iterator[Json]:
        """The calls, those that a server makes at its own time only once.

        Npm's everything-server asks for roots 350 ms after the handshake, and in a tool: once or
        twice, as it happens, with and without a gateway.
        """
        seen: list[Json] = []
        for call in calls:
            if call["method"] != "roots/list" and "Roots updated" not in repr(call):
                yield call
            elif call not in seen:
                seen.append(call)
                yield call


class _Tap:
    """A stream of messages that are noted while they pass."""

    def __init__(self, stream: Any, heard: Heard) -> None:
        self._stream = stream
        self._heard = heard

    async def receive(self) -> Any:
        item = await self._stream.receive()
        if not isinstance(item, Exception):
            self._heard.note(item.message)
        return item

    async def __anext__(self) -> Any:
        item = await self._stream.__anext__()
        if not isinstance(item, Exception):
            self._heard.note(item.message)
        return item

    def __aiter__(self) -> _Tap:
        return self

    async def __aenter__(self) -> _Tap:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *reason: Any) -> Any:
        return await self._stream.__aexit__(*reason)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def over_stdio(command: Sequence[str], environment: dict[str, str] | None = None) -> Any:
    """A transport to the program ``command``; what it says on stderr goes to ours."""
    return stdio_client(
        StdioServerParameters(command=command[0], args=list(command[1:]), env=environment)
    )


def over_http(url: str) -> Any:
    """A transport to the Streamable HTTP endpoint ``url``."""
    return streamable_http_client(url)


async def drive(transport: Any, mode: Any, steps: Sequence[Step]) -> Json:
    """Connect, take the steps one after another, close; all that was heard."""
    heard = Heard()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        async with _client(_tapped(transport, heard), mode) as client:
            for method, params in steps:
                # That a server says no is heard too; the client's exception adds nothing.
                with contextlib.suppress(MCPError):
                    await _take(client, method, params)
    return heard.told()


def without_ours(value: Any) -> Any:
    """``value`` without the members that the gateway adds, and without what held only those."""
    if isinstance(value, list):
        return [without_ours(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {}
    for name, item in value.items():
        if name.startswith(OURS):
            continue
        cleaned = without_ours(item)
        if not (cleaned == {} and item != {}):
            kept[name] = cleaned
    return kept


def differences(direct: Any, through: Any, path: str = "") -> list[str]:
    """Where two answers differ: a line for each place, with what stands there in both."""
    if isinstance(direct, dict) and isinstance(through, dict):
        names = [*direct, *(name for name in through if name not in direct)]
        return [
            line
            for name in names
            for line in differences(
                direct.get(name, _NONE), through.get(name, _NONE), f"{path}/{name}"
            )
        ]
    if isinstance(direct, list) and isinstance(through, list) and len(direct) == len(through):
        pairs = enumerate(zip(direct, through, strict=True))
        return [line for at, pair in pairs for line in differences(*pair, f"{path}/{at}")]
    same = direct == through and type(direct) is type(through)
    return [] if same else [f"{path}: {direct!r} → {through!r}"[:600]]


@contextlib.asynccontextmanager
async def _tapped(transport: Any, heard: Heard) -> AsyncIterator[Any]:
    async with transport as streams:
        yield (_Tap(streams[0], heard), *streams[1:])


def _client(transport: Any, mode: Any) -> Client:
    async def sample(context: Any, params: Any) -> types.CreateMessageResult:
        words = types.TextContent(type="text", text="the model's words")
        return types.CreateMessageResult(role="assistant", content=words, model="a-model")

    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="decline")

    async def roots(context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[])

    return Client(
        transport,
        mode=mode,
        read_timeout_seconds=PATIENCE,
        sampling_callback=sample,
        elicitation_callback=elicit,
        list_roots_callback=roots,
        cache=None,
        client_info=types.Implementation(name="peers-test", version="1"),
    )


async def _ignore(progress: float, total: float | None, message: str | None) -> None:
    """Want progress, so that the server reports it."""


async def _take(client: Client, method: str, params: Json) -> object:
    match method:
        case "tools/list":
            return await client.list_tools()
        case "tools/call":
            return await client.call_tool(
                params["name"], params.get("arguments"), progress_callback=_ignore
            )
        case "resources/list":
            return await client.list_resources()
        case "resources/templates/list":
            return await client.list_resource_templates()
        case "resources/read":
            return await client.read_resource(params["uri"])
        case "resources/subscribe":
            return await client.subscribe_resource(params["uri"])
        case "prompts/list":
            return await client.list_prompts()
        case "prompts/get":
            return await client.get_prompt(params["name"], params.get("arguments"))
    return await _take_rarer(client, method, params)


async def _take_rarer(client: Client, method: str, params: Json) -> object:
    match method:
        case "completion/complete":
            about = types.PromptReference(type="ref/prompt", name=params["prompt"])
            return await client.complete(about, params["argument"], params.get("context"))
        case "logging/setLevel":
            return await client.set_logging_level(params["level"])
        case "ping":
            return await client.send_ping()
    raise ValueError(f"the driver knows no {method}")
