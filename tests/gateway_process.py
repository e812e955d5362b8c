"""Runs `mcp-envelope run …` as a process of its own, and sees that nothing of it stays behind.

::

    with gateway("--upstream", url) as running:
        running.url                      # http://127.0.0.1:PORT/mcp
        running.stderr()                 # what it has said so far
    # here it was sent SIGTERM, ended within five seconds and left no process

Whatever starts the program itself (an MCP client over stdio) takes :func:`command`.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 20.0
GRACE = 5.0
MARK = "TESTED_GATEWAY"  # no MCP_ENVELOPE_…, which would have to be a setting


class GatewayError(AssertionError):
    """The gateway did not start, did not end, or left something behind."""


class Gateway:
    """A gateway that runs: where it listens, what it says, how it is ended."""

    def __init__(self, port: int, process: subprocess.Popen[bytes], said: Path, mark: str) -> None:
        self.port = port
        self.process = process
        self._said = said
        self._mark = mark

    @property
    def url(self) -> str:
        """The address of the MCP door."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def stderr(self) -> str:
        """Everything that it wrote to stderr so far."""
        return self._said.read_text(encoding="utf-8", errors="replace")

    def processes(self) -> set[int]:
        """It and all that it started and that lives."""
        return marked(self._mark) | descendants(self.process.pid)

    def await_ready(self, patience: float = PATIENCE) -> None:
        """Return when `/readyz` says 200; raise with what it said when it ends or is too slow."""
        until = time.monotonic() + patience
        while time.monotonic() < until:
            if self.process.poll() is not None:
                code = self.process.returncode
                raise GatewayError(f"the gateway ended with {code} at once:\n{self.stderr()}")
            if _status(self.port, "/readyz") == http.client.OK:
                return
            time.sleep(0.02)
        raise GatewayError(f"the gateway is not ready after {patience} s:\n{self.stderr()}")

    def stop(self, grace: float = GRACE) -> int:
        """Send SIGTERM; the exit code.

        Raises where it takes too long, leaves a process, or has ended before it was asked to.
        """
        if self.process.poll() is not None:
            code = self.process.returncode
            raise GatewayError(f"the gateway had ended by itself, with {code}:\n{self.stderr()}")
        before = self.processes()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(grace)
        except subprocess.TimeoutExpired:
            left = _kill(self.processes() | before)
            raise GatewayError(
                f"SIGTERM did not end the gateway within {grace} s (alive: {left}):\n"
                f"{self.stderr()}"
            ) from None
        self._demand_nobody(before)
        return code

    def _demand_nobody(self, before: set[int]) -> None:
        until = time.monotonic() + 1.0
        while left := (marked(self._mark) | {pid for pid in before if alive(pid)}):
            if time.monotonic() > until:
                names = {pid: name_of(pid) for pid in left}
                _kill(left)
                raise GatewayError(f"the gateway left processes behind: {names}\n{self.stderr()}")
            time.sleep(0.02)


def command(*words: str) -> list[str]:
    """The command line of `mcp-envelope run` with a ledger that leaves nothing behind."""
    beside = Path(sys.executable).with_name("mcp-envelope")
    program = str(beside) if beside.exists() else shutil.which("mcp-envelope")
    if program is None:
        raise GatewayError("there is no mcp-envelope beside this Python nor on the PATH")
    return [program, "run", "--ledger", "memory:", *words]


@contextlib.contextmanager
def gateway(
    *words: str, environment: Mapping[str, str] | None = None, port: int | None = None
) -> Iterator[Gateway]:
    """A gateway with an HTTP door, ready; at the end it is stopped and what is left of it told.

    ``words`` are those that say what is behind it: ``--upstream URL``, ``--from FILE``,
    ``--config FILE``, or ``--`` and a command.
    """
    port = port or free_port()
    mark = uuid.uuid4().hex
    around = {**os.environ, **(environment or {}), MARK: mark}
    line = command("--http", f"127.0.0.1:{port}", *words)
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "stderr"
        with said.open("wb") as sink:
            process = subprocess.Popen(
                line, cwd=ROOT, env=around, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink
            )
        running = Gateway(port, process, said, mark)
        try:
            running.await_ready()
            yield running
        except BaseException:
            _kill(running.processes())
            process.wait()
            raise
        running.stop()


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on just now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def descendants(pid: int) -> set[int]:
    """``pid`` and its children, their children and so on, as far as they live."""
    parents: dict[int, list[int]] = {}
    for child in _pids():
        parent = _stat(child)
        if parent is not None:
            parents.setdefault(parent[1], []).append(child)
    found, open_ones = set(), [pid]
    while open_ones:
        one = open_ones.pop()
        if alive(one):
            found.add(one)
        open_ones.extend(parents.get(one, []))
    return found


def marked(mark: str) -> set[int]:
    """The living processes that have inherited this mark, orphans too."""
    wanted = f"{MARK}={mark}".encode()
    found = set()
    for pid in _pids():
        with contextlib.suppress(OSError):
            if wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") and alive(pid):
                found.add(pid)
    return found


def alive(pid: int) -> bool:
    """Whether there is such a process, and not only its zombie."""
    found = _stat(pid)
    return found is not None and found[0] not in "ZX"


def name_of(pid: int) -> str:
    """The command line of a process; empty where it is gone."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return " ".join(word.decode(errors="replace") for word in words).strip()
    return ""


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())


def _stat(pid: int) -> tuple[str, int] | None:
    """State and parent of a process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, parent = text.rpartition(")")[2].split()[:2]
    return state, int(parent)


def _kill(pids: set[int]) -> dict[int, str]:
    names = {pid: name_of(pid) for pid in pids if alive(pid)}
    for pid in names:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return names


def _status(port: int, path: str) -> int | None:
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        asked.request("GET", path)
        return asked.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        asked.close()
