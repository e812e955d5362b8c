"""The lines of a JSON Lines ledger, told from what broken writes left between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final

from mcp_envelope.core.entry import MOST
from mcp_envelope.core.merkle import Frontier
from mcp_envelope.core.ports import LedgerError, Placed
from mcp_envelope.core.seal import origin_of

from .draft import SEALED, Head
from .links import BEGIN, seq_of
from .remarks import check_sealed
from .tail import Tail

_END: Final = b"]}\n"
_TORN: Final = b'"warnings":["torn tail: the '
_CLAIM: Final = re.compile(
    re.escape(_TORN) + rb"([0-9]{1,19}) bytes before this line are no line, sha256:([0-9a-f]{64})"
)
_BUFFER: Final = 1 << 20
_HINT: Final = "keep it, and name another file; mcp-envelope ledger verify says more"


def placed(file: BinaryIO) -> Iterator[Placed]:
    """The lines of a file from where it stands on, without what later lines say is torn.

    A line that lacks its newline is none yet.
    """
    at = file.tell()
    held: Placed | None = None
    loose: list[bytes] = []  # what came behind it that is no line
    for piece in file:
        end = at + len(piece)
        if piece[-1:] != b"\n":
            break
        if piece.endswith(_END) and end - at <= MOST + 1 and BEGIN.match(piece):
            if held is not None and not (_TORN in piece and _is_torn(held, loose, piece)):
                yield held
            held = Placed(at, end, piece[:-1])
            loose.clear()
        elif held is not None:
            loose.append(piece)
        at = end
    if held is not None:
        yield held


def _is_torn(line: Placed, loose: list[bytes], piece: bytes) -> bool:
    """Whether the next line says of one that it was never finished, and says it right."""
    claim = _CLAIM.search(piece)
    if claim is None or int(claim[1]) != line.after - line.place + sum(map(len, loose)):
        return False
    total = sha256(line.line + b"\n" + b"".join(loose))
    return bool(claim[2].decode() == total.hexdigest())


def head_of(fd: int, path: Path, tail: Tail) -> Head:
    """Where the chain of an open file goes on, tree included: it is read from its beginning.

    LedgerError where it is not whole: a checkpoint over that would say what is not so.
    """
    head = Head(tree=Frontier())
    tree = Frontier()
    sealed: tuple[bytes, int, bytes] | None = None
    with open(fd, "rb", buffering=_BUFFER, closefd=False) as file:
        file.seek(0)
        for one in placed(file):
            line = one.line
            if seq_of(line) != tree.size:
                what = f"line {tree.size} is not in it"
                raise LedgerError(f"{path} is damaged: {what}", hint=_HINT)
            if not tree.size:
                head.first = sha256(line).hexdigest()
            head.since += 1
            if line.startswith(SEALED):
                sealed = line, tree.size, tree.root()
                head.since = 0
            tree.add(sha256(b"\x00" + line).digest())
    if tree.size != tail.seq:
        raise LedgerError(f"{path} is damaged at its end", hint=_HINT)
    if sealed is not None:
        text, size, root = sealed
        try:
            check_sealed(text, origin_of(head.first), size, root)
        except LedgerError as error:
            raise LedgerError(f"{path}: {error.message}", hint=_HINT) from None
    head.seq, head.prev, head.tree = tail.seq, tail.prev, tree
    return head
