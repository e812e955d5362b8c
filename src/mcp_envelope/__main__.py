"""``python -m mcp_envelope`` is the same as ``mcp-envelope``."""

from __future__ import annotations

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
