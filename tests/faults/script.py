"""What the servers of these tests say: each message carries the nonce of the call that it is for.

Tools: ``echo`` says ``k`` times progress and a log line before its answer, ``flood`` the same
with progress alone, ``slow`` answers after ``ms``, ``hang`` never does, ``die`` kills its server.
What a server has received stands in the file that the variable NOTES names, a line each.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

MODERN = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
TOOLS = ("echo", "flood", "slow", "hang", "die")
_SCHEMA = {
    "type": "object",
    "properties": {
        "nonce": {"type": "string"},
        "k": {"type": "integer"},
        "ms": {"type": "integer"},
        "pad": {"type": "string"},
    },
    "required": ["nonce"],
}

Message = dict[str, Any]


def note(*words: object) -> None:
    """Write a line to the notes, in one go."""
    path = os.environ.get("NOTES")
    if path:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(file, (" ".join(map(str, words)) + "\n").encode())
        os.close(file)


def dumped(message: Message) -> bytes:
    """The message as JSON text."""
    return json.dumps(message, separators=(",", ":")).encode()


def answer(message: Message, result: Message) -> bytes:
    """The answer to a request."""
    return dumped({"jsonrpc": "2.0", "id": message["id"], "result": result})


def plain(message: Message) -> bytes | None:
    """The answer to whatever is no call of a tool; None if it wants none."""
    if "id" not in message or "method" not in message:
        return None
    method = message["method"]
    if method == "initialize":
        return answer(
            message,
            {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}, "logging": {}},
                "serverInfo": {"name": "faults", "version": "1"},
            },
        )
    if method == "tools/list":
        tools = [{"name": name, "inputSchema": _SCHEMA} for name in TOOLS]
        return answer(message, {"tools": tools, **_complete(message)})
    return answer(message, _complete(message))


def nonce_of(message: Message) -> str:
    """The nonce of a call."""
    return str(message["params"]["arguments"]["nonce"])


def spoken(message: Message) -> Iterator[bytes]:
    """What is said to a call of ``echo`` or ``flood``, its answer last."""
    params = message["params"]
    meta, given = params.get("_meta", {}), params["arguments"]
    nonce, token = nonce_of(message), meta.get("progressToken")
    is_modern = PREFIX + "protocolVersion" in meta
    logs = params["name"] == "echo" and (not is_modern or PREFIX + "logLevel" in meta)
    for i in range(given.get("k", 0)):
        if token is not None:
            about = {"progressToken": token, "progress": i + 1, "message": f"{nonce}/{i}"}
            yield dumped({"jsonrpc": "2.0", "method": "notifications/progress", "params": about})
        if logs:
            said = {"level": "info", "data": f"{nonce}/{i}"}
            yield dumped({"jsonrpc": "2.0", "method": "notifications/message", "params": said})
    yield last(message)


def last(message: Message) -> bytes:
    """The answer to a call."""
    text = nonce_of(message) + message["params"]["arguments"].get("pad", "")
    content = [{"type": "text", "text": text}]
    return answer(message, {"content": content, **_complete(message)})


def _complete(message: Message) -> Message:
    meta = message.get("params", {}).get("_meta", {})
    return {"resultType": "complete"} if PREFIX + "protocolVersion" in meta else {}
