"""Schema files: found without leaving their folder, read strictly, watched by their stamps."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, TypeAlias

from mcp_envelope.core.document import parse
from mcp_envelope.core.errors import ConfigError, EnvelopeError

#: What changes when a file does: time of last change, size, inode, time of last status change.
#: None where there is no such file.
Stamp: TypeAlias = tuple[int, int, int, int] | None


def stamp_of(path: Path) -> Stamp:
    """A file's stamp, which costs a system call and nothing more."""
    try:
        found = path.stat()
    except (OSError, ValueError):  # absent, in no reachable folder, or no possible name
        return None
    return _stamp(found)


def inside(folder: Path, name: str) -> Path | None:
    """The file of that name in a folder or below it; None if the name leads out of it.

    Links are followed, and must not lead out either.
    """
    steps = name.split("/")
    if "\\" in name or any(step in ("", ".", "..") or "\0" in step for step in steps):
        return None
    path = folder.joinpath(*steps)
    try:
        return path if path.resolve().is_relative_to(folder.resolve()) else None
    except (OSError, ValueError, RuntimeError):  # a name that no file can have, a loop of links
        return None


def read_schema(path: Path, most: int) -> tuple[Any, Stamp]:
    """A schema file's value, and the stamp of what was read. Raises ConfigError, naming it."""
    try:
        # Without O_NONBLOCK, opening a pipe would wait for somebody to write into it.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(handle, "rb") as file:  # noqa: PTH123  (a handle, not a path)
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise ConfigError(f"schema {path} is no regular file")
            raw = file.read(most + 1)
    except OSError as error:
        raise ConfigError(f"schema {path} cannot be read: {error.strerror}") from None
    if len(raw) > most:
        raise ConfigError(f"schema {path} has more than {most} bytes", hint="split it up")
    try:
        return parse(raw).value, _stamp(found)
    except EnvelopeError as error:
        raise ConfigError(f"schema {path} is not strict JSON: {error}") from None


def _stamp(found: os.stat_result) -> Stamp:
    return (found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns)
