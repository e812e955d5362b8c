"""Ledgers for tests of the verbs: real ones, written by the stores and signed by real keys."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mcp_envelope.cli import sealing
from mcp_envelope.core.entry import Facts, started, stopped
from mcp_envelope.core.signing import Signer
from mcp_envelope.gateway import keys
from mcp_envelope.stores import open_ledger

KINDS = ("sqlite", "jsonl")


def key_of(name: str) -> Signer:
    """A key that is always the same."""
    return Signer(name, name.encode().ljust(32, b"."))


def time_of(second: int) -> str:
    """A time as lines have it: so many seconds into 2026."""
    return f"2026-01-01T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.000Z"


def write(
    url: str,
    calls: int,
    *,
    signers: Sequence[Signer] | None = None,
    seal: bool = True,
    dangling: int = 0,
    begin: int = 0,
) -> str:
    """Let a gateway's run of so many calls be written, and sealed at the end; the URL.

    Calls are admitted and settled, two lines each, their ids ``call-0``, ``call-1`` and so on;
    the last ``dangling`` ones are only admitted. Signed by this machine's key, if by no other.
    """
    by = keys.signers()[0] if signers is None else signers
    asyncio.run(_write(url, calls, by, seal=seal, dangling=dangling, begin=begin))
    return url


async def _write(
    url: str, calls: int, signers: Sequence[Signer], *, seal: bool, dangling: int, begin: int
) -> None:
    writing = replace(sealing.writing_with(signers), durability="process")
    ledger = open_ledger(url, writing=writing)
    try:
        await ledger.append(started(time=time_of(begin), instance=url))
        for number in range(begin, begin + calls):
            time, name = time_of(number), f"call-{number}"
            said = {"time": time, "instance": url, "request_id": name, "tool": "add"}
            await ledger.append(Facts(event="admitted", **said))  # type: ignore[arg-type]
            if number < begin + calls - dangling:
                more = {**said, "outcome": "ok"}
                await ledger.append(Facts(event="settled", **more))  # type: ignore[arg-type]
        if not dangling:
            await ledger.append(stopped(time=time_of(begin + calls), instance=url))
        if seal:
            await ledger.seal()
    finally:
        await ledger.close()


def url_in(folder: Path, kind: str, name: str = "calls") -> str:
    """The URL of a ledger in that folder."""
    return f"{kind}:{folder / name}.{'db' if kind == 'sqlite' else 'jsonl'}"
