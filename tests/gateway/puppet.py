"""An MCP server that does what the calls themselves tell it to: on pipes, and the wits of it.

``params.plan`` says what is answered: ``{"say": [base64, …], "then": "die" | "hang"}``, where
``@ID@`` and ``@TOKEN@`` in a message become the request's id and progress token, as they were
written, and ``@PAD@`` as many bytes as ``plan.pad`` says. ``plan.tools`` are the tools from then
on. Without ``plan.say`` the answers are those of a plain server. As a program it takes the file
to note each line in that it reads.

It imports next to nothing, for it is started often.
"""

from __future__ import annotations

import json
import os
import re
import sys
from binascii import a2b_base64
from typing import Any

_ID = re.compile(rb'"id":\s*("(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*)')
_TOKEN = re.compile(rb'"progressToken":\s*("(?:[^"\\]|\\.)*"|-?[0-9]+)')
_VERSION = "io.modelcontextprotocol/protocolVersion"
SERVED = ("2025-06-18", "2025-11-25", "2026-07-28")

_TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
_NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
_PLACE = {
    "type": "object",
    "properties": {"place": {"type": "string", "x-mcp-header": "Place"}},
}
TOOLS: list[dict[str, Any]] = [
    *(
        {"name": name, "inputSchema": {"type": "object"}}
        for name in ("free", "brief", "größe 測試")
    ),
    {"name": "picky", "inputSchema": _TEXT},
    {"name": "promising", "inputSchema": {"type": "object"}, "outputSchema": _NUMBER},
    {"name": "headed", "inputSchema": _PLACE},
]


def id_in(raw: bytes) -> bytes:
    """The id of a message as it is written; none stands before it that is not its own."""
    found = _ID.search(raw)
    return found[1] if found else b"null"


class Puppet:
    """What a server answers to a message. ``waiting`` holds the ids that are not answered yet."""

    def __init__(self) -> None:
        self.waiting: list[bytes] = []
        self.tools = TOOLS

    def react(self, raw: bytes) -> tuple[list[bytes], str]:
        """The messages to say, and what to do then: ``die``, ``hang`` or nothing."""
        message = json.loads(raw)
        method, params = message.get("method"), message.get("params") or {}
        if "id" not in message or method is None:
            return self._noticed(method), ""
        plan, id = params.get("plan"), id_in(raw)
        if plan and "tools" in plan:
            self.tools = plan["tools"]
        if plan and "say" in plan:
            then = plan.get("then", "")
            if then == "hang":
                self.waiting.append(id)
            pad = b"x" * plan.get("pad", 0)
            token = found[1] if (found := _TOKEN.search(raw)) else b"null"
            said = [a2b_base64(text) for text in plan.get("say", ())]
            filled = [text.replace(b"@ID@", id).replace(b"@TOKEN@", token) for text in said]
            return [text.replace(b"@PAD@", pad) for text in filled], then
        answer = self._plain(method, params)
        return [b'{"jsonrpc":"2.0","id":%b,%b}' % (id, answer)], ""

    def _noticed(self, method: str | None) -> list[bytes]:
        if method != "notifications/release":
            return []
        ids, self.waiting = self.waiting, []
        return [b'{"jsonrpc":"2.0","id":%b,"result":{"content":[]}}' % id for id in ids]

    def _plain(self, method: str, params: dict[str, Any]) -> bytes:
        version = params.get("_meta", {}).get(_VERSION)
        modern: dict[str, Any] = {"resultType": "complete"} if version else {}
        if version and version not in SERVED:
            data = {"supported": SERVED, "requested": version}
            return _error(-32022, "Unsupported protocol version", data)
        if method == "initialize":
            agreed = params["protocolVersion"]
            return _result({
                "protocolVersion": agreed,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "puppet", "version": "1"},
            })  # fmt: skip
        if method == "tools/list":
            return _result({"tools": self.tools, **modern})
        if method == "tools/call":
            return _result({"content": [{"type": "text", "text": "done"}], **modern})
        if method == "ping":
            return _result(modern)
        return _error(-32601, "Method not found", {"method": method, "vendor": None})


def _result(value: object) -> bytes:
    return b'"result":' + json.dumps(value).encode()


def _error(code: int, message: str, data: object) -> bytes:
    fault = {"code": code, "message": message, "data": data}
    return b'"error":' + json.dumps(fault).encode()


def main(log: str) -> None:
    """Serve on standard input and output."""
    puppet = Puppet()
    with open(log, "ab", buffering=0) as notes:  # noqa: PTH123 - pathlib is slow to import
        for line in sys.stdin.buffer:
            notes.write(line)
            said, then = puppet.react(line)
            for text in said:
                data = text + b"\n"
                while data:
                    data = data[os.write(1, data) :]
            if then == "die":
                os._exit(3)


if __name__ == "__main__":
    main(sys.argv[1])
