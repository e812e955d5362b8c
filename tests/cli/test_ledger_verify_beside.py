"""``ledger verify`` beside a gateway that removes lines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.stores.meddling import go_on
from tests.stores.sealed import SIGNER, writing

from mcp_envelope.cli import ledger_verify
from mcp_envelope.stores.sqlite import SqliteLedger
from mcp_envelope.stores.sqlite_source import SqliteSource

from .conftest import Run

pytestmark = pytest.mark.usefixtures("state")


def prune(path: Path, count: int) -> None:
    """Remove lines."""

    async def run() -> None:
        ledger = SqliteLedger(path, writing())
        assert await ledger.remove(count) > 0
        await ledger.close()

    asyncio.run(run())


@pytest.mark.parametrize("at", [0, 1, 300])
def test_lines_that_are_removed_meanwhile_are_no_damage(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Wherever it is just then, it begins anew, and says what holds now."""
    path = tmp_path / "calls.db"
    go_on(path, 1_500)
    physical = SqliteSource.physical
    left = [at]

    def pieces(self: SqliteSource) -> Iterator[bytes]:
        if left and not left[0]:
            left.pop()
            prune(path, 900)
        for count, piece in enumerate(physical(self), 1):
            yield piece
            if left and count == left[0]:
                left.pop()
                prune(path, 900)

    monkeypatch.setattr(SqliteSource, "physical", pieces)
    done = run("ledger", "verify", str(path), "--key", str(SIGNER.key), "--json")
    assert not left
    assert (done.code, done.json["ledgers"][0]["first"]) == (0, 768)


def test_copies_are_not_compared_while_lines_go(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would seem to have gone different ways."""
    path, copy = tmp_path / "calls.db", tmp_path / "copy.db"
    go_on(path, 1_500)
    copy.write_bytes(path.read_bytes())
    go_on(path, 3)
    compared = ledger_verify._compared

    def late(*rest: Any) -> Any:
        prune(path, 900)
        return compared(*rest)

    monkeypatch.setattr(ledger_verify, "_compared", late)
    done = run("ledger", "verify", str(path), str(copy))
    assert done.code == 3
    assert "lines were removed meanwhile; verify them again" in done.err
