"""The command line, with a clock that goes back by an hour once the file that CLOCK names is there.

Only what tells the time of day does so: a machine's steady clock never goes back.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from mcp_envelope.cli import main as command_line

HOUR = 3_600
_real: Callable[[], int] = time.time_ns


def _time_ns() -> int:
    return _real() - (HOUR * 1_000_000_000 if os.path.exists(os.environ["CLOCK"]) else 0)  # noqa: PTH110 - quickly


def main() -> int:
    """Run the command line."""
    time.time_ns = _time_ns
    time.time = lambda: _time_ns() / 1e9
    return command_line(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
