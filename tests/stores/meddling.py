"""What somebody with a shell does to the database of a ledger, and what a verifier says of it."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path
from typing import Any

from tests.core.facts import some_facts
from tests.stores.sealed import SIGNER, writing

from mcp_envelope.core.verdict import Verdict
from mcp_envelope.core.verification import Verifier
from mcp_envelope.stores.sqlite import SqliteLedger
from mcp_envelope.stores.sqlite_source import SqliteSource


def meddle(path: Path, *statements: str | tuple[str, tuple[Any, ...]]) -> None:
    """Run statements as if no trigger stood in their way; those are put back."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        run = connection.execute
        found = run("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in found:
            run(f"DROP TRIGGER {name}")
        for one in statements:
            run(*((one,) if isinstance(one, str) else one))
        for _, sql in found:
            run(sql)


def go_on(path: Path, count: int, *, every: int = 1_000, seals: bool = True) -> None:
    """Open a ledger, append so many lines to it, and close it."""

    async def run() -> None:
        ledger = SqliteLedger(path, writing(every=every))
        try:
            await asyncio.gather(*(ledger.append(some_facts(tool=f"t{n}")) for n in range(count)))
            if seals:
                await ledger.seal()
        finally:
            await ledger.close()

    asyncio.run(run())


def verdict_on(path: Path) -> Verdict:
    """That of a verifier who trusts the key of the tests."""
    with contextlib.closing(SqliteSource(path)) as source:
        verifier = Verifier([SIGNER.key], (), source.removed())
        for piece in source.physical():
            if not verifier.feed(piece):
                break
        return verifier.finish()
