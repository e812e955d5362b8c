"""Processes of a test: gateways and servers, all of which end with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.faults.clients import Http
from tests.faults.ledgers import Entry, calls_in, entries_at, path_of, verify

ROOT = Path(__file__).resolve().parent.parent.parent
STDIO = (sys.executable, "-m", "tests.faults.stdio_server")
#: Lines are forced to the disk.
POWER: Mapping[str, str] = MappingProxyType({"MCP_ENVELOPE_DURABILITY": "power"})
_URL = re.compile(rb"MCP on http://127\.0\.0\.1:(\d+)/mcp")
PIPE = asyncio.subprocess.PIPE
_NOTHING: Mapping[str, str] = MappingProxyType({})


def run(work: Coroutine[Any, Any, None], seconds: float = 25.0) -> None:
    """Run a test's coroutine, for so long at most."""

    async def bounded() -> None:
        try:
            async with asyncio.timeout(seconds):
                await work
        finally:
            while Http.made:
                Http.made.pop().reset()
            await asyncio.sleep(0)

    asyncio.run(bounded())


async def until(holds: Callable[[], bool], within: float = 5.0) -> None:
    """Wait until something holds that no event of ours tells of."""
    late = time.monotonic() + within
    while not holds():
        assert time.monotonic() < late, "that never came to hold"
        await asyncio.sleep(0.01)


class Scene:
    """A folder with the ledger, the notes of the servers and what the gateway logs."""

    def __init__(self, folder: Path, scheme: str = "sqlite", keep: Path | None = None) -> None:
        self.scheme = scheme
        self.ledger = path_of(scheme, keep or folder)
        self.url = f"{scheme}:{self.ledger}"
        self.state = folder / "state"
        self._notes = folder / "notes"
        self.log = bytearray()
        self.port = 0
        self.upstream: asyncio.subprocess.Process | None = None
        self._upstreams: list[asyncio.subprocess.Process] = []
        self._gateway: asyncio.subprocess.Process | None = None
        self._logging: asyncio.Task[None] | None = None
        self._said = asyncio.Event()

    @property
    def gateway(self) -> asyncio.subprocess.Process:
        """The gateway's process."""
        assert self._gateway is not None
        return self._gateway

    @property
    def public_key(self) -> Path:
        """The key that checkpoints are verified by: one of this scene only."""
        return self.state / "mcp-envelope" / "keys" / "ledger.pub"

    def environment(self, **more: str) -> dict[str, str]:
        """What all processes are given."""
        ours = {"PYTHONPATH": f"{ROOT}:{ROOT}/src", "XDG_STATE_HOME": str(self.state)}
        return {**os.environ, **ours, "NOTES": str(self._notes), **more}

    async def serve_http(self, *words: str, port: int = 0) -> str:
        """Start the HTTP server; its URL."""
        self.upstream = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.faults.http_server", *words),
            cwd=ROOT,
            env=self.environment(PORT=str(port)),
            stdout=PIPE,
        )
        self._upstreams.append(self.upstream)
        assert self.upstream.stdout is not None
        return f"http://127.0.0.1:{int(await self.upstream.stdout.readline())}/mcp"

    async def start(self, *words: str, http: bool = True, **how: Any) -> None:
        """Start the gateway, and wait until it is there."""
        await self.launch(*words, http=http, **how)
        if http:
            await self.listening()

    async def launch(
        self,
        *words: str,
        http: bool = True,
        stdout: int = PIPE,
        module: str = "mcp_envelope",
        named: bool = True,
        environment: Mapping[str, str] = _NOTHING,
    ) -> None:
        """Start the process of a gateway: with this ledger, unless it is to choose its own."""
        door = ["--http", "127.0.0.1:0"] if http else ["--stdio"]
        ledger = ["--ledger", self.url] if named else []
        self._gateway = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, "run", *door, *ledger, *words),
            cwd=ROOT,
            env=self.environment(**environment),
            stdin=PIPE,
            stdout=stdout,
            stderr=PIPE,
            limit=1 << 26,
        )
        self.log = bytearray()
        self._logging = asyncio.create_task(self._read_log(self._gateway, self.log))

    async def listening(self) -> None:
        """Wait until the gateway says where it listens."""
        while (found := _URL.search(self.log)) is None:
            await self.logged()
        self.port = int(found[1])

    async def logged(self) -> None:
        """Wait until the gateway logs something."""
        assert self._logging is not None
        self._said.clear()
        if not self._logging.done():
            await self._said.wait()
        assert not self._logging.done(), self.log.decode()

    async def _read_log(self, process: asyncio.subprocess.Process, log: bytearray) -> None:
        assert process.stderr is not None
        while data := await process.stderr.read(65536):
            log += data
            self._said.set()
        self._said.set()

    async def stop(self, number: int = signal.SIGTERM, within: float = 5.0) -> int:
        """Signal the gateway; its exit code. It has that much time."""
        self.gateway.send_signal(number)
        return await self.ended(within)

    async def ended(self, within: float = 5.0) -> int:
        """The exit code of the gateway, which has to end in time, and leave nothing."""
        began = time.monotonic()
        async with asyncio.timeout(within + 5):
            code = await self.gateway.wait()
            took = time.monotonic() - began
            if self._logging is not None:
                await self._logging
        assert took <= within, f"ended after {took:.1f} s: {self.log[-2000:].decode()}"
        assert b"Traceback" not in self.log, self.log.decode()
        return code

    async def close(self) -> None:
        """End what is left."""
        for process in (self._gateway, *self._upstreams):
            if process is not None and process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if self._logging is not None:
            await asyncio.wait({self._logging}, timeout=2)
            self._logging.cancel()
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # -- what is seen from outside --

    @property
    def memory(self) -> float:
        """The resident memory of the gateway in MB."""
        pages = int(Path(f"/proc/{self.gateway.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    @property
    def descriptors(self) -> int:
        """How many files the gateway has open, but for the ledger's, which come and go."""
        count = 0
        for one in Path(f"/proc/{self.gateway.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                count += not str(one.readlink()).startswith(str(self.ledger))
        return count

    def notes(self, kind: str) -> list[str]:
        """What the servers noted of one kind."""
        if not self._notes.exists():
            return []
        pairs = (line.partition(" ") for line in self._notes.read_text().splitlines())
        return [rest for found, _, rest in pairs if found == kind]

    async def noted(self, kind: str, count: int = 1, within: float = 5.0) -> list[str]:
        """Wait until the servers have noted so much of a kind."""
        late = time.monotonic() + within
        while len(found := self.notes(kind)) < count:
            assert time.monotonic() < late, f"{len(found)} of {count} {kind}"
            await asyncio.sleep(0.01)
        return found

    def alive(self) -> list[int]:
        """Which of the upstream's processes are still there."""
        return [pid for pid in map(int, self.notes("pid")) if _is_alive(pid)]

    async def none_alive(self, within: float = 3.0) -> None:
        """Wait until none is."""
        late = time.monotonic() + within
        while left := self.alive():
            assert time.monotonic() < late, f"orphans: {left}"
            await asyncio.sleep(0.01)

    def entries(self) -> list[Entry]:
        """The ledger, a chain without gaps."""
        return entries_at(self.ledger)

    async def verified(self, *words: str, code: int = 0) -> str:
        """What `ledger verify` prints of the ledger, which has to hold."""
        return await asyncio.to_thread(verify, self.url, self.state, *words, code=code)

    async def settled(self, count: int, within: float = 5.0) -> Counter[str]:
        """Wait until so many calls are settled; how often there was which outcome."""
        late = time.monotonic() + within
        while True:
            found = [each for each in self.entries() if each["event"] == "settled"]
            if len(found) >= count:
                return Counter(str(each["outcome"]) for each in found)
            assert time.monotonic() < late, f"{len(found)} of {count} are settled"
            await asyncio.sleep(0.01)

    def account(self, *, stopped: bool = True) -> Counter[str]:
        """See that each call was admitted once and settled once, in that order; the outcomes."""
        entries = calls_in(self.entries())
        assert entries[0]["event"] == "started"
        if stopped:
            assert entries[-1]["event"] == "stopped"
            assert [e["event"] for e in entries].count("stopped") == 1
        admitted: dict[str, int] = {}
        outcomes: Counter[str] = Counter()
        for entry in entries:
            if entry["event"] == "admitted":
                assert entry["request_id"] not in admitted
                admitted[entry["request_id"]] = entry["seq"]
            elif entry["event"] == "settled":
                assert admitted.pop(entry["request_id"]) < entry["seq"]
                outcomes[str(entry["outcome"])] += 1
        if stopped:
            assert not admitted, f"{len(admitted)} calls were never settled"
        return outcomes


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@contextlib.asynccontextmanager
async def scene(
    folder: Path, scheme: str = "sqlite", keep: Path | None = None
) -> AsyncIterator[Scene]:
    """A scene that is cleared at the end; its ledger is in ``keep``, if that is another folder."""
    made = Scene(folder, scheme, keep)
    try:
        yield made
    finally:
        await made.close()
