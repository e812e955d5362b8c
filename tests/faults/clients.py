"""Raw clients: HTTP connections that are kept alive, and the two ends of a pipe."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tests.faults.script import MODERN, PREFIX

Message = dict[str, Any]
_BOTH = "application/json, text/event-stream"


@dataclass
class Response:
    """The head of a response; its messages come from :meth:`Http.messages`."""

    status: int
    head: dict[str, str]
    messages: list[Message] = field(default_factory=list)


class Http:
    """One connection to a gateway, opened when it is needed."""

    made: ClassVar[list[Http]] = []

    def __init__(self, port: int) -> None:
        self.made.append(self)
        self.port = port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def send(self, method: str, head: dict[str, str], body: bytes = b"") -> None:
        """Send a request."""
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        lines = [f"{method} /mcp HTTP/1.1", f"Host: 127.0.0.1:{self.port}"]
        lines += [f"{name}: {value}" for name, value in head.items()]
        if body:
            lines += [f"Content-Length: {len(body)}", "Content-Type: application/json"]
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await self.writer.drain()

    async def begun(self) -> Response:
        """Read the head of a response."""
        assert self.reader is not None
        raw = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = raw.decode("latin-1").rstrip().split("\r\n")
        head = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
        return Response(int(first.split()[1]), head)

    async def messages(self, response: Response) -> AsyncIterator[Message]:
        """The messages of a response; IncompleteReadError if it breaks off."""
        if response.head.get("content-type", "").startswith("text/event-stream"):
            pending = b""
            async for data in self._parts(response):
                *events, pending = (pending + data).replace(b"\r\n", b"\n").split(b"\n\n")
                for event in events:
                    parts = [x[5:].strip() for x in event.split(b"\n") if x.startswith(b"data:")]
                    if parts and parts[0]:
                        yield json.loads(b"\n".join(parts))
            assert not pending, pending
        else:
            body = b"".join([data async for data in self._parts(response)])
            if body and "json" in response.head.get("content-type", ""):
                yield json.loads(body)

    async def _parts(self, response: Response) -> AsyncIterator[bytes]:
        assert self.reader is not None
        if "chunked" in response.head.get("transfer-encoding", ""):
            while size := int(await self.reader.readuntil(b"\r\n"), 16):
                yield (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readexactly(2)
        else:
            yield await self.reader.readexactly(int(response.head.get("content-length", "0")))
        if response.head.get("connection", "").lower() == "close":
            self.close()

    async def ask(self, method: str, head: dict[str, str], body: bytes = b"") -> Response:
        """A whole exchange."""
        await self.send(method, head, body)
        response = await self.begun()
        response.messages = [message async for message in self.messages(response)]
        return response

    def close(self) -> None:
        """Close the connection."""
        if self.writer is not None:
            self.writer.close()
            self.reader = self.writer = None

    def reset(self) -> None:
        """Drop the connection at once."""
        if self.writer is not None:
            self.writer.transport.abort()
            self.reader = self.writer = None


@dataclass
class Speech:
    """How one client speaks: its revision, its session, whether it asks for logs."""

    revision: str = MODERN
    session: str | None = None
    logs: bool = True

    @property
    def is_modern(self) -> bool:
        """Whether each request stands for itself."""
        return self.revision >= MODERN

    def head(self, message: Message) -> dict[str, str]:
        """The headers for a message."""
        head = {"Accept": _BOTH, "MCP-Protocol-Version": self.revision}
        if message.get("method") == "initialize":
            del head["MCP-Protocol-Version"]
        if self.session is not None:
            head["Mcp-Session-Id"] = self.session
        if self.is_modern:
            head["Mcp-Method"] = message["method"]
            if message["method"] == "tools/call":
                head["Mcp-Name"] = message["params"]["name"]
        return head

    def call(self, id: int, name: str, **arguments: object) -> Message:
        """A call of a tool, whose progress token is its id."""
        meta: Message = {"progressToken": id}
        if self.is_modern:
            meta[PREFIX + "protocolVersion"] = self.revision
            meta[PREFIX + "clientCapabilities"] = {}
            meta[PREFIX + "clientInfo"] = {"name": "raw", "version": "1"}
            if self.logs:
                meta[PREFIX + "logLevel"] = "debug"
        params = {"name": name, "arguments": arguments, "_meta": meta}
        return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}

    def initialize(self) -> Message:
        """The first message of an older client."""
        about = {"name": "raw", "version": "1"}
        params = {"protocolVersion": self.revision, "capabilities": {}, "clientInfo": about}
        return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}

    async def post(self, http: Http, message: Message) -> Response:
        """Send a message, and read all that is said to it."""
        return await http.ask("POST", self.head(message), json.dumps(message).encode())

    async def begin(self, http: Http, message: Message) -> Response:
        """Send a message, and read the head of the response only."""
        await http.send("POST", self.head(message), json.dumps(message).encode())
        return await http.begun()

    async def open(self, http: Http) -> None:
        """Shake hands, where that is done."""
        if not self.is_modern:
            response = await self.post(http, self.initialize())
            assert response.status == 200, response
            self.session = response.head.get("mcp-session-id")
            note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            assert (await self.post(http, note)).status == 202


class Pipe:
    """A client on a gateway's standard input and output."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.writer = process.stdin
        self.reader = process.stdout

    def send(self, message: Message) -> None:
        """Send one message."""
        self.writer.write(json.dumps(message).encode() + b"\n")

    async def read(self) -> Message | None:
        """The next message, None at the end."""
        line = await self.reader.readline()
        if not line:
            return None
        assert line.endswith(b"\n"), line
        found: Message = json.loads(line)
        return found

    async def open(self, speech: Speech) -> None:
        """Shake hands, where that is done."""
        if not speech.is_modern:
            self.send(speech.initialize())
            answer = await self.read()
            assert answer is not None
            assert answer["id"] == 0
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
