"""The command line of a gateway that is wrong: it records a call a little after it was made."""

from __future__ import annotations

import asyncio
import sys

from mcp_envelope.cli import main as command_line
from mcp_envelope.pipeline.record import Record

_HASTE = 0.03
_admit = Record.admit
_later: set[asyncio.Task[None]] = set()


async def _admit_later(record: Record) -> None:
    async def wait() -> None:
        await asyncio.sleep(_HASTE)
        await _admit(record)

    task = asyncio.create_task(wait())
    _later.add(task)
    task.add_done_callback(_later.discard)


def main() -> int:
    """Run the command line."""
    Record.admit = _admit_later  # type: ignore[assignment,method-assign]
    return command_line(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
