"""The record of a gateway: opened with its key, sealed in time, published, kept for so long."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.ports import Ledger, Sealing, Writing
from mcp_envelope.stores import open_ledger

from .ground import log
from .keys import signers
from .parts import ledger_name_of
from .publishing import Publisher
from .settings import RecordSettings, Settings

#: A ledger that is gone with its process needs no signature.
_UNSIGNED: Final = "memory:"


@dataclass(frozen=True, slots=True)
class Recording:
    """A ledger that is open, and what is to be said of it when the gateway starts.

    ``signed`` says by which key, empty if by none.
    """

    ledger: Ledger
    signed: str
    publisher: Publisher
    settings: RecordSettings

    async def watch(self) -> None:
        """Seal what was written, each so many seconds; until it is cancelled."""
        while self.settings.checkpoint_time:
            await asyncio.sleep(self.settings.checkpoint_time)
            await self.seal()

    async def seal(self) -> None:
        """Write a checkpoint over what has none; if that fails the next one covers it."""
        try:
            await self.ledger.seal()
        except EnvelopeError as error:
            log.warning("a checkpoint could not be written: %s", error.message)


@contextlib.asynccontextmanager
async def opened(
    settings: Settings, *, now: Callable[[], str], instance: str
) -> AsyncIterator[Recording]:
    """Open the record. ConfigError or LedgerError where it cannot be had.

    At the end it is sealed, that is published, and it is closed.
    """
    record = settings.record
    file = Path(record.publish_file) if record.publish_file is not None else None
    publisher = Publisher(file, record.publish_command)
    sealing, signed = None, ""
    if record.checkpoints and settings.ledger != _UNSIGNED:
        keys, is_new = signers(Path(record.key) if record.key is not None else None)
        signed = f"{keys[0].key.name}{', a new key: mcp-envelope keys show' if is_new else ''}"
        sealing = Sealing(
            signers=keys,
            now=now,
            instance=instance,
            every=record.checkpoint_lines,
            publish=publisher.put,
        )
    writing = Writing(durability=settings.durability, sealing=sealing)
    ledger = open_ledger(settings.ledger, name=ledger_name_of(settings), writing=writing)
    made = Recording(ledger, signed, publisher, record)
    try:
        yield made
    finally:
        await made.seal()
        await publisher.close()
        await ledger.close()
