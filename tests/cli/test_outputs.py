"""How far long work has come is shown at a terminal, and nowhere else."""

from __future__ import annotations

import io
import sys

import pytest

from mcp_envelope.cli import outputs
from mcp_envelope.cli.outputs import Progress


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        """Always."""
        return True


class Clock:
    """A time that is set."""

    now = 100.0

    def monotonic(self) -> float:
        """The time."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time that progress is told by."""
    made = Clock()
    monkeypatch.setattr(outputs, "time", made)
    return made


def test_progress_at_a_terminal(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines, speed, part and time left; gone at the end; and silent in the first second."""
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    with Progress("verifying x", 1_000_000) as progress:
        clock.now += 0.9
        progress.at(1_000, 10)
        assert screen.getvalue() == ""
        clock.now += 1.1
        progress.at(250_000, 1_000)
        said = "verifying x: 1,000 lines, 500 a second, 25%, 6 s left"
        assert screen.getvalue() == f"\r\x1b[K{said}"
        clock.now += 0.1
        progress.at(260_000, 1_100)
        assert screen.getvalue() == f"\r\x1b[K{said}"
        clock.now += 98
        progress.at(10_000, 1_200)
        assert screen.getvalue().endswith("1%, 2 h 45 min left")
    assert screen.getvalue().endswith("left\r\x1b[K")


def test_progress_of_unknown_size(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing is said of what is left."""
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    with Progress("verifying -", 0) as progress:
        clock.now += 2
        progress.at(0, 50)
    assert screen.getvalue() == "\r\x1b[Kverifying -: 50 lines, 25 a second\r\x1b[K"


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_no_progress_elsewhere(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, stream: io.StringIO | None
) -> None:
    """A file or a closed stream gets nothing."""
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("x", 10) as progress:
        clock.now += 10
        progress.at(5, 5)
    if stream is not None:
        assert stream.getvalue() == ""


def test_a_terminal_that_is_gone(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work goes on without it."""
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    with Progress("x", 10) as progress:
        screen.close()
        clock.now += 10
        progress._is_on = True
        progress.at(5, 5)
        clock.now += 10
        progress.at(6, 6)
