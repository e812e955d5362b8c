#!/usr/bin/env python3
"""Renews tools/constraints.txt: the newest versions that pyproject.toml allows, all named.

Usage::

    python3 tools/pin.py
"""

from __future__ import annotations

import environments

HEADER = """\
# Exact versions of everything that the development environments hold, for every platform and
# Python of the project. Made by `python3 tools/pin.py`; why not a lock file: docs/adr/0004.
"""


def main() -> int:
    """Write the file anew; the exit code is uv's."""
    uv = environments.uv()
    if uv is None:
        raise SystemExit("uv resolves the versions, and it cannot be had here")
    target = environments.CONSTRAINTS
    groups = ["--group", "dev", "--group", "tools"]
    plain = ["--no-annotate", "--no-header", "--no-emit-index-url", "--quiet"]
    how = ["--universal", "--python-version", "3.11", "--upgrade", *plain]
    command = [str(uv), "pip", "compile", "pyproject.toml", *groups, *how, "-o", str(target)]
    code = environments.run(command)
    if code == 0:
        target.write_text(HEADER + target.read_text(encoding="utf-8"), encoding="utf-8")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
