"""Small MCP servers for the tests of `doctor`: ``python servers.py KIND``."""

from __future__ import annotations

import json
import sys
from typing import Any

BROKEN_SCHEMA = {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}
TOOLS = [
    {"name": "now", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}},
    {"name": "then", "inputSchema": {"type": "object"}},
]


def answer(kind: str, question: dict[str, Any]) -> dict[str, Any]:
    """The result of a request, or its error."""
    method, params = question["method"], question.get("params", {})
    modern = "_meta" in params
    if method == "initialize" and kind != "modern":
        return {
            "result": {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": f"the {kind} one", "version": "1.2"},
            }
        }
    if method == "server/discover" and modern and kind == "modern":
        info = {"name": "the modern one", "version": "2"}
        meta = {"io.modelcontextprotocol/serverInfo": info}
        return {"result": {"capabilities": {"tools": {}}, "_meta": meta}}
    if method == "tools/list" and (modern or kind != "modern"):
        if kind == "broken":
            return {"result": {"tools": [{"name": "bad", "inputSchema": BROKEN_SCHEMA}]}}
        first = "cursor" not in params
        return {
            "result": {"tools": TOOLS[:1], "nextCursor": "2"} if first else {"tools": TOOLS[1:]}
        }
    return {"error": {"code": -32601, "message": "no such method"}}


def main(kind: str) -> None:
    """Serve on the standard streams until their end."""
    for line in sys.stdin:
        question = json.loads(line)
        if "id" in question and kind != "silent":
            reply = {"jsonrpc": "2.0", "id": question["id"], **answer(kind, question)}
            print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
