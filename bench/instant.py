"""A server that answers at once: what stands behind everything that `gateway.py` measures.

    python -m uvicorn --app-dir bench instant:app --port PORT
    python bench/instant.py

The first is a bare ASGI application, the second a loop over the lines of its standard input.
It speaks the revisions with sessions and 2026-07-28, and has the three tools of :data:`TOOLS`,
whose answers are made beforehand but for their ids.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

SESSION = b"0123456789abcdef0123456789abcdef"
STATELESS = "2026-07-28"
LEGACY = "2025-11-25"

_TEXT = {"type": "string"}
_WHOLE = {"type": "integer"}
_YES_NO = {"type": "boolean"}
_TEXTS = {"type": "array", "items": _TEXT}
_ROW = {
    "type": "object",
    "properties": {
        "name": _TEXT,
        "value": _WHOLE,
        "ok": _YES_NO,
        "unit": {"type": ["string", "null"]},
        "tags": _TEXTS,
    },
    "required": ["name", "value", "ok", "unit", "tags"],
}
_ROWS = {"type": "array", "items": {"$ref": "#/$defs/Row"}}


def rows(size: int) -> list[dict[str, Any]]:
    """A table that takes about so many bytes as JSON."""
    found: list[dict[str, Any]] = []
    length = 0
    while length < size:
        i = len(found)
        row = {"name": f"row {i} of the table", "value": i * 7919 % 10**6, "ok": i % 3 == 0}
        found.append({**row, "unit": None if i % 2 else "mm", "tags": ["a", "b"]})
        length += len(orjson.dumps(found[-1])) + 1
    return found


def _object(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), **more}


def _text(size: int) -> str:
    return ('Lorem ipsum dolor sit amet, "consectetur" adipiscing.\n' * (size // 56 + 1))[:size]


#: Name, input schema, output schema.
TOOLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "look": (
        _object({"path": _TEXT, "limit": _WHOLE, "deep": _YES_NO, "tags": _TEXTS}),
        _object({"path": _TEXT, "size": _WHOLE, "ok": _YES_NO}),
    ),
    "store": (
        _object({"table": _TEXT, "rows": _ROWS}, **{"$defs": {"Row": _ROW}}),
        _object({"table": _TEXT, "rows": _ROWS}, **{"$defs": {"Row": _ROW}}),
    ),
    "write": (
        _object({"path": _TEXT, "content": _TEXT}),
        _object({"path": _TEXT, "content": _TEXT}),
    ),
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "look": {"path": "/srv/data/reports", "limit": 250, "deep": True, "tags": ["a", "b"]},
    "store": {"table": "readings", "rows": rows(9_850)},
    "write": {"path": "a.txt", "content": _text(9_500)},
}
_RESULTS: dict[str, dict[str, Any]] = {
    "look": {"path": "/srv/data/reports/2026", "size": 4711, "ok": True},
    "store": {"table": "readings", "rows": rows(9_850)},
    "write": {"path": "a.txt", "content": _text(9_500)},
}


def _tail(result: dict[str, Any], *, stateless: bool) -> bytes:
    """What follows the id of an answer."""
    more = {"resultType": "complete"} if stateless else {}
    return b',"result":' + orjson.dumps({**result, **more}) + b"}"


def _call_tail(tool: str, *, stateless: bool) -> bytes:
    content = [{"type": "text", "text": "done"}]
    result = {"content": content, "structuredContent": _RESULTS[tool], "isError": False}
    return _tail(result, stateless=stateless)


_CALLS = {(tool, era): _call_tail(tool, stateless=era) for tool in TOOLS for era in (False, True)}
_ABLE = {"tools": {"listChanged": False}}
_SELF = {"name": "instant", "version": "1"}


def _others(method: str, params: dict[str, Any], *, stateless: bool) -> bytes:
    result: dict[str, Any] = {}
    if method == "initialize":
        version = params.get("protocolVersion", LEGACY)
        result = {"protocolVersion": version, "capabilities": _ABLE, "serverInfo": _SELF}
    elif method == "server/discover":
        result = {"supportedVersions": [STATELESS], "capabilities": _ABLE, "serverInfo": _SELF}
        result |= {"ttlMs": 3_600_000, "cacheScope": "public"}
    elif method == "tools/list":
        tools = [
            {"name": name, "description": name, "inputSchema": inward, "outputSchema": outward}
            for name, (inward, outward) in TOOLS.items()
        ]
        result = {"tools": tools}
        if stateless:
            result |= {"ttlMs": 3_600_000, "cacheScope": "public"}
    return _tail(result, stateless=stateless)


def answer(body: bytes) -> bytes | None:
    """The answer to a message, None for what wants none."""
    message = orjson.loads(body)
    if "id" not in message or "method" not in message:
        return None
    method, params = message["method"], message.get("params", {})
    stateless = "io.modelcontextprotocol/protocolVersion" in params.get("_meta", ())
    if method == "tools/call":
        tail = _CALLS[params["name"], stateless]
    else:
        tail = _others(method, params, stateless=stateless)
    return b'{"jsonrpc":"2.0","id":' + orjson.dumps(message["id"]) + tail


Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """The server as an ASGI application; every answer names the one session."""
    message = await receive()
    body = message.get("body", b"")
    while message.get("more_body"):
        message = await receive()
        body += message.get("body", b"")
    if scope["method"] != "POST":
        status = 405 if scope["method"] == "GET" else 200
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        return
    said = answer(body)
    headers = [(b"mcp-session-id", SESSION)] if b'"initialize"' in body else []
    if said is None:
        await send({"type": "http.response.start", "status": 202, "headers": headers})
        await send({"type": "http.response.body", "body": b""})
        return
    headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(said))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": said})


def serve_lines() -> None:
    """The server on standard input and output."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    for line in source:
        said = answer(line)
        if said is not None:
            sink.write(said + b"\n")
            sink.flush()


if __name__ == "__main__":
    serve_lines()
