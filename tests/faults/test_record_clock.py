"""A clock that goes back: the ledger goes on, and says so to whoever verifies it."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from tests.faults.backwards import HOUR
from tests.faults.crowd import Books, Crowd
from tests.faults.ledgers import SCHEMES, lines_at
from tests.faults.scene import STDIO, run, scene


@pytest.mark.parametrize("scheme", SCHEMES)
def test_clock_goes_back(scheme: str, tmp_path: Path) -> None:
    """By an hour, under load: no duration is negative, no line is refused, the chain holds."""

    async def work() -> None:
        async with scene(tmp_path, scheme) as here:
            back = tmp_path / "back"
            clock = {"CLOCK": str(back)}
            module = "tests.faults.backwards"
            await here.start("--", *STDIO, module=module, environment=clock)
            crowd = Crowd()
            clients = [asyncio.create_task(crowd.over_http(here.port)) for _ in range(6)]
            await crowd.until_ok(50)
            back.touch()
            await crowd.until_ok(150)
            crowd.enough = True
            await asyncio.gather(*clients)
            assert await here.stop() == 0
            await here.start("--", *STDIO, module=module, environment=clock)
            assert await here.stop() == 0
            assert set(crowd.outcomes()) == {"ok"}
            books = Books(lines_at(here.ledger))
            books.compare(crowd, here.notes("got"))
            times = [datetime.fromisoformat(entry["time"]) for entry in books.entries]
            steps = [after - before for before, after in pairwise(times)]
            assert sum(step < -timedelta(seconds=HOUR / 2) for step in steps) == 1
            assert sum(step < timedelta(seconds=-1) for step in steps) == 1
            took = [entry["duration_ms"] for entry in books.settled.values()]
            assert all(0 <= each < 10_000 for each in took)
            assert re.search(r"\bback", await here.verified("--strict"))

    run(work())
