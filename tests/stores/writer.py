"""A process that writes a ledger and tells of each line once it is acknowledged.

``writer.py URL`` writes until it is killed. ``writer.py URL LIMIT`` may make no file larger than
LIMIT bytes; once that has made ten appends fail it may, and writes three more lines.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys

from tests.core.facts import some_facts

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.stores import open_ledger


async def write(url: str, limit: int | None) -> None:
    """Write, and tell."""
    ledger = open_ledger(url)
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    failed = after = 0
    while after < 3:
        try:
            receipt = await ledger.append(some_facts(warnings=("w" * 200,) * 5))
        except EnvelopeError as error:
            os.write(1, f"failed {error.code} {error.message}\n".encode())
            failed += 1
            if failed == 10:
                free = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
                resource.setrlimit(resource.RLIMIT_FSIZE, free)
        else:
            os.write(1, f"{receipt.seq} {receipt.digest}\n".encode())
            after += failed >= 10
    await ledger.close()


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None))
