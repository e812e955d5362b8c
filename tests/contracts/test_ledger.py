"""What every ledger holds to, whatever keeps it. Runs over the table of stores."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.core.facts import some_facts
from tests.stores.chain import follow, lines_of
from tests.stores.sealed import checked, writing

from mcp_envelope.core.entry import Receipt
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.ports import Durability, Ledger, Store, Writing
from mcp_envelope.stores import STORES, TABLE, open_ledger, read_ledger
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
    """A ledger to write to, and a reader of its lines. ``notes`` are what it published."""

    def __init__(self, scheme: str, folder: Path, durability: Durability) -> None:
        place, self._read = READERS[scheme]
        self._folder = folder
        self.scheme = scheme
        self.durability = durability
        self.url = f"{scheme}:{place.format(folder=folder)}"
        self.notes: list[bytes] = []
        self.ledger = open_ledger(self.url, writing=Writing(durability=durability))

    async def reopen(self, every: int) -> None:
        """Open it anew, sealed."""
        await self.ledger.close()
        how = writing(every, self.notes, self.durability)
        self.ledger = open_ledger(self.url, writing=how)

    def lines(self) -> list[bytes]:
        """Its lines without newlines."""
        return self._read(self.ledger, self._folder)


@pytest.fixture(
    params=[(name, how) for name in TABLE for how in ("process", "power")], ids="-".join
)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A new ledger of each kind, as durable as it can be or just as durable as it has to be."""
    made = Kept(request.param[0], tmp_path, request.param[1])
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


def test_what_cannot_be_said_fails_alone(kept: Kept) -> None:
    """Those that are written at the same time are none the worse for it."""

    async def write() -> list[Any]:
        tools: list[Any] = ["a", object(), "b", object(), "c"]
        appends = (kept.ledger.append(some_facts(tool=tool)) for tool in tools)
        return await asyncio.gather(*appends, return_exceptions=True)

    found = asyncio.run(write())
    assert [type(one) for one in found] == [Receipt, TypeError, Receipt, TypeError, Receipt]
    assert [entry["tool"] for entry in follow(kept.lines())] == ["a", "b", "c"]


def test_who_is_cancelled_is_told_once_the_line_is_written(kept: Kept) -> None:
    """However often, and whenever: what was begun is finished."""

    async def write(turns: int, times: int) -> None:
        before = len(kept.lines())
        task = asyncio.create_task(kept.ledger.append(some_facts()))
        for _ in range(turns):
            await asyncio.sleep(0)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(kept.lines()) == before + 1

    async def run() -> None:
        # From the third turn on a quick one may be written, and its task done.
        for turns, times in ((1, 1), (1, 2), (1, 3), (2, 1)):
            await write(turns, times)
        await kept.ledger.append(some_facts())

    asyncio.run(run())
    assert len(follow(kept.lines())) == 5


def test_closing_waits_for_what_was_begun(kept: Kept) -> None:
    """And nothing of it is lost."""

    async def write() -> list[Receipt]:
        appends = [asyncio.create_task(kept.ledger.append(some_facts())) for _ in range(700)]
        await asyncio.sleep(0)
        await kept.ledger.close()
        return await asyncio.gather(*appends)

    assert [receipt.seq for receipt in asyncio.run(write())] == list(range(700))
    assert len(follow(kept.lines())) == 700


def test_without_keys_nothing_is_sealed(kept: Kept) -> None:
    """Asking for it does nothing."""

    async def write() -> None:
        assert await kept.ledger.seal() is None
        await kept.ledger.append(some_facts())
        assert await kept.ledger.seal() is None

    asyncio.run(write())
    assert len(kept.lines()) == 1


def test_a_checkpoint_is_written_after_so_many_lines(kept: Kept) -> None:
    """Whether they come one by one or at once; what it says is so, and is published."""

    async def write() -> None:
        await kept.reopen(every=7)
        for n in range(20):
            await kept.ledger.append(some_facts(tool=f"t{n}"))
        await asyncio.gather(*(kept.ledger.append(some_facts(tool=f"s{n}")) for n in range(600)))

    asyncio.run(write())
    lines = kept.lines()
    follow(lines)
    assert checked(lines, roots=False) == list(range(7, 708, 8))
    assert checked(lines[:200]) == list(range(7, 200, 8))
    said = [json.loads(lines[seq])["warnings"][-1].encode() for seq in range(7, 708, 8)]
    assert kept.notes == said


def test_a_checkpoint_is_written_when_asked_for(kept: Kept) -> None:
    """But not directly behind another one, nor over nothing; and in its turn."""

    async def write() -> list[Receipt | None]:
        await kept.reopen(every=0)
        told = [await kept.ledger.seal()]
        ledger = kept.ledger
        told += await asyncio.gather(
            *(ledger.append(some_facts()), ledger.seal(), ledger.seal()),
            *(ledger.append(some_facts()), ledger.append(some_facts()), ledger.seal()),
        )
        told.append(await ledger.seal())
        return told

    told = asyncio.run(write())
    assert [receipt and receipt.seq for receipt in told] == [None, 0, 1, None, 2, 3, 4, None]
    lines = kept.lines()
    assert checked(lines) == [1, 4]
    assert told[2] == Receipt(1, sha256(lines[1]).hexdigest())
    assert len(kept.notes) == 2


def test_the_same_events_give_the_same_bytes_everywhere(tmp_path: Path) -> None:
    """With the clock and the keys given, whatever keeps them and however they were grouped."""

    async def write(scheme: str, folder: Path, at_once: int) -> list[bytes]:
        kept = Kept(scheme, folder, "process")
        await kept.reopen(every=5)
        for begin in range(0, 60, at_once):
            some = (some_facts(tool=f"t{n}") for n in range(begin, begin + at_once))
            await asyncio.gather(*map(kept.ledger.append, some))
        await kept.ledger.seal()
        await kept.ledger.close()
        return kept.lines()

    plans = [(scheme, at_once) for scheme in TABLE for at_once in (1, 4, 60)]
    found = [asyncio.run(write(*plan[:1], tmp_path / f"{plan}", plan[1])) for plan in plans]
    assert all(one == found[0] for one in found)
    assert len(checked(found[0])) == 12


def test_a_chain_goes_on_with_its_tree_over_restarts(kept: Kept) -> None:
    """The lines since the last checkpoint are counted on."""
    if kept.scheme == "memory":
        return  # it has no restarts

    async def write() -> None:
        for _ in range(30):
            await kept.reopen(every=11)
            for _ in range(9):
                await kept.ledger.append(some_facts())
        await kept.ledger.seal()

    asyncio.run(write())
    lines = kept.lines()
    follow(lines)
    assert checked(lines)[:24] == list(range(11, 299, 12))


def test_bodies_are_kept_beside_their_lines(kept: Kept) -> None:
    """Under their digests; the same one once."""
    bodies = [b'{"a":%d}' % (n % 10) for n in range(40)]

    async def write() -> None:
        for n in range(0, 40, 2):
            await kept.ledger.append(some_facts(), bodies[n : n + 2])
        await kept.ledger.close()

    asyncio.run(write())
    wanted = {sha256(body).hexdigest(): body for body in bodies}
    if isinstance(kept.ledger, MemoryLedger):
        assert kept.ledger.bodies == wanted
        return
    with contextlib.closing(read_ledger(kept.url)) as source:
        assert {digest: source.body(digest) for digest in wanted} == wanted
        assert source.body("0" * 64) is None
