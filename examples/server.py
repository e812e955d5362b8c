"""A small MCP server on standard input and output, made of nothing but the standard library.

It speaks 2025-06-18 and 2025-11-25, which begin with a handshake, and 2026-07-28, in which each
request stands for itself, and has one tool. Try it behind the gateway::

    mcp-envelope run -- python examples/server.py
"""

import json
import sys

VERSIONS = ["2026-07-28", "2025-11-25", "2025-06-18"]
REVISION = "io.modelcontextprotocol/protocolVersion"
INFO = {"name": "word-counter", "version": "1.0.0"}
TOOL = {
    "name": "count_words",
    "description": "Count the words and the characters of a text.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    },
    "outputSchema": {
        "type": "object",
        "properties": {"words": {"type": "integer"}, "characters": {"type": "integer"}},
        "required": ["words", "characters"],
    },
}


class Refused(Exception):
    """A request that is answered with an error: number and message."""


def initialize(params):
    """Agree on a revision of those that begin with a handshake."""
    asked = params.get("protocolVersion")
    agreed = asked if asked in VERSIONS[1:] else VERSIONS[1]
    return {"protocolVersion": agreed, "capabilities": {"tools": {}}, "serverInfo": INFO}


def discover(params):
    """Say what there is, to clients that do not shake hands."""
    about = {"io.modelcontextprotocol/serverInfo": INFO}
    return {"supportedVersions": VERSIONS[:1], "capabilities": {"tools": {}}, "_meta": about}


def call(params):
    """Call the one tool."""
    if params.get("name") != TOOL["name"]:
        raise Refused(-32602, f"Unknown tool: {params.get('name')}")
    text = params.get("arguments", {}).get("text")
    if not isinstance(text, str):
        return {"content": [{"type": "text", "text": "text must be a text"}], "isError": True}
    found = {"words": len(text.split()), "characters": len(text)}
    return {"content": [{"type": "text", "text": json.dumps(found)}], "structuredContent": found}


METHODS = {
    "initialize": initialize,
    "server/discover": discover,
    "ping": lambda params: {},
    "tools/list": lambda params: {"tools": [TOOL]},
    "tools/call": call,
}
#: Answers of 2026-07-28 say how long they may be kept.
KEPT = {"ttlMs": 60_000, "cacheScope": "public"}


def answer(request):
    """The answer to a request."""
    said = {"jsonrpc": "2.0", "id": request["id"]}
    method, params = request.get("method"), request.get("params") or {}
    try:
        if method not in METHODS:
            raise Refused(-32601, f"Method not found: {method}")
        result = METHODS[method](params)
    except Refused as error:
        return {**said, "error": {"code": error.args[0], "message": error.args[1]}}
    if REVISION in params.get("_meta", {}):
        kept = KEPT if method in ("tools/list", "server/discover") else {}
        result = {"resultType": "complete", **kept, **result}
    return {**said, "result": result}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:  # nothing else wants an answer
        print(json.dumps(answer(message)), flush=True)
