"""An upstream that is reached by Streamable HTTP."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Coroutine, Mapping
from typing import Final

from mcp_envelope.core.document import DEFAULT_LIMITS, Limits

from .http_client import ClientLink
from .http_pool import Pool
from .http_relay import RelayLink
from .http_target import target_of

_FAREWELL: Final = 2.5
_NO_HEADERS: Final[Mapping[str, str]] = {}


class HttpUpstream:
    """A Streamable HTTP endpoint; implements :class:`~mcp_envelope.core.link.Upstream`.

    ``headers`` are the gateway's own for this endpoint (credentials, say) and win over what
    clients send; ConfigError if they, or ``url``, cannot be used. ``context`` is for servers
    whose certificates the system does not know.
    """

    def __init__(
        self,
        name: str,
        url: str,
        *,
        headers: Mapping[str, str] = _NO_HEADERS,
        connect_timeout: float = 10.0,
        limits: Limits = DEFAULT_LIMITS,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.name = name
        self._limits = limits
        self._patience = connect_timeout
        self._pool = Pool(target_of(url, headers), connect_timeout=connect_timeout, context=context)
        self._relay = RelayLink(self._pool, limits, self._aside)
        self._links: set[ClientLink] = set()
        self._asides: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<HttpUpstream {self.name!r} at {self._pool.shown}>"

    async def connect(self, *, stateless: bool) -> ClientLink:
        """A conversation of our own making; nothing is sent before its first message."""
        link = ClientLink(
            self._pool,
            self._limits,
            self._aside,
            stateless=stateless,
            patience=self._patience,
            gone=self._links.discard,
        )
        self._links.add(link)
        return link

    def relay(self) -> RelayLink:
        """The link for the clients of an HTTP door."""
        return self._relay

    async def close(self) -> None:
        """End the conversations that are still open, then all connections."""
        await asyncio.gather(*(link.close() for link in list(self._links)))
        if self._asides:
            _, late = await asyncio.wait(self._asides, timeout=_FAREWELL)
            for task in late:
                task.cancel()
        await self._pool.close()

    def _aside(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)
