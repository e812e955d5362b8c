"""The composition root: settings in, a running gateway out."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, Protocol

from mcp_envelope.core.door import Desk
from mcp_envelope.core.entry import started, stopped
from mcp_envelope.core.errors import ConfigError, EnvelopeError
from mcp_envelope.core.ports import LedgerError
from mcp_envelope.transports.http import HttpDoor
from mcp_envelope.transports.http_answers import Gate
from mcp_envelope.transports.stdio import StdioDoor
from mcp_envelope.transports.stdio_pipes import StdioPipes, claim, fill_gaps

from .announcement import announce, warn_of_missing_programs
from .clockwork import Clockwork
from .ground import Ground, log
from .listener import Listener
from .logs import log_to_stderr
from .opening import check_names, several, single
from .parts import limits_of, upstream_of
from .recording import Recording, opened
from .reload import Reloader
from .route import Route
from .settings import HttpSettings, Settings
from .settings_changes import Changes

new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
with contextlib.suppress(ImportError):  # it is not made for Windows, and not needed
    from uvloop import new_event_loop

#: How long calls that are under way have, from being told to stop.
_STOPPING: Final = 2.0
#: New containers between two looks for circles: a payload of 10 KB alone may have some hundred.
_COLLECT_AFTER: Final = 20_000
_TIDY_EVERY: Final = 30.0


class _Desk(Desk, Protocol):
    """A desk that is also looked after and closed."""

    async def tidy(self) -> None: ...

    async def close(self) -> None: ...


class Gateway:
    """Everything behind the doors, put together from settings. Made by :meth:`open`."""

    def __init__(
        self,
        settings: Settings,
        ground: Ground,
        routes: dict[str, Route],
        desk: _Desk,
        record: Recording,
    ) -> None:
        self.record = record
        self.settings = settings
        self.ground = ground
        self.routes = routes
        self.desk = desk

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, settings: Settings) -> AsyncIterator[Gateway]:
        """A gateway without doors. ConfigError or EnvelopeError where it cannot be had."""
        limits = limits_of(settings)
        clockwork = Clockwork.deterministic() if settings.deterministic else Clockwork.real()
        async with opened(settings, clockwork) as record:
            ground = Ground(ledger=record.ledger, clockwork=clockwork, limits=limits)
            largest = settings.record.max_body_bytes
            routes = {
                each.name: Route(upstream_of(each, limits), each, largest=largest)
                for each in settings.upstreams
            }
            if len(routes) > 1 and not settings.namespace:
                await check_names(routes, ground)
            gateway = cls(settings, ground, routes, _desk(routes, settings, ground), record)
            await _say_started(ground, record.remarks)
            chores = (gateway._tidy(), record.watch(), record.retain())
            tasks = [asyncio.create_task(each) for each in chores]
            try:
                yield gateway
            finally:
                for task in tasks:
                    task.cancel()
                ends = [gateway.desk.close(), *(each.upstream.close() for each in routes.values())]
                for error in await asyncio.gather(*ends, return_exceptions=True):
                    if error is not None:
                        log.error("something did not end as it should", exc_info=error)
                await _say_stopped(ground)

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
    gc.freeze()  # what is loaded by now stays, and need not be looked through again
    gc.set_threshold(_COLLECT_AFTER, 10, 10)
    fill_gaps()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_serve(settings, reread))


async def _serve(settings: Settings, reread: Callable[[], Settings]) -> int:
    log_to_stderr(settings.log_level)
    descriptors = claim() if settings.http is None else (-1, -1)
    stopping = asyncio.Event()
    # From here to the very end: a signal that comes while we stop must not cut that short, or
    # it would leave children behind. Clients over stdio send one after closing our input.
    with _on_signals(stopping.set):
        async with Gateway.open(settings) as gateway:
            watching = asyncio.create_task(Reloader(settings, reread, gateway.apply).watch())
            try:
                if settings.http is not None:
                    await _serve_http(gateway, settings.http, stopping)
                else:
                    await _serve_stdio(gateway, descriptors, stopping)
            finally:
                watching.cancel()
    return 0


async def _serve_stdio(
    gateway: Gateway, descriptors: tuple[int, int], stopping: asyncio.Event
) -> None:
    limits = gateway.ground.limits
    pipes = await StdioPipes.open(*descriptors, limits.request)
    door = StdioDoor(gateway.desk, pipes, limits)
    announce(gateway.settings, gateway.record, "standard input and output")
    warn_of_missing_programs(gateway.settings)
    telling = asyncio.create_task(_when(stopping, door.stop))
    try:
        await door.serve()
    finally:
        telling.cancel()
    await pipes.close()


async def _when(event: asyncio.Event, act: Callable[[], object]) -> None:
    await event.wait()
    act()


async def _serve_http(gateway: Gateway, http: HttpSettings, stopping: asyncio.Event) -> None:
    door = HttpDoor(
        gateway.desk,
        gateway.gate,
        gateway.ground.limits,
        is_ready=lambda: "stopping" if stopping.is_set() else "",
    )
    async with Listener.open(door, http.host, http.port) as listener:
        announce(gateway.settings, gateway.record, f"{listener.url}/mcp")
        warn_of_missing_programs(gateway.settings)
        await stopping.wait()
        listener.stop_accepting()
        await door.stop(_STOPPING)


def _desk(routes: dict[str, Route], settings: Settings, ground: Ground) -> _Desk:
    if len(routes) > 1:
        return several(routes, ground, namespace=settings.namespace)
    return single(next(iter(routes.values())), ground)


async def _say_started(ground: Ground, remarks: tuple[str, ...]) -> None:
    facts = started(time=ground.now(), instance=ground.instance, warnings=remarks)
    try:
        await ground.ledger.append(facts)
    except EnvelopeError as error:
        raise LedgerError(error.message, hint=error.hint) from None


async def _say_stopped(ground: Ground) -> None:
    try:
        await ground.ledger.append(stopped(time=ground.now(), instance=ground.instance))
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


__all__ = ["ConfigError", "Gateway", "run"]
