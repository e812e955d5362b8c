"""Who is compared: how each is started, and what its first answer shows."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from instant import TOOLS, answer
from rig import HERE, PYTHON, ROOT, Cores, RigError, Running, await_port, free_port, post, started
from wrk import call, headers, opening

PEERS = ROOT / ".venvs"
OURS = Path(PYTHON).with_name("mcp-envelope")
INSTANT = [PYTHON, str(HERE / "instant.py")]
LABEL = "dev.mcp-envelope/record"
ERAS = ("legacy", "2026-07-28")


@dataclass
class Party:
    """One that runs. ``sessions`` holds, by era, the session that its calls belong to."""

    name: str
    port: int
    running: Running
    eras: tuple[str, ...] = ERAS
    tree: bool = True
    sessions: dict[str, str | None] = field(default_factory=dict)

    def open(self, tools: Iterable[str] = TOOLS) -> None:
        """Shake hands where the era has it, and see that the tools are answered as they must."""
        for era in self.eras:
            stateless = era != "legacy"
            self.sessions[era] = None if stateless else self._greet()
            for tool in tools:
                head = headers(tool, self.sessions[era], stateless=stateless)
                _, said = post(self.port, call(tool, 1, stateless=stateless), head)
                demand_right(tool, said, f"{self.name} ({era})")

    def _greet(self) -> str | None:
        body, head = opening()
        found, _ = post(self.port, body, head)
        session = found.get("mcp-session-id")
        done = orjson.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
        post(self.port, done, headers("look", session, stateless=False))
        return session


def demand_right(tool: str, said: Any, who: str) -> None:
    """RigError unless this is the instant server's answer; our label may be with it."""
    result = said.get("result") if isinstance(said, dict) else None
    right = orjson.loads(answer(call(tool, 1, stateless=False)) or b"")["result"]
    if (
        not isinstance(result, dict)
        or result.get("structuredContent") != right["structuredContent"]
    ):
        raise RigError(f"{who} answers a call of {tool!r} with {str(said)[:500]}")
    if who.startswith("ours") and LABEL not in result.get("_meta", {}):
        raise RigError(f"{who} puts no label on the answer to {tool!r}")


def upstream_line(port: int) -> list[str]:
    """The command line of the instant server over HTTP."""
    fast = ["--loop", "uvloop", "--http", "httptools", "--lifespan", "off"]
    quiet = ["--log-level", "warning", "--no-access-log", "--no-server-header", "--no-date-header"]
    place = ["--app-dir", str(HERE), "--port", str(port)]
    return [PYTHON, "-m", "uvicorn", "instant:app", *place, *fast, *quiet]


def lines(url: str, cores: Cores) -> Mapping[str, Any]:
    """The command line of each party but the direct one, given its port, in front of ``url``."""
    fastmcp = [str(PEERS / "fastmcp" / "bin" / "python"), str(HERE / "fastmcp_proxy.py")]
    proxied = ["--", "taskset", "-c", str(cores.outer), *INSTANT]
    proxy = str(PEERS / "mcp-proxy" / "bin" / "mcp-proxy")
    quiet = ["--log-level", "ERROR"]
    return {
        "forwarder": lambda port: [PYTHON, str(HERE / "forwarder.py"), str(port), url],
        "ours, memory": lambda port: ours("memory:", "--http", str(port), "--upstream", url),
        "ours, jsonl": lambda port: ours(
            "jsonl:calls.jsonl", "--http", str(port), "--upstream", url
        ),
        "mcp-proxy": lambda port: [proxy, "--port", str(port), *quiet, *proxied],
        "FastMCP": lambda port: [*fastmcp, str(port), url, "auto"],
    }


def ours(ledger: str, *words: str) -> list[str]:
    """The command line of the gateway; a relative ledger is in a folder of its own."""
    return [str(OURS), "run", "--ledger", ledger, *words]


def missing() -> list[str]:
    """Those that cannot be compared, since their environments are not there."""
    wanted = {"mcp-proxy": "mcp-proxy", "FastMCP": "fastmcp"}
    return [name for name, folder in wanted.items() if not (PEERS / folder / "bin").is_dir()]


def start_all(stack: ExitStack, cores: Cores) -> list[Party]:
    """Everybody, ready and found to answer rightly; the direct one is an instant server itself."""
    behind = free_port()
    hidden = stack.enter_context(started(upstream_line(behind), cores.outer))
    await_port(hidden, behind)
    port = free_port()
    parties = [
        Party("direct", port, stack.enter_context(started(upstream_line(port), cores.measured)))
    ]
    for name, line in lines(f"http://127.0.0.1:{behind}/mcp", cores).items():
        if name in missing():
            print(f"SKIPPED: {name}: `python3 tools/peers.py` makes it", file=sys.stderr)
            continue
        port = free_port()
        running = stack.enter_context(started(line(port), cores.measured))
        eras = ("legacy",) if name == "mcp-proxy" else ERAS
        # mcp-proxy has stdio servers behind it only: that child is no part of what it takes.
        parties.append(Party(name, port, running, eras, tree=name != "mcp-proxy"))
    for party in parties:
        await_port(party.running, party.port)
        party.open()
    return parties


def first_answer(line: list[str], port: int, core: int, name: str) -> float:
    """Seconds from starting a process to the first call that it has answered rightly."""
    began = time.perf_counter()
    with started(line, core) as running:
        await_port(running, port)
        party = Party(name, port, running, ("legacy",))
        party.open(["look"])
        return time.perf_counter() - began
