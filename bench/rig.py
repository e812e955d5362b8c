"""Processes on a core of their own, what they take, and that nothing of them stays behind."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PYTHON = sys.executable
_TICK = os.sysconf("SC_CLK_TCK")
_PATIENCE = 30.0
_GRACE = 5.0


class RigError(Exception):
    """Something that is to be measured does not work."""


@dataclass(frozen=True)
class Cores:
    """Where the client and the server behind run, and where what is measured does."""

    outer: int
    measured: int

    @classmethod
    def found(cls) -> Cores:
        """Two cores that this process may use; one twice where there is only one."""
        usable = sorted(os.sched_getaffinity(0))
        return cls(usable[0], usable[-1])


def pinned(core: int, line: list[str]) -> list[str]:
    """The command line that runs on one core only, with all that it starts."""
    return ["taskset", "-c", str(core), *line]


class Running:
    """A process that was started here, and its descendants."""

    def __init__(self, line: list[str], process: subprocess.Popen[bytes], said: Path) -> None:
        self.line = line
        self.process = process
        self._said = said

    def stderr(self) -> str:
        """The end of what it has said."""
        return self._said.read_text(encoding="utf-8", errors="replace")[-3_000:]

    def demand_alive(self) -> None:
        """RigError with what it said, if it has ended."""
        if self.process.poll() is not None:
            code = self.process.returncode
            raise RigError(f"{self.line} ended with {code}:\n{self.stderr()}")

    def cpu(self, *, tree: bool = True) -> float:
        """Seconds of processor time that it has taken, with its children unless told not to."""
        pids = _tree(self.process.pid) if tree else [self.process.pid]
        return sum(_cpu(pid) for pid in pids)

    def memory(self) -> float:
        """Mebibytes of memory that it occupies (RSS), without children."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text("utf-8").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0


@contextlib.contextmanager
def started(
    line: list[str], core: int, *, pipes: bool = False, env: Mapping[str, str] | None = None
) -> Iterator[Running]:
    """A process on a core, until the block ends; then it and its children are gone for sure."""
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "stderr"
        with said.open("wb") as sink:
            process = subprocess.Popen(
                pinned(core, line),
                cwd=folder,
                env={**os.environ, **(env or {})},
                stdin=subprocess.PIPE if pipes else subprocess.DEVNULL,
                stdout=subprocess.PIPE if pipes else sink,
                stderr=sink,
                bufsize=0,
            )
        running = Running(line, process, said)
        try:
            yield running
        finally:
            _stop(running)


def _stop(running: Running) -> None:
    process = running.process
    everybody = _tree(process.pid)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        print(f"{running.line} had to be killed", file=sys.stderr)
    for pid in everybody:
        if pid != process.pid or process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    process.wait()


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on just now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def await_port(running: Running, port: int) -> None:
    """Return as soon as somebody listens there."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        running.demand_alive()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.002)
    raise RigError(f"nobody listens on {port} after {_PATIENCE} s:\n{running.stderr()}")


def post(port: int, body: bytes, headers: Mapping[str, str]) -> tuple[dict[str, str], Any]:
    """The headers and the JSON that a POST to /mcp is answered with."""
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        asked.request("POST", "/mcp", body, dict(headers))
        said = asked.getresponse()
        text = said.read()
    finally:
        asked.close()
    if said.status >= 300:
        raise RigError(f"HTTP {said.status}: {text[:500]!r}")
    return {name.lower(): value for name, value in said.getheaders()}, json_of(text)


def json_of(text: bytes) -> Any:
    """A JSON body, or that of the only event of a stream; None for nothing."""
    if text.startswith((b"event:", b"data:", b"id:")):
        lines = [line[5:] for line in text.splitlines() if line.startswith(b"data:")]
        text = lines[-1]
    return json.loads(text) if text.strip() else None


def _tree(pid: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (fields := _fields(int(entry.name))):
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, pending = [], [pid]
    while pending:
        one = pending.pop()
        found.append(one)
        pending += parents.get(one, [])
    return found


def _cpu(pid: int) -> float:
    fields = _fields(pid)
    return (int(fields[11]) + int(fields[12])) / _TICK if fields else 0.0


def _fields(pid: int) -> list[str]:
    """What stands in /proc/PID/stat behind the name."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()
