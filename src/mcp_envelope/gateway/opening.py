"""How conversations begin: with one upstream, or with several at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Final

from mcp_envelope import __version__
from mcp_envelope.core.errors import ConfigError
from mcp_envelope.core.frame import frame_of

from .assembly import Assembly
from .gathering import gather, tell_of
from .ground import Ground, log
from .lazy import LazyLink
from .members import Member
from .route import Route
from .routing import Routing
from .sessions import Kept, RelayedSessions, Sessions
from .talk import Talk

_OPENING: Final = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "mcp-envelope", "version": __version__},
    },
}


def single(route: Route, ground: Ground) -> Sessions:
    """The desk of a gateway with one upstream."""

    def opener(*, stateless: bool, door: str, peer: str, session: str | None) -> Kept:
        link = LazyLink(route, stateless=stateless)
        return Talk(route, link, ground, door=door, peer=peer, shared=stateless, session=session)

    relay = route.upstream.relay()
    if relay is not None:
        return RelayedSessions(route, ground, opener, relay)
    return Sessions(ground, opener, idle=route.settings.idle)


def several(routes: Mapping[str, Route], ground: Ground, *, namespace: bool) -> Sessions:
    """The desk of a gateway with several upstreams, which look like one server."""

    def opener(*, stateless: bool, door: str, peer: str, session: str | None) -> Kept:
        members = {
            name: Member(route, ground, stateless=stateless, door=door, peer=peer)
            for name, route in routes.items()
        }
        routing = Routing(namespace=namespace)
        for member in members.values():
            member.talk.on_result = partial(routing.note_result, member)
        return Assembly(
            members,
            routing,
            ground,
            door=door,
            peer=peer,
            stateless=stateless,
            session=session,
        )

    return Sessions(ground, opener, idle=max(route.settings.idle for route in routes.values()))


async def check_names(routes: Mapping[str, Route], ground: Ground) -> None:
    """Refuse to start where two upstreams have a tool or prompt of one name (ConfigError)."""
    members = [
        Member(route, ground, stateless=False, door="start", peer="gateway")
        for route in routes.values()
    ]
    try:
        for what in ("tools", "prompts"):
            await _check_names(members, what)
    finally:
        await asyncio.gather(*(member.close() for member in members))


async def _check_names(members: list[Member], what: str) -> None:
    async def names(member: Member) -> list[str]:
        await member.greet(frame_of(_OPENING), lambda: True)
        if not member.can(what):
            return []
        return [
            entry["name"]
            async for page in member.pages(f"{what}/list", {})
            for entry in page.value.get(what, [])
            if isinstance(entry, dict) and isinstance(entry.get("name"), str)
        ]

    found, failed = await gather(members, names)
    if failed:
        absent = ", ".join(tell_of(failed))
        log.warning("the names of %s could not be compared at the start", absent)
    owner: dict[str, str] = {}
    for server, its in found.items():
        for name in its:
            if owner.setdefault(name, server) != server:
                raise ConfigError(
                    f"{owner[name]} and {server} both have a {what[:-1]} called {name[:100]!r}",
                    hint="set namespace = true, or leave one of the servers out",
                )
