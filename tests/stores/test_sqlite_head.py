"""Where the chain of a SQLite ledger goes on, whatever is done to what is kept beside it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.core.facts import some_facts
from tests.stores.meddling import go_on, meddle, verdict_on
from tests.stores.sealed import root_of, writing

from mcp_envelope.core.ports import LedgerError
from mcp_envelope.stores.sqlite import SqliteLedger
from mcp_envelope.stores.sqlite_source import SqliteSource

CHANGE = 'UPDATE lines SET line = CAST(replace(line, \'"tool":"t\', \'"tool":"x\') AS BLOB)'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a ledger may be made."""
    return tmp_path / "calls.db"


def lines_of(path: Path) -> list[bytes]:
    """Its lines."""
    with contextlib.closing(SqliteSource(path)) as source:
        return [one.line for one in source.after(0)]


@pytest.mark.parametrize("every", [100_000, 90])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE nodes SET hash = randomblob(32)",
        "UPDATE nodes SET hash = randomblob(32) WHERE idx = 1",
        "DELETE FROM nodes",
        "DELETE FROM nodes WHERE idx = 0",
        "DELETE FROM facts",
        "UPDATE facts SET value = '3' WHERE name = 'sealed'",
        "UPDATE facts SET value = 'x'",
    ],
)
def test_what_is_derived_is_made_anew(
    path: Path, every: int, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    """From the lines, which are whole: else a wrong root would be signed for ever."""
    go_on(path, 600, every=every, seals=False)
    meddle(path, statement)
    caplog.set_level(logging.WARNING)
    go_on(path, 3, every=every)
    assert ("nodes" in statement) == ("were wrong; made anew" in caplog.text)
    verdict = verdict_on(path)
    assert verdict.damage is None
    assert verdict.vouched == verdict.lines
    lines = lines_of(path)
    with contextlib.closing(SqliteSource(path)) as source:
        assert [source.subtree(8, at) for at in (0, 1)] == [
            root_of(lines[256 * at : 256 * (at + 1)]) for at in (0, 1)
        ]


@pytest.mark.parametrize(
    "statement",
    [
        f"{CHANGE} WHERE seq = 610",
        f"{CHANGE} WHERE seq = 615",
        "UPDATE lines SET seq = seq + 1000 WHERE seq > 612",
        "DELETE FROM lines WHERE seq = 612",
        (
            "UPDATE lines SET line = line || x'0a' || (SELECT line FROM lines WHERE seq = 613)"
            " WHERE seq = 612"
        ),
        "UPDATE lines SET line = 'x' WHERE seq = 601",
    ],
)
def test_altered_lines_behind_the_last_checkpoint_are_not_sealed(
    path: Path, statement: str
) -> None:
    """Nothing else vouches for them, and what is signed is said to be so."""
    go_on(path, 600)
    go_on(path, 20, seals=False)
    meddle(path, statement)
    with pytest.raises(LedgerError, match=r"it is damaged.*; keep it, and name"):
        go_on(path, 1)


def test_a_removed_beginning_is_gone_on_from(path: Path) -> None:
    """By what the line says that tells of it, where nothing beside it is right."""
    from_line = _removed(path)
    meddle(path, "DELETE FROM nodes WHERE idx > 1", "UPDATE facts SET value = 'x'")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE facts SET value = '512' WHERE name = 'removed'")
    go_on(path, 3)
    verdict = verdict_on(path)
    assert verdict.damage is None
    assert (verdict.first, verdict.vouched) == (from_line, verdict.next)


@pytest.mark.parametrize("value", ["100000000000000000", "301", "7", "256"])
def test_a_note_of_removed_lines_hides_none(path: Path, value: str) -> None:
    """It counts only where a checkpoint line says the same: anybody may edit it."""
    go_on(path, 300)
    meddle(path, ("INSERT INTO facts VALUES ('removed', ?)", (value,)))
    with contextlib.closing(SqliteSource(path)) as source:
        assert source.bounds() == (0, 301)
        assert (source.kept_from(), source.removed()) == (0, None)
        assert source.place_of(3) == 3
    go_on(path, 3)
    verdict = verdict_on(path)
    assert verdict.damage is None
    assert verdict.lines == 305


def _removed(path: Path) -> int:
    async def run() -> Any:
        ledger = SqliteLedger(path, writing())
        await asyncio.gather(*(ledger.append(some_facts()) for _ in range(900)))
        try:
            return await ledger.remove(700)
        finally:
            await ledger.close()

    return int(asyncio.run(run()))
