"""A gateway in this process in front of several servers, and a raw client of it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.gateway import player, rig
from tests.gateway.rig import STATELESS, Book, Rig
from tests.gateway.wire import Endpoint, endpoint

from mcp_envelope.gateway import gathering, members, recording, subscriptions, talk
from mcp_envelope.gateway.app import Gateway
from mcp_envelope.gateway.settings import HttpSettings, Rules, Settings, UpstreamSettings

#: How long servers have in tests, and how soon they are tried again.
DEADLINE = 0.5
PAUSE = 0.1
ABSENT = "dev.mcp-envelope/absent"
Parts = Mapping[str, Mapping[str, Any]]


@dataclass
class Crew(Rig):
    """A rig with several servers. ``logs`` is what each of the children reads."""

    logs: dict[str, Path] = field(default_factory=dict)

    def head(self, message: Mapping[str, Any] | None) -> dict[str, str]:
        """The HTTP headers that a client sends with a message."""
        head = super().head(message)
        params = (message or {}).get("params") or {}
        for name in ("uri", "taskId"):
            if "mcp-method" in head and name in params:
                head["mcp-name"] = params[name]
        return head

    def read_by(self, server: str, method: str | None = None) -> list[Any]:
        """The messages that a server has read, of a method if one is named."""
        log = self.logs[server]
        lines = log.read_bytes().splitlines() if log.exists() else []
        found = [json.loads(line) for line in lines]
        return [each for each in found if method is None or each.get("method") == method]

    async def until(self, server: str, method: str | None, count: int = 1) -> list[Any]:
        """The same, once there are so many."""
        async with asyncio.timeout(5):
            while len(found := self.read_by(server, method)) < count:  # noqa: ASYNC110 - a file
                await asyncio.sleep(0.01)
        return found

    async def result(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """The result of a request."""
        said = await self.ask(self.request(method, params))
        assert "result" in said.message, said.raw
        return said.message["result"]

    async def error(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """The error that a request is answered with."""
        said = await self.ask(self.request(method, params))
        assert "error" in said.message, said.raw
        return said.message["error"]

    async def line(self) -> Any:
        """The next message on the stdio door."""
        async with asyncio.timeout(5):
            return json.loads(await self.source.readline())

    async def answer(self, id: object, result: object) -> None:
        """Answer a server's question."""
        message = {"jsonrpc": "2.0", "id": id, "result": result}
        await self.send(json.dumps(message).encode(), message)


@asynccontextmanager
async def crew(
    door: str,
    revision: str,
    folder: Path,
    parts: Parts,
    *,
    hands: bool = True,
    over: str = "child",
    **given: Any,
) -> AsyncIterator[Crew]:
    """A crew. ``parts`` says what each server plays; those named in ``given`` as settings."""
    book = Book()
    async with AsyncExitStack() as stack:
        stack.enter_context(patch.object(recording, "open_ledger", lambda url, **_: book))
        stack.enter_context(patch.object(talk, "_GRACE", 0.05))
        stack.enter_context(patch.object(members, "PAUSE", PAUSE))
        for module in (gathering, subscriptions, members):
            stack.enter_context(patch.object(module, "DEADLINE", DEADLINE))
        logs = {name: folder / f"{name}.heard" for name in parts}
        found = []
        for name, part in parts.items():
            where: dict[str, Any]
            if part.get("over", over) == "child":
                file = folder / f"{name}.json"
                file.write_text(json.dumps(part), encoding="utf-8")
                program = (sys.executable, "-I", "-S", player.__file__)
                where = {"command": (*program, str(logs[name]), str(file))}
            else:
                end: Endpoint = await stack.enter_async_context(endpoint())
                end.puppet = player.Player(dict(part))
                where = {"url": f"http://127.0.0.1:{end.port}/mcp"}
            rules = Rules(retries=0, **part.get("rules", {}))
            found.append(UpstreamSettings(name=name, grace=0.5, rules=rules, **where))
        http = HttpSettings() if door == "http" else None
        settings = Settings(upstreams=tuple(found), http=http, ledger="memory:", **given)
        gateway = await stack.enter_async_context(Gateway.open(settings))
        made = Crew(door, "child", revision, gateway, book, folder, Endpoint(), logs=logs)
        await (rig._open_http if door == "http" else rig._open_stdio)(made, stack)
        if hands and revision != STATELESS:
            await made.shake_hands()
        yield made


def tools(*names: str, **more: Any) -> str:
    """A page of tools, as it is written."""
    found = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    return '"result":' + json.dumps({"tools": found, "resultType": "complete", **more})


def page(what: str, *entries: Mapping[str, Any], **more: Any) -> str:
    """A page of a list."""
    return '"result":' + json.dumps({what: entries, "resultType": "complete", **more})
