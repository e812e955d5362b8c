"""Bodies beside a ledger of JSON Lines: ``PATH.bodies``, itself JSON Lines.

Each is ``{"digest":"sha256:HEX","body":…}``; what is torn there is found by its digest.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from mcp_envelope.core.ports import LedgerError

if sys.platform != "win32":
    import fcntl

# Of so many of the newest it is known that they are there already.
_KNOWN: Final = 10_000


def bodies_of(path: Path) -> Path:
    """Where the bodies of a ledger are: beside the file itself, whatever links lead to it."""
    real = path.resolve()
    return real.with_name(real.name + ".bodies")


def force(fd: int) -> None:
    """Wait until the disk has it."""
    if sys.platform == "darwin":
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


class Bodies:
    """The file that bodies are added to; made once there is one."""

    def __init__(self, path: Path, *, forces: bool) -> None:
        self._path = bodies_of(path)
        self._forces = forces
        self._known: dict[str, None] = {}
        self._fd: int | None = None
        # Whatever the last writer left there may lack its newline.
        self._is_torn = self._path.exists()

    def write(self, bodies: Sequence[tuple[str, int, bytes]]) -> None:
        """Add what is not there yet. OSError if it cannot be."""
        new = {digest: body for digest, _, body in bodies if digest not in self._known}
        if not new:
            return
        if self._fd is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            self._fd = os.open(self._path, flags, 0o600)
        data = b"".join(_line(digest, body) for digest, body in new.items())
        if self._is_torn:
            data = b"\n" + data
        self._is_torn = True
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]
        if self._forces:
            force(self._fd)
        self._is_torn = False
        self._known.update(dict.fromkeys(new))
        while len(self._known) > _KNOWN:
            del self._known[next(iter(self._known))]

    def close(self) -> None:
        """Let go of it."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def body_of(path: Path, digest: str) -> bytes | None:
    """What is kept for the ledger at ``path`` under a digest (hex), None if nothing is."""
    begin = _line(digest, b"")[: -len(b"}\n")]
    try:
        with bodies_of(path).open("rb") as file:
            for line in file:
                if line.startswith(begin):
                    body = line[len(begin) :].removesuffix(b"\n").removesuffix(b"}")
                    if sha256(body).hexdigest() == digest:
                        return body
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(f"{path}: what is kept beside it cannot be read: {error}") from None
    return None


def digests_with(path: Path, test: Callable[[bytes], bool]) -> Iterator[str]:
    """The digests (hex) of what is kept for the ledger at ``path`` and passes a test."""
    begin = len(_line("", b"")) - len(b'","body":}\n')
    with contextlib.suppress(FileNotFoundError), bodies_of(path).open("rb") as file:
        for line in file:
            if test(line[begin:]):
                yield line[begin : begin + 64].decode(errors="replace")


def _line(digest: str, body: bytes) -> bytes:
    return b'{"digest":"sha256:%b","body":%b}\n' % (digest.encode(), body)
