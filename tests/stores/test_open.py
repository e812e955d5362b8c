"""Ledger URLs, and the ledger that one gets without naming any."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from mcp_envelope.core.errors import ConfigError
from mcp_envelope.core.ports import Ledger, LedgerError
from mcp_envelope.stores import default_path, open_ledger


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def closed(ledger: Ledger) -> str:
    """Close a ledger; its URL."""
    asyncio.run(ledger.close())
    return ledger.url


@pytest.mark.parametrize(
    "url,where",
    [
        ("jsonl:a.jsonl", "a.jsonl"),
        ("JSONL:sub/a b.jsonl", "sub/a b.jsonl"),
        ("jsonl:~/c", "c"),
        ("jsonl:./x:y", "x:y"),
    ],
)
def test_a_url_names_a_file(home: Path, url: str, where: str) -> None:
    """Relative to the folder one is in, or to the home folder."""
    assert closed(open_ledger(url)) == f"jsonl:{home / where}"
    assert (home / where).exists()


@pytest.mark.parametrize(
    "url,said",
    [
        ("calls.jsonl", "write sqlite:PATH for a file; known: jsonl:, memory:, sqlite:"),
        ("", "known: jsonl:, memory:"),
        ("jsonl:", "needs the path of a file"),
        ("jsonl:a\0b", "needs the path of a file"),
        ("jsonl://host/share", "a file on this machine"),
        ("jsonl:~nobody-of-that-name/x", "no known home"),
        ("memory:x", "has no place"),
        ("sqlite:", "needs the path of a file"),
        ("sqlite:a\0b", "needs the path of a file"),
        ("sqlite://host/share", "a file on this machine"),
        ("jsnl:x", "no kind of ledger is called jsnl:; write sqlite:PATH"),
        ("postgresql://bob:secret@db/calls", "postgresql: yet; use sqlite:PATH"),
        ("mysql://bob:secret@db/calls", "mysql:; write sqlite:PATH"),
        ("bob+secret@db:1", "does not begin with a scheme"),
    ],
)
def test_a_bad_url_is_a_mistake_in_the_settings(url: str, said: str) -> None:
    """It says what to write instead, and repeats no password."""
    with pytest.raises(ConfigError) as caught:
        open_ledger(url)
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


def test_the_default_ledger_is_named_after_the_upstream(home: Path) -> None:
    """In the user's folder for state; a taken one is left alone for the next free one."""
    folder = home / ".local" / "state" / "mcp-envelope"
    if sys.platform == "darwin":
        folder = home / "Library" / "Application Support" / "mcp-envelope"
    ledgers = [open_ledger(None, name="time") for _ in range(3)]
    names = [f"sqlite:{folder / name}" for name in ("time.db", "time-2.db", "time-3.db")]
    assert [closed(ledger) for ledger in ledgers] == names
    assert closed(open_ledger(None, name="time")) == names[0]


def test_a_default_ledger_that_is_broken_is_not_passed_over() -> None:
    """Only one that is taken is: else a damaged record would go unnoticed."""
    path = default_path("time")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"hello")
    with pytest.raises(LedgerError, match="not a ledger"):
        open_ledger(None, name="time")


@pytest.mark.skipif(sys.platform == "darwin", reason="XDG is for others")
def test_xdg_state_home_is_followed_where_it_is_absolute(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    """As the XDG Base Directory specification has it."""
    monkeypatch.setenv("XDG_STATE_HOME", "/var/state")
    assert default_path("time") == Path("/var/state/mcp-envelope/time.db")
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    assert default_path("time") == home / ".local/state/mcp-envelope/time.db"


@pytest.mark.parametrize(
    "name",
    ["a/b", "../../etc/passwd", "..", ".", "", "a\0b", "é" * 300, "x" * 300, "\ud800", "a\nb"],
)
def test_any_name_gives_a_file_in_that_folder(name: str) -> None:
    """And different names different files."""
    path = default_path(name, 2)
    assert path.parent == default_path("time").parent
    assert path.name.isascii()
    assert path.name.isprintable()
    assert not path.name.startswith(".")
    assert len(path.name) < 110
    assert path != default_path(name.replace("/", "_") + "_", 2)
