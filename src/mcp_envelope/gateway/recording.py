"""The record of a gateway: opened with its key, sealed in time, published, kept for so long."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from mcp_envelope.core.errors import ConfigError, EnvelopeError
from mcp_envelope.core.ports import Ledger, Sealing, Writing
from mcp_envelope.stores import open_ledger, read_ledger
from mcp_envelope.stores.following import Follower

from .archiving import Archive, Plan, older_than, planned, remove
from .clockwork import Clockwork
from .ground import log
from .keys import key_path, retire, signers, stored
from .parts import ledger_name_of
from .publishing import PublishedFile, Publisher
from .remembering import Memory
from .settings import RecordSettings, Settings

#: A ledger that is gone with its process needs no signature and no index.
_MEMORY: Final = "memory:"
#: Seconds from the start to the first look for lines that are too old, and between two.
_FIRST_LOOK: Final = 2.0
_EVERY_LOOK: Final = 3_600.0


@dataclass(frozen=True, slots=True)
class Recording:
    """A ledger that is open, and what is to be said of it when the gateway starts.

    ``signed`` says by which key, empty if by none; ``remarks`` are for its first line.
    """

    ledger: Ledger
    signed: str
    remarks: tuple[str, ...]
    publisher: Publisher
    settings: RecordSettings

    async def watch(self) -> None:
        """Seal what was written, each so many seconds; until it is cancelled."""
        while self.settings.checkpoint_time:
            await asyncio.sleep(self.settings.checkpoint_time)
            await self.seal()

    async def retain(self) -> None:
        """Remove what is too old, each so often; until it is cancelled."""
        pause = _FIRST_LOOK
        while self.settings.keep_days:
            await asyncio.sleep(pause)
            pause = _EVERY_LOOK
            try:
                await self._remove_old(self.settings.keep_days)
            except (ConfigError, EnvelopeError, OSError) as error:
                log.error("what is older than the record is kept could not be removed: %s", error)

    async def _remove_old(self, days: int) -> None:
        plan = await asyncio.to_thread(_plan, self.ledger.url, days)
        if not plan.lines:
            return
        folder, archive = self.settings.archive, None
        if folder is not None:
            archive = Archive(Path(folder), Path(self.ledger.url.partition(":")[2]).stem, plan)
        count = await remove(self.ledger, plan, archive)
        where = f"; they are in {archive.path}" if archive is not None else ""
        log.info("removed %d lines of the record, older than %d days%s", count, days, where)

    async def seal(self) -> None:
        """Write a checkpoint over what has none; if that fails the next one covers it."""
        try:
            await self.ledger.seal()
        except EnvelopeError as error:
            log.warning("a checkpoint could not be written: %s", error.message)


def _plan(url: str, days: int) -> Plan:
    before = datetime.now(UTC) - timedelta(days=days)
    source = read_ledger(url)
    try:
        return planned(source, older_than(source, f"{before:%Y-%m-%dT%H:%M:%S}.000Z"))
    finally:
        source.close()


def _examined(memory: Memory, url: str, key: Path | None) -> tuple[str, ...]:
    """What the first line has to say of the ledger; LedgerError if it may not be gone on with."""
    source = read_ledger(url)
    try:
        return memory.examine(source, [one.key for one in stored(key)])
    finally:
        source.close()


def _retire(key: Path | None) -> None:
    """Delete private keys that were replaced long ago, now that they have signed along."""
    try:
        for path in retire(key):
            log.info("deleted the private key %s, which was replaced long ago", path)
    except OSError as error:
        log.warning("a key that was replaced could not be deleted: %s", error)


@contextlib.asynccontextmanager
async def opened(settings: Settings, clockwork: Clockwork) -> AsyncIterator[Recording]:
    """Open the record. ConfigError or LedgerError where it cannot be had.

    Where ``clockwork`` is deterministic nothing is sealed or removed because time goes by.

    At the end it is sealed, that is published, and it is closed.
    """
    record = settings.record
    key = Path(record.key) if record.key is not None else None
    is_signed = record.checkpoints and settings.ledger != _MEMORY
    keys, is_new = signers(key) if is_signed else ([], False)
    signed = f"{keys[0].key.name}{', a new key: mcp-envelope keys show' * is_new}" if keys else ""
    publisher = Publisher(record.publish_command)
    sealing = None
    if keys:
        sealing = Sealing(
            signers=keys,
            now=clockwork.now,
            instance=clockwork.instance,
            every=record.checkpoint_lines,
            publish=publisher.put,
        )
    writing = Writing(durability=settings.durability, sealing=sealing)
    ledger = open_ledger(settings.ledger, name=ledger_name_of(settings), writing=writing)
    remarks: tuple[str, ...] = ()
    if keys:
        memory = Memory(key_path(key), ledger.url)
        try:
            remarks = await asyncio.to_thread(_examined, memory, ledger.url, key)
        except BaseException:
            await ledger.close()
            raise
        publisher.places.append(memory.keep)
        if record.publish_file is not None:
            publisher.places.append(PublishedFile(Path(record.publish_file)).keep)
    if clockwork.is_deterministic:
        record = replace(record, checkpoint_time=0.0, keep_days=0)
    made = Recording(ledger, signed, remarks, publisher, record)
    follower = Follower(lambda: read_ledger(ledger.url))
    if record.index and ledger.url != _MEMORY:
        follower.start()
    try:
        yield made
    finally:
        await asyncio.to_thread(follower.stop)
        await made.seal()
        await publisher.close()
        await ledger.close()
        if len(keys) > 1:
            _retire(key)
