"""A process whose children write a ledger, one after the other, and are killed at any moment.

``mortal.py URL DURABILITY TIMES SEED``: what a child was told is written is in the file that is its
standard output: a line ``seq digest`` each.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time

from tests.core.facts import some_facts
from tests.stores.sealed import writing

from mcp_envelope.stores import open_ledger


async def write(url: str, durability: str) -> None:
    """Write until killed: groups of eight, and a checkpoint after each thirty lines."""
    how = writing(30, durability="power" if durability == "power" else "process")
    ledger = open_ledger(url, writing=how)

    async def tell() -> None:
        while True:
            receipt = await ledger.append(some_facts(), [b'{"a":1}'])
            os.write(1, f"{receipt.seq} {receipt.digest}\n".encode())

    await asyncio.gather(*(tell() for _ in range(8)))


def main(url: str, durability: str, times: int, seed: int) -> None:
    """Have children write, and kill them."""
    chance = random.Random(seed)
    for turn in range(times):
        child = os.fork()
        if child == 0:
            asyncio.run(write(url, durability))
        # Some are killed before they are ready, some have the time on any machine.
        time.sleep(chance.uniform(0.005, 0.08) if turn % 4 else 0.3)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
