"""The lines of a JSON Lines ledger, told from what broken writes left between them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Final

from mcp_envelope.core.entry import MOST
from mcp_envelope.core.merkle import Frontier
from mcp_envelope.core.ports import LedgerError, Placed
from mcp_envelope.core.seal import origin_of

from .draft import SEALED, Head
from .links import BEGIN, Walk
from .remarks import check_sealed
from .tail import Tail

_END: Final = b"]}\n"
_TORN: Final = b'"warnings":["torn tail: the '
_CLAIM: Final = re.compile(
    re.escape(_TORN) + rb"([0-9]{1,19}) bytes before this line are no line, sha256:([0-9a-f]{64})"
)
#: What no newline comes in is read in pieces of this size: longer than any line.
PIECE: Final = 1 << 17
_FIRST: Final = b'{"v":'
_ANY: Final = re.compile(rb"^" + BEGIN.pattern, re.MULTILINE)
_WINDOW: Final = 1 << 20
_BUFFER: Final = 1 << 20
_HINT: Final = "keep it, and name another file; mcp-envelope ledger verify says more"


def is_ledger(file: BinaryIO) -> bool:
    """Whether there is any line near its ends, or nothing but the beginning of one."""
    head = file.read(len(_FIRST))
    if _FIRST.startswith(head):
        return True
    if _ANY.search(head + file.read(_WINDOW)):
        return True
    file.seek(max(0, file.seek(0, os.SEEK_END) - _WINDOW))
    return _ANY.search(file.read(_WINDOW)) is not None


def pieces_of(file: BinaryIO) -> Iterator[bytes]:
    """A file from where it stands on, cut behind each newline, and in what is far too long."""
    return iter(partial(file.readline, PIECE), b"")


def placed(file: BinaryIO) -> Iterator[Placed]:
    """The lines of a file from where it stands on, without what later lines say is torn.

    A line that lacks its newline is none yet.
    """
    at = file.tell()
    held: Placed | None = None
    loose = _Loose()  # what came behind it that is no line
    is_open = False
    for piece in pieces_of(file):
        end = at + len(piece)
        begins, is_open = not is_open, piece[-1:] != b"\n"
        if is_open and len(piece) < PIECE:
            break
        if begins and piece.endswith(_END) and end - at <= MOST + 1 and BEGIN.match(piece):
            if held is not None and not (_TORN in piece and loose.is_said_by(piece, held)):
                yield held
            held = Placed(at, end, piece[:-1])
            loose = _Loose()
        elif held is not None:
            loose.add(piece, held)
        at = end
    if held is not None:
        yield held


class _Loose:
    """A line and what came behind it: how many bytes, and their digest."""

    __slots__ = ("_sum", "size")

    def __init__(self) -> None:
        self.size = 0
        self._sum: Any = None

    def add(self, piece: bytes, held: Placed) -> None:
        """More of it."""
        if self._sum is None:
            self._sum = sha256(held.line + b"\n")
        self._sum.update(piece)
        self.size += len(piece)

    def is_said_by(self, piece: bytes, held: Placed) -> bool:
        """Whether the next line says that ``held`` was never finished, and says it right."""
        claim = _CLAIM.search(piece)
        if claim is None or int(claim[1]) != held.after - held.place + self.size:
            return False
        total = sha256(held.line + b"\n") if self._sum is None else self._sum
        return bool(claim[2].decode() == total.hexdigest())


def head_of(fd: int, path: Path, tail: Tail) -> Head:
    """Where the chain of an open file goes on, tree included: it is read from its beginning.

    LedgerError where it is not whole, each line that which the next one follows: a checkpoint
    over that would say what is not so.
    """
    head = Head()
    walk, tree = Walk(), Frontier()
    try:
        with open(fd, "rb", buffering=_BUFFER, closefd=False) as file:
            file.seek(0)
            for one in placed(file):
                line = one.line
                walk.take(line)
                if not tree.size:
                    head.first = walk.prev
                head.since += 1
                if line.startswith(SEALED):
                    check_sealed(line, origin_of(head.first), tree.size, tree.root())
                    head.since = 0
                tree.add(sha256(b"\x00" + line).digest())
        if (walk.seq, walk.prev) != (tail.seq, tail.prev):
            raise LedgerError("it is damaged at its end")
    except LedgerError as error:
        raise LedgerError(f"{path}: {error.message}", hint=_HINT) from None
    head.seq, head.prev, head.tree = tail.seq, tail.prev, tree
    return head
