"""What every ledger holds to, whatever keeps it. Runs over the table of stores."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.core.facts import some_facts
from tests.stores.chain import follow, lines_of

from mcp_envelope.core.entry import Receipt
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.ports import Ledger, Store
from mcp_envelope.stores import STORES, TABLE, open_ledger
from mcp_envelope.stores.jsonl import JsonLinesStore
from mcp_envelope.stores.memory import MemoryLedger, MemoryStore
from mcp_envelope.stores.sqlite import SqliteStore


def _in_memory(ledger: Ledger, _: Path) -> list[bytes]:
    assert isinstance(ledger, MemoryLedger)
    return ledger.lines


def _in_file(_: Ledger, folder: Path) -> list[bytes]:
    return lines_of((folder / "calls").read_bytes())


def _in_database(_: Ledger, folder: Path) -> list[bytes]:
    with contextlib.closing(sqlite3.connect(folder / "calls.db")) as connection:
        return [line for (line,) in connection.execute("SELECT line FROM lines ORDER BY seq")]


# Of each store: what its URLs have after the scheme, and how to read its lines.
READERS: dict[str, tuple[str, Callable[[Ledger, Path], list[bytes]]]] = {
    "memory": ("", _in_memory),
    "jsonl": ("{folder}/calls", _in_file),
    "sqlite": ("{folder}/calls.db", _in_database),
}


class Kept:
    """A ledger to write to, and a reader of its lines."""

    def __init__(self, scheme: str, folder: Path) -> None:
        place, self._read = READERS[scheme]
        self._folder = folder
        self.url = f"{scheme}:{place.format(folder=folder)}"
        self.ledger = open_ledger(self.url)

    def lines(self) -> list[bytes]:
        """Its lines without newlines."""
        return self._read(self.ledger, self._folder)


@pytest.fixture(params=list(TABLE))
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A new ledger of each kind."""
    made = Kept(request.param, tmp_path)
    yield made
    asyncio.run(made.ledger.close())


def test_every_store_is_tested_here() -> None:
    """A new line of the table needs a reader above."""
    assert set(READERS) == set(TABLE) == set(STORES)
    known: tuple[Store, ...] = (
        MemoryStore(),
        JsonLinesStore(),
        SqliteStore(),
    )  # for the type checker
    assert len(known) == len(TABLE)


def test_lines_form_one_chain_without_gaps(kept: Kept) -> None:
    """`seq` counts from 0, `prev` is the digest of the line before, zeros first."""

    async def write() -> list[Receipt]:
        return [await kept.ledger.append(some_facts(tool=f"t{n}")) for n in range(50)]

    receipts = asyncio.run(write())
    entries = follow(kept.lines())
    assert [entry["tool"] for entry in entries] == [f"t{n}" for n in range(50)]
    digests = [sha256(text).hexdigest() for text in kept.lines()]
    assert receipts == [Receipt(n, digests[n]) for n in range(50)]


def test_appends_at_once_keep_the_order_in_which_they_were_made(kept: Kept) -> None:
    """However many there are."""

    async def write() -> list[Receipt]:
        return await asyncio.gather(
            *(kept.ledger.append(some_facts(tool=f"t{n}")) for n in range(500))
        )

    receipts = asyncio.run(write())
    assert [receipt.seq for receipt in receipts] == list(range(500))
    assert [entry["tool"] for entry in follow(kept.lines())] == [f"t{n}" for n in range(500)]


def test_an_append_that_returned_can_be_read(kept: Kept) -> None:
    """At once, not when the ledger is closed."""

    async def write() -> None:
        for n in range(10):
            receipt = await kept.ledger.append(some_facts())
            assert sha256(kept.lines()[n]).hexdigest() == receipt.digest

    asyncio.run(write())


def test_an_append_that_fails_leaves_its_place_to_the_next(kept: Kept) -> None:
    """So the chain stays without gaps."""

    async def write() -> None:
        for n in range(20):
            if n % 3:
                await kept.ledger.append(some_facts(tool=f"t{n}"))
            else:
                with pytest.raises(TypeError):
                    await kept.ledger.append(some_facts(tool=object()))

    asyncio.run(write())
    tools = [entry["tool"] for entry in follow(kept.lines())]
    assert tools == [f"t{n}" for n in range(20) if n % 3]


def test_a_closed_ledger_takes_nothing_and_says_so(kept: Kept) -> None:
    """RECORD_UNAVAILABLE, and closing twice does nothing."""

    async def write() -> EnvelopeError:
        await kept.ledger.append(some_facts())
        await kept.ledger.close()
        await kept.ledger.close()
        with pytest.raises(EnvelopeError) as caught:
            await kept.ledger.append(some_facts())
        return caught.value

    assert asyncio.run(write()).code == "RECORD_UNAVAILABLE"
    assert len(kept.lines()) == 1


def test_a_ledger_says_where_it_is(kept: Kept) -> None:
    """By the URL that opens it."""
    assert kept.ledger.url == kept.url
