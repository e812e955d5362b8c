"""The thread that keeps the index up to date: in time, out of the way, and never loud."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.stores.test_index import call, write

from mcp_envelope.core.ports import LedgerError, Source
from mcp_envelope.stores import read_ledger
from mcp_envelope.stores.following import Follower


@pytest.fixture(params=["sqlite", "jsonl"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A ledger with a call in it, of each kind that is a file."""
    made = f"{request.param}:{tmp_path / 'calls'}"
    write(made, *call(1))
    return made


def known(path: Path) -> int:
    """How many lines the index knows, without following it."""
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as found:
            rows = found.execute("SELECT value FROM state WHERE name = 'lines'").fetchall()
    except sqlite3.Error:
        return 0
    return int(rows[0][0]) if rows else 0


def wait_for(test: Callable[[], bool], seconds: float = 10.0) -> float:
    """Wait until something holds; how long that took."""
    begin = time.monotonic()
    while not test():
        assert time.monotonic() - begin < seconds
        time.sleep(0.01)
    return time.monotonic() - begin


def test_it_follows_within_two_seconds(url: str, tmp_path: Path) -> None:
    """What is written while it runs is in the index soon."""
    follower = Follower(lambda: read_ledger(url))
    follower.start()
    try:
        index = tmp_path / "calls.index"
        wait_for(lambda: known(index) == 2)
        for count in (4, 6):
            write(url, *call(count))
            assert wait_for(lambda count=count: known(index) == count) < 2  # type: ignore[misc]
    finally:
        follower.stop()
    assert not [one for one in threading.enumerate() if one.name == "ledger-index"]


def test_it_ends_at_once(url: str, tmp_path: Path) -> None:
    """Also in the middle of much work, and where it was never started."""
    write(url, *(line for number in range(2, 2_000) for line in call(number)))
    for pause in (0.0, 0.01, 0.05):
        follower = Follower(lambda: read_ledger(url), most=50, pause=0.0)
        follower.start()
        time.sleep(pause)
        begin = time.monotonic()
        follower.stop()
        assert time.monotonic() - begin < 1
        assert not list(tmp_path.glob("calls.index-*"))
    Follower(lambda: read_ledger(url)).stop()


def test_trouble_is_logged_once_and_tried_again(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A ledger that cannot be read, or an index that cannot be written: the gateway goes on."""
    tries = []

    def open_source() -> Source:
        tries.append(1)
        if len(tries) < 3:
            raise LedgerError("it is not there")
        return read_ledger(url)

    follower = Follower(open_source, retry=0.01)
    with caplog.at_level(logging.WARNING):
        follower.start()
        wait_for(lambda: known(tmp_path / "calls.index") == 2)
        follower.stop()
    said = [record.message for record in caplog.records]
    assert said == ["the search index cannot follow the record: it is not there; trying again"]


@pytest.mark.parametrize("error", [TypeError("odd"), KeyError("odd"), OverflowError("odd")])
def test_what_an_odd_index_leads_to_is_tried_again(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """It is trouble like any other."""
    tries = []

    def open_source() -> Source:
        tries.append(1)
        if len(tries) < 3:
            raise error
        return read_ledger(url)

    follower = Follower(open_source, retry=0.01)
    with caplog.at_level(logging.WARNING):
        follower.start()
        wait_for(lambda: known(tmp_path / "calls.index") == 2)
        follower.stop()
    assert ["odd" in record.message for record in caplog.records] == [True]


def test_what_nobody_thought_of_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends the thread, but not silently: the log says what, and the hook of threads where."""

    class UnforeseenError(Exception):
        """What no code here raises."""

    def open_source() -> Source:
        raise UnforeseenError("so odd")

    shown: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda told: shown.append(told.exc_type))
    follower = Follower(open_source, retry=0.01)
    with caplog.at_level(logging.WARNING):
        follower.start()
        wait_for(lambda: shown != [])
        follower.stop()
    assert shown == [UnforeseenError]
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "UnforeseenError: so odd; the record itself is complete" in record.message


def test_it_makes_no_temporary_index(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody would find it."""
    (tmp_path / "calls.index").mkdir()
    follower = Follower(lambda: read_ledger(url), retry=0.01)
    with caplog.at_level(logging.WARNING):
        follower.start()
        wait_for(lambda: bool(caplog.records))
        time.sleep(0.1)
        follower.stop()
    (record,) = caplog.records
    assert "cannot be written" in record.message
