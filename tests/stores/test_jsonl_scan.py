"""Files of JSON Lines that are read: what was altered in them, and what would fill the memory."""

from __future__ import annotations

import asyncio
import contextlib
import tracemalloc
from hashlib import sha256
from pathlib import Path

import pytest
from tests.core.facts import some_facts
from tests.stores.sealed import writing

from mcp_envelope.core.entry import line
from mcp_envelope.core.ports import LedgerError
from mcp_envelope.stores import read_ledger
from mcp_envelope.stores.jsonl import JsonLinesLedger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a ledger may be made."""
    return tmp_path / "calls.jsonl"


def write(path: Path, count: int) -> list[bytes]:
    """Append so many lines; all that are there."""

    async def run() -> None:
        ledger = JsonLinesLedger(path, writing())
        for n in range(count):
            await ledger.append(some_facts(tool=f"t{n}"))
        await ledger.close()

    asyncio.run(run())
    return path.read_bytes().splitlines()


@pytest.mark.parametrize("tool", ["t0", "t5", "t8"])
def test_an_altered_line_that_no_checkpoint_covers_is_noticed(path: Path, tool: str) -> None:
    """The next line says what it was; to seal it would be to vouch for what is not so."""
    write(path, 10)
    path.write_bytes(path.read_bytes().replace(f'"tool":"{tool}"'.encode(), b'"tool":"x"'))
    with pytest.raises(LedgerError, match=r"is damaged: line ., or the one before it, was altered"):
        JsonLinesLedger(path, writing())


def test_what_has_no_newline_does_not_fill_the_memory(path: Path) -> None:
    """However much there is of it, wherever it is looked for."""
    lines = write(path, 40)
    with path.open("ab") as file:
        for _ in range(40):
            file.write(b"x" * (1 << 20))
    torn = path.stat().st_size - sum(len(one) + 1 for one in lines)
    total = sha256(b"x" * torn + b"\n").hexdigest()
    said = f"torn tail: the {torn + 1} bytes before this line are no line, sha256:{total}"
    last = line(some_facts(warnings=(said,)), 40, sha256(lines[-1]).hexdigest())
    with path.open("ab") as file:
        file.write(b"\n" + last + b"\n")
    tracemalloc.start()
    try:
        with contextlib.closing(read_ledger(str(path))) as source:
            assert [one.line for one in source.after(0)] == [*lines, last]
            assert source.bounds() == (0, 41)
            assert source.place_of(40) == path.stat().st_size - len(last) - 1
            assert max(map(len, source.physical())) == 1 << 17
            assert sum(map(len, source.physical())) == path.stat().st_size
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


def test_a_piece_of_something_long_is_no_line(path: Path) -> None:
    """Where it is cut says nothing of what is in it."""
    lines = write(path, 2)
    with path.open("ab") as file:
        file.write(b"x" * (1 << 17) + lines[1] + b"\n")
    with contextlib.closing(read_ledger(str(path))) as source:
        assert [one.line for one in source.after(0)] == lines
