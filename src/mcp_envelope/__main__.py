"""``python -m mcp_envelope`` is the same as ``mcp-envelope``."""

from __future__ import annotations

import importlib
import sys
from typing import Final

#: As a shell has it of a program that an interrupt ended.
_INTERRUPTED: Final = 130


def main() -> int:
    """Run the command line. An interrupt is quiet also while there is nothing but imports yet."""
    try:
        code: int = importlib.import_module("mcp_envelope.cli").main()
    except KeyboardInterrupt:
        return _INTERRUPTED
    return code


if __name__ == "__main__":
    sys.exit(main())
