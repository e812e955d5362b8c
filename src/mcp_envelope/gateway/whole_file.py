"""Files that are there as a whole, on the disk, or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Final

_NO_LINKS: Final = frozenset(
    {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.EXDEV}
)


class WholeFile:
    """A file in the making, beside its later place. What is not finished is deleted.

    Without ``over`` a file that is there already stays as it is, and ``finish`` raises
    FileExistsError. OSError where it cannot be written.
    """

    def __init__(self, path: Path, *, mode: int = 0o600, over: bool = False) -> None:
        self.path = path
        self._over = over
        self._temporary = path.with_name(f".{path.name}.{token_hex(8)}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        self._file = open(os.open(self._temporary, flags, mode), "wb")  # noqa: PTH123, SIM115

    def write(self, data: bytes) -> object:
        """Add something to it."""
        return self._file.write(data)

    def finish(self) -> None:
        """Put it to the disk, then to its place."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        if self._over:
            self._temporary.replace(self.path)
        else:
            self._place()
        _to_disk(self.path.parent)

    def discard(self) -> None:
        """Let it be as if there had never been one; does nothing once it is finished."""
        with contextlib.suppress(OSError):  # a disk that is full complains once more
            self._file.close()
        self._temporary.unlink(missing_ok=True)

    def _place(self) -> None:
        try:
            os.link(self._temporary, self.path)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            # A disk without links: nothing better is to be had there.
            if os.path.lexists(self.path):
                raise FileExistsError(errno.EEXIST, "it is there already", str(self.path)) from None
            self._temporary.rename(self.path)

    def __enter__(self) -> WholeFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.discard()


def _to_disk(folder: Path) -> None:
    """Let the new name survive a loss of power, where folders can be told to."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
