"""A gateway in this process between a raw client and a puppet, all of it over real wires."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from binascii import b2a_base64
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.gateway import puppet
from tests.gateway.wire import Endpoint, Response, Stream, endpoint, post, streaming

from mcp_envelope.core.entry import Facts, Receipt
from mcp_envelope.core.mcp_headers import encode_value
from mcp_envelope.gateway import recording, talk
from mcp_envelope.gateway.app import Gateway
from mcp_envelope.gateway.listener import Listener
from mcp_envelope.gateway.settings import (
    HttpSettings,
    RecordSettings,
    Rules,
    Settings,
    UpstreamSettings,
)
from mcp_envelope.stores.memory import MemoryLedger
from mcp_envelope.transports.http import HttpDoor
from mcp_envelope.transports.stdio import StdioDoor
from mcp_envelope.transports.stdio_pipes import StdioPipes

REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
STATELESS = "2026-07-28"
_PREFIX = "io.modelcontextprotocol/"


def plan(*says: bytes, then: str = "", how: str = "json") -> dict[str, Any]:
    """What a puppet is to do: say these messages, in which ``@ID@`` is the request's id."""
    return {"say": [b2a_base64(say, newline=False).decode() for say in says], "then": then} | {
        "as": how
    }


def answering(members: bytes, **how: str) -> dict[str, Any]:
    """A plan to answer with ``"result":…`` or ``"error":…``, written just so."""
    return plan(b'{"jsonrpc":"2.0","id":@ID@,%b}' % members, **how)


class Book(MemoryLedger):
    """A ledger in memory; ``faults`` has what happens to events instead of being written."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: dict[str, Exception] = {}
        self._written = asyncio.Event()

    async def append(self, facts: Facts, bodies: Sequence[bytes] = ()) -> Receipt:
        """Keep a line, or fail as told."""
        if facts.event in self.faults:
            raise self.faults[facts.event]
        receipt = await super().append(facts, bodies)
        self._written.set()
        return receipt

    def entries(self, start: int = 0) -> list[dict[str, Any]]:
        """The lines from a place on."""
        return [json.loads(line) for line in self.lines[start:]]

    async def after(self, start: int, count: int) -> list[dict[str, Any]]:
        """Those lines, once there are so many."""
        async with asyncio.timeout(5):
            while len(self.lines) - start < count:
                self._written.clear()
                await self._written.wait()
        return self.entries(start)


@dataclass
class Said:
    """What the client was answered: over HTTP with a status; ``messages`` as they were written."""

    messages: list[bytes]
    http: Response | None = None

    @property
    def raw(self) -> bytes:
        """The answer's bytes."""
        return self.messages[-1]

    @property
    def message(self) -> Any:
        """The answer."""
        return json.loads(self.raw)


@dataclass
class Rig:
    """A gateway with one door. ``log`` is what its child reads, ``end`` its HTTP upstream."""

    door: str
    upstream: str
    revision: str
    gateway: Gateway
    book: Book
    log: Path
    end: Endpoint
    port: int = 0
    source: asyncio.StreamReader = field(default_factory=asyncio.StreamReader)
    sink: int = -1
    session: dict[str, str] = field(default_factory=dict)
    count: int = 0
    stop: Callable[[], Awaitable[None]] | None = None

    @property
    def heard(self) -> list[bytes]:
        """What the upstream has read."""
        if self.upstream == "http":
            return [body for _, body in self.end.heard]
        return self.log.read_bytes().splitlines() if self.log.exists() else []

    def request(self, method: str, params: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """A request of the rig's revision, with the next id."""
        self.count += 1
        params = dict(params or {})
        if self.revision == STATELESS:
            params["_meta"] = self.identity() | params.get("_meta", {})
        return {"jsonrpc": "2.0", "id": self.count, "method": method, "params": params} | more

    def call(self, tool: str = "free", arguments: Any = None, **params: Any) -> Any:
        """A tools/call."""
        given = {} if arguments is None else {"arguments": arguments}
        return self.request("tools/call", {"name": tool, **given, **params})

    def identity(self) -> dict[str, Any]:
        """What each request has in ``_meta`` from 2026-07-28 on."""
        return {_PREFIX + "protocolVersion": self.revision, _PREFIX + "clientCapabilities": {}}

    def head(self, message: Mapping[str, Any] | None) -> dict[str, str]:
        """The HTTP headers that a client sends with a message."""
        head = {"mcp-protocol-version": self.revision, **self.session}
        if self.revision == STATELESS and message is not None and "method" in message:
            head["mcp-method"] = message["method"]
            name = (message.get("params") or {}).get("name")
            if isinstance(name, str):
                head["mcp-name"] = encode_value(name)
        return head

    async def ask(self, message: Any, **head: str) -> Said:
        """Send a message and read up to its answer."""
        return await self.send(json.dumps(message).encode(), message, extra=head)

    async def send(
        self,
        raw: bytes,
        message: Any = None,
        *,
        size: int | None = None,
        extra: Mapping[str, str] = {},
    ) -> Said:
        """Send bytes; ``message`` is what they say, for the headers. Empty ones are left out."""
        if self.door == "http":
            known = message if isinstance(message, dict) else None
            named = {name.replace("_", "-"): value for name, value in extra.items()}
            response = await post(self.port, raw, self.head(known) | named, size=size)
            return Said(response.messages, response)
        self.write(raw)
        wants = not isinstance(message, dict) or ("id" in message and "method" in message)
        return Said(await self.read() if wants else [])

    async def begin(self, message: Any) -> Awaitable[Said]:
        """Send a message; what is returned waits for its answer."""
        if self.door == "http":
            return asyncio.ensure_future(self.ask(message))
        self.write(json.dumps(message).encode())
        return self._read_later()

    async def _read_later(self) -> Said:
        return Said(await self.read())

    def write(self, raw: bytes) -> None:
        """Write a line to the stdio door."""
        data = raw + b"\n"
        while data:
            data = data[os.write(self.sink, data) :]

    async def read(self) -> list[bytes]:
        """Read from the stdio door, up to a response."""
        lines = []
        async with asyncio.timeout(10):
            while True:
                lines.append((await self.source.readline()).removesuffix(b"\n"))
                if not lines[-1] or "method" not in json.loads(lines[-1]):
                    return lines

    @asynccontextmanager
    async def stream(
        self, message: Any = None, method: str = "POST", **head: str
    ) -> AsyncIterator[Stream]:
        """Send a message over HTTP and read what comes bit by bit; leaving goes away."""
        body = b"" if message is None else json.dumps(message).encode()
        named = {name.replace("_", "-"): value for name, value in head.items()}
        async with streaming(self.port, body, self.head(message) | named, method=method) as found:
            yield found

    async def tell(self, method: str, **params: Any) -> None:
        """Send a notification."""
        note = {"jsonrpc": "2.0", "method": method, "params": params}
        await self.send(json.dumps(note).encode(), note)

    async def shake_hands(self) -> Said:
        """Begin the conversation, as the older revisions do."""
        hello = self.request("initialize", {
            "protocolVersion": self.revision,
            "capabilities": {},
            "clientInfo": {"name": "rig", "version": "1"},
        })  # fmt: skip
        self.session = {}
        said = await self.ask(hello)
        if said.http is not None and "mcp-session-id" in said.http.head:
            self.session = {"mcp-session-id": said.http.head["mcp-session-id"]}
        if "result" in said.message:
            await self.tell("notifications/initialized")
        return said


RULES = Rules(concurrency=1, retries=0, unknown_tools="refuse")
TOOL_RULES = {
    "brief": replace(RULES, timeout=0.1, concurrency=0),
    "promising": replace(RULES, output="strict", concurrency=0),
}


@asynccontextmanager
async def rigged(
    door: str,
    upstream: str,
    revision: str,
    folder: Path,
    *,
    hands: bool = True,
    twin: bool = False,
    http: HttpSettings | None = None,
    record: RecordSettings | None = None,
    deterministic: bool = False,
    **given: Any,
) -> AsyncIterator[Rig]:
    """A rig. ``given`` is for the upstream's settings, but for what begins with ``max_``.

    ``http`` says how the HTTP door is set. A ``twin`` of the upstream makes the names of tools
    begin with ``puppet__``.
    """
    log = folder / "heard"
    log.unlink(missing_ok=True)
    book = Book()
    limits = {name: given.pop(name) for name in list(given) if name.startswith("max_")}
    async with AsyncExitStack() as stack:
        stack.enter_context(patch.object(recording, "open_ledger", lambda url, **_: book))
        stack.enter_context(patch.object(talk, "_GRACE", 0.05))
        end = await stack.enter_async_context(endpoint())
        if upstream == "child":
            program = (sys.executable, "-I", "-S", puppet.__file__, str(log))
            where: dict[str, Any] = {"command": program}
        else:
            where = {"url": f"http://127.0.0.1:{end.port}/mcp"}
        one = UpstreamSettings(name="puppet", **(where | {"rules": RULES, "grace": 0.5} | given))
        settings = Settings(
            ledger="memory:",
            record=record or RecordSettings(),
            deterministic=deterministic,
            upstreams=(one, replace(one, name="twin")) if twin else (one,),
            http=(http or HttpSettings()) if door == "http" else None,
            **limits,
        )
        gateway = await stack.enter_async_context(Gateway.open(settings))
        rig = Rig(door, upstream, revision, gateway, book, log, end)
        await (_open_http(rig, stack) if door == "http" else _open_stdio(rig, stack))
        if hands and revision != STATELESS:
            await rig.shake_hands()
        yield rig


async def _open_http(rig: Rig, stack: AsyncExitStack) -> None:
    gateway = rig.gateway
    door = HttpDoor(gateway.desk, gateway.gate, gateway.ground.limits)
    listener = await stack.enter_async_context(Listener.open(door, "127.0.0.1", 0))
    rig.port = int(listener.url.rpartition(":")[2])
    rig.stop = partial(door.stop, 2.0)


async def _open_stdio(rig: Rig, stack: AsyncExitStack) -> None:
    limits = rig.gateway.ground.limits
    theirs, rig.sink = os.pipe()
    ours, target = os.pipe()
    pipes = await StdioPipes.open(theirs, target, limits.request)
    door = StdioDoor(rig.gateway.desk, pipes, limits)
    rig.source = asyncio.StreamReader(limit=64 * 1024 * 1024)
    loop = asyncio.get_running_loop()
    reading, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(rig.source), os.fdopen(ours, "rb", buffering=0)
    )
    serving = asyncio.create_task(door.serve())

    async def stop() -> None:
        door.stop()
        await serving

    rig.stop = stop

    async def end() -> None:
        os.close(rig.sink)
        await serving
        await pipes.close()
        reading.close()

    stack.push_async_callback(end)
