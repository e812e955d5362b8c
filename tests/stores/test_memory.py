"""The ledger in memory."""

from __future__ import annotations

import asyncio
import json

from tests.core.facts import some_facts

from mcp_envelope.stores.memory import MemoryLedger


def test_only_the_newest_lines_are_kept() -> None:
    """So a gateway that runs for weeks does not fill the memory; `seq` goes on all the same."""
    ledger = MemoryLedger(keep=3)

    async def write() -> None:
        for _ in range(10):
            await ledger.append(some_facts())

    asyncio.run(write())
    assert [json.loads(text)["seq"] for text in ledger.lines] == [7, 8, 9]
