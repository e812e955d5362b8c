"""The composition root: settings in, a running gateway out."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, Protocol

from mcp_envelope.core.door import Desk
from mcp_envelope.core.entry import started, stopped
from mcp_envelope.core.errors import ConfigError, EnvelopeError
from mcp_envelope.stores import open_ledger
from mcp_envelope.transports.http import HttpDoor
from mcp_envelope.transports.http_answers import Gate
from mcp_envelope.transports.stdio import StdioDoor
from mcp_envelope.transports.stdio_pipes import StdioPipes, claim

from .announcement import announce
from .common import Common, log
from .listener import Listener
from .opening import check_names, several, single
from .parts import ledger_name_of, limits_of, upstream_of
from .reload import Reloader
from .route import Route
from .settings import HttpSettings, Settings
from .settings_changes import Changes

new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
with contextlib.suppress(ImportError):  # it is not made for Windows, and not needed
    from uvloop import new_event_loop

#: How long calls that are under way have, from being told to stop.
_STOPPING: Final = 2.0
_TIDY_EVERY: Final = 30.0


class _Desk(Desk, Protocol):
    """A desk that is also looked after and closed."""

    async def tidy(self) -> None: ...

    async def close(self) -> None: ...


class Gateway:
    """Everything behind the doors, put together from settings. Made by :meth:`open`."""

    def __init__(
        self, settings: Settings, common: Common, routes: dict[str, Route], desk: _Desk
    ) -> None:
        self.settings = settings
        self.common = common
        self.routes = routes
        self.desk = desk

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, settings: Settings) -> AsyncIterator[Gateway]:
        """A gateway without doors. ConfigError or EnvelopeError where it cannot be had."""
        limits = limits_of(settings)
        common = Common(
            ledger=open_ledger(settings.ledger, name=ledger_name_of(settings)), limits=limits
        )
        try:
            routes = {
                each.name: Route(upstream_of(each, limits), each) for each in settings.upstreams
            }
            if len(routes) > 1 and not settings.namespace:
                await check_names(routes, common)
            gateway = cls(settings, common, routes, _desk(routes, settings, common))
            await common.ledger.append(started(time=common.now(), instance=common.instance))
            tidying = asyncio.create_task(gateway._tidy())
            try:
                yield gateway
            finally:
                tidying.cancel()
                await gateway.desk.close()
                await asyncio.gather(*(route.upstream.close() for route in routes.values()))
                await _say_stopped(common)
        finally:
            await common.ledger.close()

    def gate(self) -> Gate:
        """Who may come in over HTTP."""
        http = self.settings.http
        return Gate(frozenset(http.hosts), frozenset(http.origins)) if http else Gate()

    def apply(self, settings: Settings, new: Changes) -> None:
        """Take over what may change while the gateway runs."""
        self.settings = settings
        logging.getLogger().setLevel(settings.log_level.upper())
        for each in settings.upstreams:
            if each.name in self.routes:
                self.routes[each.name].settings = each

    async def _tidy(self) -> None:
        while True:
            await asyncio.sleep(_TIDY_EVERY)
            await self.desk.tidy()


def run(settings: Settings, *, reread: Callable[[], Settings]) -> int:
    """Serve until the client ends its input or a signal comes; the exit code.

    ``reread`` reads the settings anew, when their file has changed.
    """
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_serve(settings, reread))


async def _serve(settings: Settings, reread: Callable[[], Settings]) -> int:
    _log_to_stderr(settings)
    descriptors = claim() if settings.http is None else (-1, -1)
    async with Gateway.open(settings) as gateway:
        watching = asyncio.create_task(Reloader(settings, reread, gateway.apply).watch())
        try:
            if settings.http is not None:
                await _serve_http(gateway, settings.http)
            else:
                await _serve_stdio(gateway, descriptors)
        finally:
            watching.cancel()
    return 0


async def _serve_stdio(gateway: Gateway, descriptors: tuple[int, int]) -> None:
    limits = gateway.common.limits
    pipes = await StdioPipes.open(*descriptors, limits.request)
    door = StdioDoor(gateway.desk, pipes, limits)
    announce(gateway.settings, gateway.common.ledger.url, "standard input and output")
    with _on_signals(door.stop):
        await door.serve()
    await pipes.close()


async def _serve_http(gateway: Gateway, http: HttpSettings) -> None:
    stopping = asyncio.Event()
    door = HttpDoor(
        gateway.desk,
        gateway.gate,
        gateway.common.limits,
        is_ready=lambda: "stopping" if stopping.is_set() else "",
    )
    async with Listener.open(door, http.host, http.port) as listener:
        announce(gateway.settings, gateway.common.ledger.url, f"{listener.url}/mcp")
        with _on_signals(stopping.set):
            await stopping.wait()
        listener.stop_accepting()
        await door.stop(_STOPPING)


def _desk(routes: dict[str, Route], settings: Settings, common: Common) -> _Desk:
    if len(routes) > 1:
        return several(routes, common, namespace=settings.namespace)
    return single(next(iter(routes.values())), common)


async def _say_stopped(common: Common) -> None:
    try:
        await common.ledger.append(stopped(time=common.now(), instance=common.instance))
    except EnvelopeError as error:
        log.error("the end could not be recorded: %s", error)


@contextlib.contextmanager
def _on_signals(stop: Callable[[], object]) -> Any:
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop)
    try:
        yield
    finally:
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(name)


def _log_to_stderr(settings: Settings) -> None:
    logging.basicConfig(
        stream=sys.stderr,
        level=settings.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )


__all__ = ["ConfigError", "Gateway", "run"]
