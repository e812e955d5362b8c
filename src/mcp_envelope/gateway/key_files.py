"""Files that hold keys: whole or not there, never overwritten by chance, closed to others."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .whole_file import WholeFile

if sys.platform != "win32":
    import fcntl

_MOST: Final = 4_096
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class KeyFileError(OSError):
    """A key that cannot be used or written as things stand. It never says what the key is."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.message = message
        self.hint = hint


def read_private(path: Path) -> str | None:
    """The text of a file that nobody but its owner can read; None if there is none."""
    try:
        # Without O_NONBLOCK, opening a pipe would wait for somebody to write into it.
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise KeyFileError(
            f"{path} cannot be read: {error.strerror}", hint="it must belong to whoever runs this"
        ) from None
    try:
        _check_closed(path, os.fstat(fd))
        data = os.read(fd, _MOST + 1)
    except OSError as error:
        if isinstance(error, KeyFileError):
            raise
        raise KeyFileError(f"{path} cannot be read: {error.strerror}") from None
    finally:
        os.close(fd)
    if len(data) > _MOST:
        return ""
    return data.decode("ascii", "replace")


def _check_closed(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise KeyFileError(f"{path} is no regular file", hint="move it away")
    if sys.platform != "win32" and found.st_mode & _OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        raise KeyFileError(
            f"{path} is open to others (mode {mode:04o}), and what they know is no secret",
            hint=f"first chmod 600 {path}; then, if others may have read it, mcp-envelope keys new "
            f"--key-file {path}",
        )


def write_anew(path: Path, text: str, mode: int) -> bool:
    """Write a line into a file that is not there yet; False, and nothing done, if it is."""
    try:
        _write(path, text, mode, over=False)
    except FileExistsError:
        return False
    return True


def write_over(path: Path, text: str, mode: int) -> None:
    """Write a line into a file, replacing what was in it at one blow."""
    _write(path, text, mode, over=True)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep others of us away from the keys in a folder, as far as its disk has locks."""
    if sys.platform == "win32":
        yield
        return
    fd = -1
    with contextlib.suppress(OSError):
        fd = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if fd >= 0:
            os.close(fd)


def _write(path: Path, text: str, mode: int, *, over: bool) -> None:
    try:
        with WholeFile(path, mode=mode, over=over) as file:
            file.write(f"{text}\n".encode("ascii"))
            file.finish()
    except FileExistsError:
        raise
    except OSError as error:
        raise KeyFileError(
            f"{path} cannot be written: {error.strerror}",
            hint="see to its folder, its permissions and the room on the disk",
        ) from None
