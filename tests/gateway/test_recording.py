"""The record of a gateway: sealed in time and at the end, published, and kept for so long."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.core.facts import some_facts
from tests.faults.scene import until

from mcp_envelope.core.entry import GENESIS
from mcp_envelope.core.notes import Checkpoint, Note
from mcp_envelope.core.ports import LedgerError
from mcp_envelope.core.signing import is_signed_by
from mcp_envelope.core.verification import Verifier
from mcp_envelope.gateway import recording
from mcp_envelope.gateway.clockwork import Clockwork
from mcp_envelope.gateway.keys import KeyFileError, signers
from mcp_envelope.gateway.publishing import PublishedFile, Publisher
from mcp_envelope.gateway.settings import RecordSettings, Settings
from mcp_envelope.stores import open_ledger, read_ledger

CAT = [sys.executable, "-c", "import sys; open(sys.argv[1], 'ab').write(sys.stdin.buffer.read())"]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for state of the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def settings_of(folder: Path, **record: Any) -> Settings:
    """Settings with a ledger in that folder."""
    url = f"sqlite:{folder}/calls.db"
    return Settings(upstreams=(), ledger=url, record=RecordSettings(**record))


def written(settings: Settings, count: int, **facts: Any) -> None:
    """Open the record, write so many lines, and close it."""

    async def work() -> None:
        async with recording.opened(settings, Clockwork.real()) as record:
            for _ in range(count):
                await record.ledger.append(some_facts(event="refused", **facts))

    asyncio.run(work())


def entries(settings: Settings) -> list[dict[str, Any]]:
    """The lines of the ledger, which hold."""
    assert settings.ledger is not None
    source = read_ledger(settings.ledger)
    verifier = Verifier((signers()[0][0].key,), (), source.removed())
    pieces = list(source.physical())
    source.close()
    for piece in pieces:
        verifier.feed(piece)
    verdict = verifier.finish()
    assert verdict.holds, verdict
    return [json.loads(piece) for piece in pieces]


def test_the_end_is_sealed_and_published(tmp_path: Path) -> None:
    """The last line is a checkpoint over all the others, and its note lies where it should."""
    note = tmp_path / "newest"
    settings = settings_of(tmp_path, publish_file=str(note))
    for runs in (1, 2):
        written(settings, 3)
        lines = entries(settings)
        assert [line["event"] for line in lines] == [*["refused"] * 3, "checkpoint"] * runs
        assert lines[-1]["warnings"][-1] == note.read_text()
        published = Note.parse(note.read_bytes())
        assert Checkpoint.parse(published.text).size == 4 * runs - 1
        assert is_signed_by(published, signers()[0][0].key)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_a_program_is_given_each_checkpoint(tmp_path: Path) -> None:
    """On its standard input, as it stands in the record."""
    sink = tmp_path / "sink"
    settings = settings_of(tmp_path, publish_command=(*CAT, str(sink)))
    written(settings, 2)
    assert sink.read_text() == entries(settings)[-1]["warnings"][-1]


def test_lines_are_sealed_while_nothing_happens(tmp_path: Path) -> None:
    """Each so many seconds, and no checkpoint follows another."""
    settings = settings_of(tmp_path, checkpoint_time=0.02)

    async def work() -> None:
        async with recording.opened(settings, Clockwork.real()) as record:
            watching = asyncio.create_task(record.watch())
            await record.ledger.append(some_facts(event="refused"))
            await asyncio.sleep(0.3)
            watching.cancel()

    asyncio.run(work())
    assert [line["event"] for line in entries(settings)] == ["refused", "checkpoint"]


def test_lines_are_sealed_after_so_many(tmp_path: Path) -> None:
    """However fast they come."""
    settings = settings_of(tmp_path, checkpoint_lines=10)
    written(settings, 35)
    events = [line["event"] for line in entries(settings)]
    assert events.count("checkpoint") >= 4
    assert "refused refused" in " ".join(events)


def test_a_record_may_be_left_unsigned(tmp_path: Path) -> None:
    """Then no key is made, and no checkpoint."""
    settings = settings_of(tmp_path, checkpoints=False)
    written(settings, 2)
    assert not (tmp_path / "state").exists()
    source = read_ledger(f"sqlite:{tmp_path}/calls.db")
    assert [json.loads(one)["event"] for one in source.physical()] == ["refused", "refused"]
    source.close()


def test_a_ledger_in_memory_needs_no_key(tmp_path: Path) -> None:
    """It is gone with its process."""
    written(replace(settings_of(tmp_path), ledger="memory:"), 1)
    assert not (tmp_path / "state").exists()


def test_without_a_key_there_is_no_gateway(tmp_path: Path) -> None:
    """A record that should be signed and is not would be noticed when it is needed."""
    key = tmp_path / "ledger.key"
    key.write_text("nonsense")
    key.chmod(0o600)
    with pytest.raises(KeyFileError, match="is damaged"):
        written(settings_of(tmp_path, key=str(key)), 1)
    assert not (tmp_path / "calls.db").exists()


def test_what_cannot_be_published_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And stops nothing."""
    for command in (["/nowhere/mail"], [sys.executable, "-c", "import sys; sys.exit('no net')"]):
        settings = settings_of(
            tmp_path, publish_file="/nowhere/note", publish_command=tuple(command)
        )
        written(settings, 1)
    assert "/nowhere/note" in caplog.text
    assert "the command mail that publishes checkpoints: No such file" in caplog.text
    assert "ended with 1: 'no net'" in caplog.text


def test_a_program_that_hangs_is_ended(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """And of the notes that waited for it the newest is published."""
    sink = tmp_path / "sink"
    program = (
        "import sys, time; note = sys.stdin.read(); open(sys.argv[1], 'a').write(note);"
        "time.sleep(60 if note == 'first' else 0)"
    )

    async def work() -> None:
        publisher = Publisher([sys.executable, "-c", program, str(sink)], timeout=0.5)
        publisher.put(b"first")
        await asyncio.sleep(0.1)
        for note in (b"second", b"third"):
            publisher.put(note)
        await publisher.close(within=5)

    asyncio.run(work())
    assert sink.read_text() == "firstthird"
    assert "has not published within 0.5 s" in caplog.text


def test_lines_go_when_they_are_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In whole segments, to the archive first; what is left holds, and says what was removed."""
    written(settings_of(tmp_path), 600, time="2020-01-01T00:00:00.000Z")
    written(settings_of(tmp_path), 10)
    before = entries(settings_of(tmp_path))
    monkeypatch.setattr(recording, "_FIRST_LOOK", 0.0)
    settings = settings_of(tmp_path, keep_days=30, archive=str(tmp_path / "archive"))

    async def work() -> None:
        async with recording.opened(settings, Clockwork.real()) as record:
            retaining = asyncio.create_task(record.retain())
            await until(lambda: "removed 512 lines" in caplog.text)
            retaining.cancel()

    with caplog.at_level(logging.INFO):
        asyncio.run(asyncio.wait_for(work(), 20))
    left = entries(settings)
    assert left[0]["seq"] == 512
    assert left[-1]["warnings"][0].startswith("removed: lines 0 to 511, ")
    (file,) = (tmp_path / "archive").iterdir()
    archived = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert [*archived, *left][: len(before)] == before


def rewritten(path: Path) -> None:
    """What somebody without the key may do: other lines, a chain that holds, no checkpoints."""
    prev = GENESIS
    kept: list[bytes] = []
    for text in path.read_bytes().splitlines():
        entry = json.loads(text)
        if entry["event"] != "checkpoint":
            entry.update(seq=len(kept), prev=prev, tool="forged")
            kept.append(json.dumps(entry, separators=(",", ":")).encode())
            prev = sha256(kept[-1]).hexdigest()
    path.write_bytes(b"".join(line + b"\n" for line in kept))


def test_what_somebody_else_wrote_is_not_signed(tmp_path: Path) -> None:
    """A ledger that was rewritten and lost its checkpoints would be a signed one after a start."""
    settings = replace(settings_of(tmp_path), ledger=f"jsonl:{tmp_path}/calls.jsonl")
    written(settings, 20)
    rewritten(tmp_path / "calls.jsonl")
    with pytest.raises(LedgerError, match=r"is not the ledger|is older than it was"):
        written(settings, 1)


def test_an_older_copy_is_not_gone_on_with(tmp_path: Path) -> None:
    """It says so, and how to go on with it all the same."""
    settings = settings_of(tmp_path)
    written(settings, 5)
    copy = (tmp_path / "calls.db").read_bytes()
    written(settings, 5)
    for left in tmp_path.glob("calls.db*"):
        left.unlink()
    (tmp_path / "calls.db").write_bytes(copy)
    with pytest.raises(LedgerError, match="is older than it was: it has 6 lines") as caught:
        written(settings, 1)
    assert (tmp_path / "calls.db").read_bytes()[100:] == copy[100:]
    memory = re.search(r"delete (\S+) first", str(caught.value))
    assert memory is not None
    Path(memory[1]).unlink()
    written(settings, 1)
    assert len(entries(settings)) == 8


def test_lines_that_nobody_signed_are_told_of(tmp_path: Path) -> None:
    """By the gateway that goes on behind them; so is a ledger that begins anew, or is foreign."""
    settings = settings_of(tmp_path)
    remarks = []

    async def work(settings: Settings) -> None:
        async with recording.opened(settings, Clockwork.real()) as record:
            remarks.append(record.remarks)
            await record.ledger.append(some_facts(event="refused"))

    async def killed() -> None:
        ledger = open_ledger(settings.ledger)
        for _ in range(3):
            await ledger.append(some_facts(event="refused"))
        await ledger.close()

    asyncio.run(killed())
    asyncio.run(work(settings))
    asyncio.run(work(settings))
    asyncio.run(killed())
    asyncio.run(work(settings))
    for left in tmp_path.glob("calls.db*"):
        left.unlink()
    asyncio.run(work(settings))
    asyncio.run(work(replace(settings, record=RecordSettings(key=str(tmp_path / "other.key")))))
    assert [" ".join(said) for said in remarks[:3]] == [
        "goes on behind 3 lines that stand behind any checkpoint",
        "",
        "goes on behind 3 lines that stand behind the checkpoint in line 6",
    ]
    assert re.fullmatch(r"begins anew: before it there was mcp\S+, of 12 lines", remarks[3][0])
    assert remarks[4] == ("goes on behind 2 lines that no key of this machine has signed",)


def test_evidence_is_not_overwritten(tmp_path: Path) -> None:
    """Two ledgers with one file to publish to: the second one's goes beside it."""
    note = tmp_path / "newest.txt"
    settings = settings_of(tmp_path, publish_file=str(note))
    written(settings, 1)
    first = note.read_bytes()
    written(replace(settings, ledger=f"sqlite:{tmp_path}/second.db"), 1, tool="other")
    assert note.read_bytes() == first
    (other,) = tmp_path.glob("newest-*.txt")
    assert Note.parse(other.read_bytes()).text != Note.parse(first).text
    keep = PublishedFile(note).keep
    keep(first)
    written(settings, 1)
    with pytest.raises(OSError, match="this one is over less"):
        keep(first)
