"""The one writer behind all ledgers: what fails beside the lines, and who is cancelled."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from tests.core.facts import some_facts
from tests.stores.meddling import verdict_on
from tests.stores.sealed import SIGNER, checked, writing

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.notes import Signature, VerifierKey
from mcp_envelope.core.ports import Sealing, Writing
from mcp_envelope.stores import chain
from mcp_envelope.stores.chain import Unwritten
from mcp_envelope.stores.draft import Batch
from mcp_envelope.stores.memory import MemoryLedger
from mcp_envelope.stores.sqlite import SqliteLedger


class Device:
    """A key that is sometimes out of reach."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.count = 0

    @property
    def key(self) -> VerifierKey:
        """The public half."""
        return SIGNER.key

    def sign(self, text: str) -> Signature:
        """The signature, or the error."""
        self.count += 1
        if self.error is not None:
            raise self.error
        return SIGNER.sign(text)


@pytest.mark.parametrize(
    "error", [TypeError("no"), OSError("gone"), EnvelopeError("no"), RuntimeError("no")]
)
def test_a_checkpoint_that_cannot_be_signed_fails_no_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once, tried again later, and made up for; who asked for one is told."""
    monkeypatch.setattr(chain, "_SEAL_PAUSE", 0.1)
    device = Device()
    caplog.set_level(logging.WARNING)

    async def run() -> list[bytes]:
        sealing = Sealing(
            signers=[device], now=lambda: "2026-11-19T21:00:00Z", instance="i", every=3
        )
        ledger = MemoryLedger(writing=Writing(sealing=sealing))
        device.error = error
        for seq in range(7):
            assert (await ledger.append(some_facts())).seq == seq
        assert device.count == 1
        for _ in range(2):
            with pytest.raises(EnvelopeError, match="the checkpoint cannot be signed"):
                await ledger.seal()
        device.error = None
        await asyncio.sleep(0.11)
        for seq in (7, 9, 10):
            assert (await ledger.append(some_facts())).seq == seq
        await ledger.close()
        return ledger.lines

    lines = asyncio.run(run())
    assert checked(lines) == [8]
    assert [one.levelname for one in caplog.records] == ["ERROR", "WARNING"]
    assert type(error).__name__ in caplog.text


def test_closing_goes_on_where_its_caller_is_cancelled(tmp_path: Path) -> None:
    """The lock is let go of, and what waits is written."""

    async def run(turns: int) -> None:
        path = tmp_path / "calls.db"
        ledger = SqliteLedger(path, writing())
        append = asyncio.create_task(ledger.append(some_facts()))
        await asyncio.sleep(0)
        close = asyncio.create_task(ledger.close())
        for _ in range(turns):
            await asyncio.sleep(0)
        close.cancel()
        with pytest.raises(asyncio.CancelledError):
            await close
        await append
        await ledger.close()
        await SqliteLedger(path, writing()).close()

    for turns in range(1, 4):
        asyncio.run(run(turns))
    assert verdict_on(tmp_path / "calls.db").lines == 3


def test_who_is_cancelled_hears_that_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the line could not be written; why is said as the cause."""

    def fail(batch: Batch) -> None:
        raise Unwritten("no")

    async def run() -> None:
        ledger = MemoryLedger(writing=writing())
        monkeypatch.setattr(ledger._sink, "write", fail)
        for begun in (ledger.append(some_facts()), ledger.append(some_facts())):
            append = asyncio.create_task(begun)
            await asyncio.sleep(0)
            append.cancel()
            with pytest.raises(asyncio.CancelledError) as caught:
                await append
            assert isinstance(caught.value.__cause__, EnvelopeError)
        await ledger.close()

    asyncio.run(run())
