"""SIGKILL while old lines are taken out of a ledger: each is there or in the archive, or both."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import sys
import time
from pathlib import Path
from random import Random

import pytest
from tests.core.facts import some_facts
from tests.faults.ledgers import ROOT, lines_at, verify

from mcp_envelope.core.ports import Sealing, Writing
from mcp_envelope.gateway.keys import signers
from mcp_envelope.stores import open_ledger

SEED = os.environ.get("FAULTS_SEED") or str(time.time_ns())
LINES = 12_000


async def made(url: str, key: Path) -> None:
    """A ledger of many lines, sealed now and then."""
    keys, _ = signers(key)
    sealing = Sealing(signers=keys, now=lambda: "2026-11-20T00:00:00Z", instance="i", every=700)
    ledger = open_ledger(url, writing=Writing(sealing=sealing))
    for _ in range(LINES // 500):
        await asyncio.gather(*(ledger.append(some_facts()) for _ in range(500)))
    await ledger.close()


def left(path: Path) -> dict[int, bytes]:
    """The lines that are there, by their numbers."""
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as read:
        return {seq: bytes(line) for seq, line in read.execute("SELECT seq, line FROM lines")}


def is_archived(folder: Path) -> bool:
    """Whether lines are in an archive, and so begin to go."""
    return any(folder.glob("*.jsonl"))


async def prune(url: str, state: Path, folder: Path, before: int, wait: float | None) -> int:
    """Prune, and kill that so many seconds after the archive is there, unless that is None."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mcp_envelope", "ledger", "prune", url, "--before", str(before)),
        *("--archive", str(folder), "--key-file", str(state / "ledger.key")),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}/src", "XDG_STATE_HOME": str(state)},
        stdout=asyncio.subprocess.DEVNULL,
    )
    if wait is not None:
        while process.returncode is None and not is_archived(folder):  # noqa: ASYNC110
            await asyncio.sleep(0)
        await asyncio.sleep(wait)
        if process.returncode is None:
            process.kill()
    return await process.wait()


@pytest.mark.parametrize("times", [4, pytest.param(12, marks=pytest.mark.slow)])
def test_killed_while_pruning(times: int, tmp_path: Path) -> None:
    """No line is lost wherever that ends, the ledger holds, and the next one goes on."""
    path, state, chance = tmp_path / "calls.db", tmp_path / "state", Random(SEED)
    print(f"FAULTS_SEED={SEED}")
    url, public = f"sqlite:{path}", str(state / "ledger.pub")

    async def work() -> None:
        state.mkdir()
        await made(url, state / "ledger.key")
        lines = lines_at(path)
        archived: dict[int, bytes] = {}
        for number in range(times):
            before, folder = LINES * (number + 1) // (times + 1), tmp_path / f"archive{number}"
            wait = chance.uniform(0.0, 0.06)
            code = await prune(url, state, folder, before, wait)
            assert code in (0, -signal.SIGKILL, 255)
            archived |= kept_in(folder)
            there = left(path)
            gone = [seq for seq in range(LINES) if seq not in there]
            print(f"{wait:.4f} s: ended with {code}, {len(gone)} lines are gone")
            assert all(archived[seq] == lines[seq] for seq in gone)
            assert all(there[seq] == lines[seq] for seq in range(LINES) if seq in there)
            await asyncio.to_thread(verify, url, state, "--key", public)
        assert await prune(url, state, tmp_path / "last", LINES, None) == 0
        archived |= kept_in(tmp_path / "last")
        assert min(left(path)) >= LINES - 1_000
        assert archived == {seq: lines[seq] for seq in range(min(left(path)))}
        await asyncio.to_thread(verify, url, state, "--key", public)

    asyncio.run(work())


def kept_in(folder: Path) -> dict[int, bytes]:
    """The lines in finished archives, by their numbers."""
    found: dict[int, bytes] = {}
    for file in folder.glob("*.jsonl"):
        first = int(file.stem.split("-")[-2])
        found |= dict(enumerate(file.read_bytes().splitlines(), first))
    return found
