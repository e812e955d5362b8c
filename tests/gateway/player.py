"""One of several MCP servers behind one door: a puppet with a part of its own, told by a file.

The part is JSON: ``answers`` maps methods to what is answered, written just so (a list has the
pages); ``capabilities``, ``instructions``; ``silent`` names methods that are never answered,
``alive`` a file without which it ends at once, ``era`` is ``legacy``, ``modern``, or ``locked``
for one that stays in that of its first request.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

if __name__ == "__main__":  # pathlib is slow to import
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(__file__))))  # noqa: PTH120

from tests.gateway.puppet import Puppet, id_in

_VERSION = "io.modelcontextprotocol/protocolVersion"
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


class Player(Puppet):
    """A puppet that plays its part."""

    def __init__(self, part: dict[str, Any]) -> None:
        super().__init__()
        self.part = part
        self.era = {"legacy": "legacy", "modern": "modern"}.get(part.get("era", ""), "")

    def react(self, raw: bytes) -> tuple[list[bytes], str]:
        """The messages to say, and what to do then."""
        message = json.loads(raw)
        method, params = message.get("method"), message.get("params") or {}
        if "id" in message and method is not None and not params.get("plan"):
            if method in self.part.get("silent", ()):
                return [], ""
            said = self._in_part(method, params)
            if said is not None:
                whole = b'{"jsonrpc":"2.0","id":%b,%b}' % (id_in(raw), said.encode())
                return [*self._before(method, message), whole][: self._most(method)], ""
        if method in self.part.get("deadly", ()):
            return [], "die"
        return super().react(raw)

    def _most(self, method: str) -> int:
        return 1 if method == "subscriptions/listen" else 9

    def _before(self, method: str, message: dict[str, Any]) -> list[bytes]:
        if method != "subscriptions/listen":
            return []
        wanted = message["params"].get("notifications", {})
        agreed = {name: wanted[name] for name in wanted if name in self.part["listens"]}
        params = {"_meta": {_SUBSCRIPTION: message["id"]}, "notifications": agreed}
        told = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged"}
        return [json.dumps({**told, "params": params}).encode()]

    def _in_part(self, method: str, params: dict[str, Any]) -> str | None:
        is_modern = _VERSION in params.get("_meta", {}) and method != "initialize"
        if self.part.get("era") == "locked" and not self.era:
            self.era = "modern" if is_modern else "legacy"
        if self.era == "legacy" and is_modern:
            return '"error":{"code":-32601,"message":"Method not found"}'
        if self.era == "modern" and not is_modern:
            data = '{"supported":["2026-07-28"],"requested":"x"}'
            return f'"error":{{"code":-32022,"message":"Unsupported","data":{data}}}'
        if method == "subscriptions/listen":
            return "" if "listens" in self.part else None
        if method in ("initialize", "server/discover"):
            return self._introduction(params, is_modern=is_modern)
        found = self.part.get("answers", {}).get(method)
        if isinstance(found, list):
            return str(found[int(params.get("cursor", 0))])
        return None if found is None else str(found)

    def _introduction(self, params: dict[str, Any], *, is_modern: bool) -> str:
        result: dict[str, Any] = {
            "capabilities": self.part.get("capabilities", {"tools": {}}),
        }
        if "instructions" in self.part:
            result["instructions"] = self.part["instructions"]
        if is_modern:
            caching = self.part.get("caching", {"ttlMs": 0, "cacheScope": "private"})
            result |= {"resultType": "complete", "supportedVersions": ["2026-07-28"], **caching}
        else:
            result["protocolVersion"] = self.part.get("version", params.get("protocolVersion"))
            result["serverInfo"] = {"name": "player", "version": "1"}
        return '"result":' + json.dumps(result)


def main(log: str, path: str) -> None:
    """Serve on standard input and output."""
    with open(path, "rb") as file:  # noqa: PTH123
        player = Player(json.load(file))
    alive = player.part.get("alive")
    if alive and not os.path.exists(alive):  # noqa: PTH110
        os._exit(1)
    with open(log, "ab", buffering=0) as notes:  # noqa: PTH123
        for line in sys.stdin.buffer:
            notes.write(line)
            said, then = player.react(line)
            for text in said:
                os.write(1, text + b"\n")
            if then == "die":
                os._exit(3)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
