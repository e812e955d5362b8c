"""Settings that change while the gateway runs."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from mcp_envelope.gateway.reload import Reloader
from mcp_envelope.gateway.settings import HttpSettings, Rules, Settings, UpstreamSettings
from mcp_envelope.gateway.settings_file import Changes, Given, adopt, changes, load

FIRST = 'log_level = "info"\n[upstreams.a]\ncommand = "x"\n'


class Watched:
    """A file of settings, and what a reloader made of its changes."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.write(FIRST)
        given = Given(config=str(file))
        self.applied: list[tuple[Settings, Changes]] = []
        self.heard = asyncio.Event()
        self.reloader = Reloader(load(given).settings, lambda: load(given).settings, self._apply)

    def _apply(self, settings: Settings, new: Changes) -> None:
        self.applied.append((settings, new))
        self.heard.set()

    def write(self, text: str) -> None:
        """Replace the file, as editors do."""
        fresh = self.file.with_suffix(".new")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(self.file)


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    """A file to change."""
    return Watched(tmp_path / "s.toml")


def test_what_may_change_is_taken_over(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    """Rules and log level count at once; a command waits for the restart, and that is said."""
    with caplog.at_level(logging.INFO):
        watched.write('log_level = "error"\n[upstreams.a]\ncommand = "y"\nrules.retries = 0\n')
        assert watched.reloader.look()
    ((settings, new),) = watched.applied
    assert new.safe == ("log_level", "upstreams.a.rules")
    assert new.needs_restart == ("upstreams.a.command",)
    assert (settings.log_level, settings.upstreams[0].command) == ("error", ("x",))
    assert settings.upstreams[0].rules == Rules(retries=0)
    assert watched.reloader.current is settings
    assert "these settings need a restart: upstreams.a.command" in caplog.text
    assert "settings taken over: log_level, upstreams.a.rules" in caplog.text
    caplog.clear()
    assert watched.reloader.look()
    assert (caplog.text, len(watched.applied)) == ("", 1)


def test_what_is_redacted_and_kept_is_taken_over(watched: Watched) -> None:
    """At once, as rules are; how long bodies may be, and whether time is counted, are not."""
    watched.write(
        FIRST.replace("[", "deterministic = true\nrecord.max_body_bytes = 7\n[", 1)
        + 'rules.bodies = "errors"\nrules.redact_keys = ["ssn"]\ntools.t.digests = false\n'
    )
    assert watched.reloader.look()
    ((settings, new),) = watched.applied
    assert new.safe == ("upstreams.a.rules", "upstreams.a.tools")
    assert set(new.needs_restart) == {"deterministic", "record.max_body_bytes"}
    upstream = settings.upstreams[0]
    assert upstream.rules == Rules(bodies="errors", redact_keys=("ssn",))
    assert upstream.tools["t"] == replace(upstream.rules, digests=False)
    assert (settings.deterministic, settings.record.max_body_bytes) == (False, 1024 * 1024)


def test_a_broken_file_changes_nothing(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    """Each mistake is logged, the settings before stay, and a mended file counts again."""
    before = watched.reloader.current
    watched.write('log_level = "x"\nnope = 1\n[upstreams.a]\ncommand = "x"\n')
    assert not watched.reloader.look()
    said = [record.getMessage() for record in caplog.records]
    assert [line.partition(": ")[2].partition(":")[0] for line in said[:2]] == ["nope", "log_level"]
    assert said[2:] == ["the settings are broken: those from before stay in force"]
    assert watched.reloader.look()  # the same broken file is not complained of each second
    watched.file.unlink()
    assert not watched.reloader.look()
    assert (watched.applied, watched.reloader.current) == ([], before)
    watched.write(FIRST.replace("info", "debug"))
    assert watched.reloader.look()
    assert watched.reloader.current.log_level == "debug"


def test_it_watches(watched: Watched) -> None:
    """A change is seen without anybody saying so."""

    async def scene() -> None:
        task = asyncio.create_task(watched.reloader.watch(interval=0.01))
        await asyncio.sleep(0)
        watched.write(FIRST.replace("info", "debug"))
        async with asyncio.timeout(10):
            await watched.heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())
    assert watched.applied[0][1].safe == ("log_level",)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no such signal here")
def test_a_signal_asks_for_a_look(watched: Watched) -> None:
    """SIGHUP makes it look now, and is let go of at the end."""
    before = signal.getsignal(signal.SIGHUP)

    async def scene() -> float:
        task = asyncio.create_task(watched.reloader.watch(interval=60))
        await asyncio.sleep(0)
        watched.write(FIRST.replace("info", "debug"))
        began = time.monotonic()
        os.kill(os.getpid(), signal.SIGHUP)
        async with asyncio.timeout(10):
            await watched.heard.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return time.monotonic() - began

    assert asyncio.run(scene()) < 5
    assert signal.getsignal(signal.SIGHUP) in (before, signal.SIG_DFL)


def test_servers_that_come_and_go_need_a_restart() -> None:
    """So do the door itself and the order of servers; the name of the file is no setting."""
    a, b = (UpstreamSettings(name=name, command=("x",)) for name in "ab")
    old = Settings(upstreams=(a, b))
    assert changes(old, replace(old, path="elsewhere")) == Changes()
    assert not changes(old, old)
    assert changes(old, replace(old, upstreams=(b, a))).needs_restart == ("upstreams",)
    gone = replace(old, upstreams=(a,), http=HttpSettings())
    assert changes(old, gone).needs_restart == ("http", "upstreams.b")
    assert adopt(old, gone) == old
    assert changes(gone, old).needs_restart == ("http", "upstreams.b")
