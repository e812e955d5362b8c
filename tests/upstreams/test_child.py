"""Children start, end and crash, and it is always said what that means for a call."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.upstreams.conftest import Run
from tests.upstreams.peers import PEER, ask, ended, following, link, request, upstream, values

from mcp_envelope.core.errors import EnvelopeError, UsageError
from mcp_envelope.core.link import Upstream
from mcp_envelope.core.strict import Limits
from mcp_envelope.upstreams import backoff, upstream_class
from mcp_envelope.upstreams.backoff import UnavailableError
from mcp_envelope.upstreams.stdio import StdioUpstream

_WAIT = "import sys; sys.stdin.readline(); "
_ANSWER = '{"jsonrpc":"2.0","id":1,"result":{"ok":true}}'


def test_the_table_loads_the_class() -> None:
    """The family's table leads to the class; a wrong name is told the right ones."""
    assert upstream_class("stdio") is StdioUpstream
    with pytest.raises(UsageError, match="known: http, stdio"):
        upstream_class("stdoi")
    with pytest.raises(UsageError):
        StdioUpstream("x", "one text")
    found: Upstream = StdioUpstream("x", ["y"])
    assert found.relay() is None
    assert "secret" not in repr(StdioUpstream("x", ["y"], env={"KEY": "secret"}).__dict__)


@pytest.mark.parametrize(
    "command,cwd,said",
    [
        (("no-such-program-here",), None, "there is no program 'no-such-program-here'"),
        ((__file__,), None, "may not be executed"),
        ((sys.executable,), "/no/such/folder", "there is no folder '/no/such/folder'"),
        (("a\0b",), None, "could not be started"),
    ],
)
def test_what_cannot_be_started_says_why(
    run: Run, command: tuple[str, ...], cwd: str | None, said: str
) -> None:
    """A command that cannot be started is UPSTREAM_UNAVAILABLE with upstream, reason, hint."""

    async def work() -> None:
        async with upstream(*command, cwd=cwd) as made:
            for stateless in (True, False):
                with pytest.raises(UnavailableError, match=said) as caught:
                    await made.connect(stateless=stateless)
                assert caught.value.code == "UPSTREAM_UNAVAILABLE"
                assert "'peer'" in caught.value.message
                assert caught.value.hint

    run(work())


def test_env_is_added(run: Run) -> None:
    """The child has the gateway's environment and what is added to it."""
    code = "import os; print(os.environ['PATH'] and os.environ['ADDED'], flush=True); input()"

    async def work() -> None:
        program = (sys.executable, "-S", "-c", f"{_WAIT}{code}")
        async with upstream(*program, env={"ADDED": _ANSWER}) as made:
            opened = await made.connect(stateless=False)
            assert await ask(opened, 1, "x") == {"ok": True}

    run(work())


def test_a_child_that_exits_at_once_had_nothing(run: Run) -> None:
    """What a child never read did not reach it: UPSTREAM_UNAVAILABLE with the exit code."""

    async def work() -> None:
        program = (sys.executable, "-S", "-c", "raise SystemExit(3)")
        async with upstream(*program) as made:
            for stateless in (False, True):
                opened = await made.connect(stateless=stateless)
                with pytest.raises(EnvelopeError, match="ended with exit code 3 before") as caught:
                    await values(await opened.send(request(1, "x"), {}))
                assert caught.value.code == "UPSTREAM_UNAVAILABLE"

    run(work())


@pytest.mark.parametrize("stateless", [True, False])
def test_a_crash_under_a_call_leaves_its_outcome_unknown(run: Run, stateless: bool) -> None:
    """Each call that was under way ends with OUTCOME_UNKNOWN and how the child ended."""

    async def work() -> None:
        async with link(stateless=stateless) as opened:
            first = await ask(opened, 0, "echo")
            waiting = await opened.send(request(1, "hang"), {})
            dying = await opened.send(request(2, "die", code=7), {})
            for reply in (waiting, dying):
                with pytest.raises(EnvelopeError, match="exit code 7") as caught:
                    await values(reply)
                assert caught.value.code == "OUTCOME_UNKNOWN"
            again = await ask(opened, 3, "echo")
            assert again["pid"] != first["pid"]
            with pytest.raises(EnvelopeError, match="SIGKILL"):
                await ask(opened, 4, "die", signal=int(signal.SIGKILL))

    run(work())


def test_starts_are_spaced(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second start follows at once, a third has to wait, and it is said how long."""
    monkeypatch.setattr(backoff, "_FIRST", 1.0)  # a busy machine takes its time

    async def work() -> None:
        async with link() as opened:
            for _ in range(2):
                with pytest.raises(EnvelopeError, match="exit code 1"):
                    await ask(opened, 1, "die", code=1)
            began = time.monotonic()
            with pytest.raises(UnavailableError, match="retry after ") as caught:
                await opened.send(request(1, "echo"), {})
            wait = caught.value.retry_after
            assert wait is not None
            assert 0 < wait <= 1.0
            assert time.monotonic() - began < 0.5
            await asyncio.sleep(wait)
            assert (await ask(opened, 2, "echo"))["pid"]

    run(work())


def test_what_does_not_end_is_made_to(run: Run) -> None:
    """A child that ignores SIGTERM and its own child end in about twice the grace."""

    async def work() -> None:
        async with upstream(grace=0.3) as made:
            opened = await made.connect(stateless=False)
            await ask(opened, 1, "stubborn")
            pids = await ask(opened, 2, "grandchild")
            began = time.monotonic()
        assert time.monotonic() - began < 3
        assert await ended(pids["pid"])
        assert await ended(pids["grandchild"])

    run(work())


def test_what_a_crashed_child_left_is_ended(run: Run) -> None:
    """After a crash the rest of the group is ended too."""

    async def work() -> None:
        async with link(grace=0.2) as opened:
            pids = await ask(opened, 1, "grandchild")
            with pytest.raises(EnvelopeError):
                await ask(opened, 2, "die", code=1)
            assert await ended(pids["grandchild"])

    run(work())


def test_without_pidfd_a_thread_waits(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system has no pidfd (macOS), the end of a child is noticed all the same."""
    monkeypatch.delattr(os, "pidfd_open", raising=False)

    async def work() -> None:
        async with link() as opened:
            with pytest.raises(EnvelopeError, match="exit code 5"):
                await ask(opened, 2, "die", code=5)
            assert (await ask(opened, 3, "echo"))["pid"]

    run(work())


def test_whoever_is_cancelled_while_closing_leaves_no_orphan(run: Run) -> None:
    """Even when closing is cut off, the child ends with the loop."""
    pids: list[int] = []

    async def work() -> None:
        made = StdioUpstream("peer", PEER, grace=5.0)
        opened = await made.connect(stateless=False)
        pids.append((await ask(opened, 1, "stubborn2"))["pid"])
        await ask(opened, 2, "stubborn")
        closing = asyncio.create_task(made.close())
        await asyncio.sleep(0.05)
        closing.cancel()
        await asyncio.wait([closing])

    run(work())
    assert not Path(f"/proc/{pids[0]}").exists()


def test_a_deaf_child_stops_the_writing(run: Run) -> None:
    """Who sends to a child that does not read has to wait; closing takes no longer for it."""

    async def work() -> None:
        async with upstream(grace=0.3) as made:
            opened = await made.connect(stateless=False)
            await ask(opened, 0, "deaf")
            sent = 0
            waiting: asyncio.Task[Any] | None = None
            while waiting is None or waiting.done():
                sent += 1
                frame = request(sent, "echo", text="x" * 50_000)
                waiting = asyncio.create_task(opened.send(frame, {}))
                await asyncio.sleep(0)
            assert 3 < sent < 20
            began = time.monotonic()
        assert time.monotonic() - began < 3
        with pytest.raises(UnavailableError):
            await waiting

    run(work())


def test_a_mute_child_is_ended(run: Run) -> None:
    """A child that closes its output can answer nobody: its calls end, and another is started."""

    async def work() -> None:
        async with link(grace=0.1) as opened:
            first = await ask(opened, 0, "echo")
            with pytest.raises(EnvelopeError, match="closed its standard output") as caught:
                await ask(opened, 1, "mute")
            assert caught.value.code == "OUTCOME_UNKNOWN"
            assert await ended(first["pid"])
            assert (await ask(opened, 2, "echo"))["pid"] != first["pid"]

    run(work())


def test_a_call_ends_with_its_conversation(run: Run) -> None:
    """Closing a link or an upstream gives each call that is under way its end."""

    async def work() -> None:
        async with upstream() as made:
            for stateless in (True, False):
                opened = await made.connect(stateless=stateless)
                waiting = await opened.send(request(1, "hang"), {})
                await opened.close()
                await opened.close()
                with pytest.raises(EnvelopeError, match="was closed") as caught:
                    await following(waiting)
                assert caught.value.code == "OUTCOME_UNKNOWN"
                with pytest.raises(UnavailableError):
                    await opened.send(request(1, "hang"), {})
        with pytest.raises(UnavailableError, match="is closed"):
            await made.connect(stateless=True)

    run(work())


def test_processes_are_bounded(run: Run) -> None:
    """One conversation more than there may be processes is refused, naming the setting."""

    async def work() -> None:
        async with upstream(processes=2) as made:
            first = await made.connect(stateless=False)
            await made.connect(stateless=True)
            with pytest.raises(UnavailableError, match="`processes`"):
                await made.connect(stateless=False)
            await first.close()
            await made.connect(stateless=False)

    run(work())


def test_a_long_line_ends_its_call_only(run: Run) -> None:
    """An answer beyond the limit is TOO_LARGE for its call, and the next one is fine."""

    async def work() -> None:
        async with link(limits=Limits(result=200_000)) as opened:
            with pytest.raises(EnvelopeError, match="more than the 200,000") as caught:
                await ask(opened, 1, "big", size=3_000_000)
            assert caught.value.code == "TOO_LARGE"
            assert len((await ask(opened, 2, "big", size=190_000))["text"]) == 190_000

    run(work())


def test_a_wrapper_that_waits_is_ended_with_what_it_started(run: Run) -> None:
    """Where the command is a shell around the server, the server ends too."""

    async def work() -> None:
        command = " ".join(PEER) + "; exit 6"
        async with upstream("sh", "-c", command, grace=0.5) as made:
            opened = await made.connect(stateless=False)
            pid = (await ask(opened, 1, "echo"))["pid"]
            with pytest.raises(EnvelopeError, match="exit code 6"):
                await ask(opened, 2, "die", code=1)
            again = (await ask(opened, 3, "echo"))["pid"]
            await ask(opened, 4, "stubborn")
        assert await ended(pid)
        assert await ended(again)

    run(work())


@pytest.mark.parametrize("hard", [True, False])
def test_children_of_a_gateway_that_is_killed(hard: bool) -> None:
    """A child ends with its input when the gateway has no time left to end it."""
    code = (
        "import asyncio, sys\n"
        "from mcp_envelope.upstreams.stdio import StdioUpstream\n"
        "from tests.upstreams.peers import PEER, ask\n"
        "async def main():\n"
        "    opened = await StdioUpstream('p', PEER).connect(stateless=False)\n"
        "    print((await ask(opened, 1, 'echo'))['pid'], flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    root = Path(__file__).resolve().parent.parent.parent
    made = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root}/src:{root}"})  # fmt: skip
    assert made.stdout is not None
    with made:
        pid = int(made.stdout.readline())
        made.send_signal(signal.SIGKILL if hard else signal.SIGTERM)
    assert asyncio.run(ended(pid))
