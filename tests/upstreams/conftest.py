"""Both event loops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
import uvloop
from tests.upstreams.peers import open_descriptors

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Runs a coroutine on one of the loops, within twenty seconds; nothing may be left open."""
    factory = asyncio.new_event_loop if request.param == "asyncio" else uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as first:
        first.run(asyncio.sleep(0))  # libuv opens a pipe with its first loop, and keeps it
    before = open_descriptors()

    def run(work: Coroutine[Any, Any, None]) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(20):
                await work

        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(bounded())

    yield run
    assert not open_descriptors() - before, "file descriptors were left open"
