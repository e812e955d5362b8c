"""Asking an upstream who it is: what `doctor` does, over the same road as every call.

``initialize`` as of 2025-11-25 first; a server that does not know it is asked
``server/discover`` as of 2026-07-28.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import mcp_envelope as me
from mcp_envelope.core.errors import ConfigError, EnvelopeError
from mcp_envelope.core.frame import Frame, frame_of
from mcp_envelope.core.link import Link, Reply, Upstream
from mcp_envelope.core.schema import compile_schema

_STATEFUL: Final = "2025-11-25"
_STATELESS: Final = "2026-07-28"
_META: Final = "io.modelcontextprotocol/"
_CLIENT: Final = {"name": "mcp-envelope doctor", "version": me.__version__}
_MOST_PAGES: Final = 200
_HEAD: Final[Mapping[str, str]] = {}
#: Statuses of an answer that is none, with what to do about them.
_STATUSES: Final = {
    401: "put an authorization header into headers",
    403: "put an authorization header into headers, or ask for access",
    404: "check the path of the URL",
    405: "check the path of the URL",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What an upstream says of itself. ``unusable`` are tools' schemas that cannot be checked."""

    server: str
    version: str
    revision: str
    tools: tuple[str, ...]
    schemas: int
    unusable: Mapping[str, str]
    seconds: float


class _RefusedError(Exception):
    """The server answered with an error; it may be of the other era."""

    def __init__(self, why: EnvelopeError) -> None:
        super().__init__(why.message)
        self.why = why


async def probe(upstream: Upstream, *, wait: float) -> Probed:
    """Ask, and close the upstream.

    EnvelopeError if it cannot be reached or does not make sense; TimeoutError if it has not
    said everything within ``wait`` seconds.
    """
    began = time.monotonic()
    try:
        async with asyncio.timeout(wait):
            try:
                talk = await _Talk.begin(upstream, _STATEFUL)
            except _RefusedError as refused:
                try:
                    talk = await _Talk.begin(upstream, _STATELESS)
                except _RefusedError:
                    raise refused.why from None
            tools = await talk.tools()
    finally:
        await upstream.close()
    usable, unusable = _compiled(tools)
    return Probed(
        server=talk.info("name"),
        version=talk.info("version"),
        revision=talk.revision,
        tools=tuple(str(tool.get("name")) for tool in tools),
        schemas=usable,
        unusable=unusable,
        seconds=time.monotonic() - began,
    )


class _Talk:
    """A short conversation with an upstream."""

    def __init__(self, link: Link, revision: str) -> None:
        self.revision = revision
        self._link = link
        self._modern = revision == _STATELESS
        self._said: dict[str, Any] = {}
        self._count = 0

    @classmethod
    async def begin(cls, upstream: Upstream, revision: str) -> _Talk:
        """Agree on a revision."""
        talk = cls(await upstream.connect(stateless=revision == _STATELESS), revision)
        if talk._modern:
            talk._said = await talk._ask("server/discover", {})
            return talk
        params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": _CLIENT}
        talk._said = await talk._ask("initialize", params)
        talk.revision = str(talk._said.get("protocolVersion"))
        done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await (await talk._link.send(frame_of(done), _HEAD)).close()
        return talk

    def info(self, name: str) -> str:
        """The server's name or version, as it says; empty if it does not."""
        found = self._said.get("serverInfo")
        if not isinstance(found, dict):
            meta = self._said.get("_meta")
            found = meta.get(f"{_META}serverInfo") if isinstance(meta, dict) else None
        value = found.get(name) if isinstance(found, dict) else None
        return value if isinstance(value, str) else ""

    async def tools(self) -> list[dict[str, Any]]:
        """All tools, over all pages; none of a server that offers none."""
        offered = self._said.get("capabilities")
        if not isinstance(offered, dict) or "tools" not in offered:
            return []
        found: list[dict[str, Any]] = []
        cursor: object = None
        for _ in range(_MOST_PAGES):
            page = await self._ask_sure("tools/list", {"cursor": cursor} if cursor else {})
            listed = page.get("tools")
            if not isinstance(listed, list):
                raise EnvelopeError("its tools/list has no list of tools", hint="mend the server")
            found += [tool for tool in listed if isinstance(tool, dict)]
            cursor = page.get("nextCursor")
            if not cursor:
                break
        return found

    async def _ask_sure(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        try:
            return await self._ask(method, params)
        except _RefusedError as refused:
            raise refused.why from None

    async def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a request; _RefusedError for an error, or an answer that is none."""
        self._count += 1
        if self._modern:
            meta = {
                f"{_META}protocolVersion": _STATELESS,
                f"{_META}clientInfo": _CLIENT,
                f"{_META}clientCapabilities": {},
            }
            params = {**params, "_meta": meta}
        question = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        reply = await self._link.send(frame_of(question), _HEAD)
        try:
            answer = await self._answer(reply)
        finally:
            await reply.close()
        if answer is None:
            hint = _STATUSES.get(reply.status, "look into the server's log")
            said = f"HTTP {reply.status}" if reply.status != 200 else "no answer"
            raise _RefusedError(EnvelopeError(f"{said} to {method}", hint=hint))
        error = answer.value.get("error")
        if error is not None:
            said = f"{error.get('code')!r:.20}, {error.get('message')!r:.200}"
            why = EnvelopeError(
                f"it answered {method} with an error: {said}", hint="ask its author"
            )
            raise _RefusedError(why)
        result = answer.value.get("result")
        if not isinstance(result, dict):
            raise EnvelopeError(f"its result of {method} is no object", hint="mend the server")
        return result

    async def _answer(self, reply: Reply) -> Frame | None:
        found = None
        async for item in reply:
            frame = item.frame
            if frame is not None and frame.shape == "response":
                found = frame
        return found


def _compiled(tools: list[dict[str, Any]]) -> tuple[int, dict[str, str]]:
    """How many schemas of tools can be used, and why the others cannot."""
    usable = 0
    unusable: dict[str, str] = {}
    for tool in tools:
        for member in ("inputSchema", "outputSchema"):
            if member not in tool:
                continue
            name = f"{tool.get('name')}.{member}"
            try:
                compile_schema(tool[member], name=member)
                usable += 1
            except (ConfigError, EnvelopeError) as error:
                unusable[name] = error.message
    return usable, unusable
