"""Make examples/calls.jsonl: a small ledger that docs and tests read, the same bytes each time.

    python tools/make_example_ledger.py          write the files
    python tools/make_example_ledger.py --check  exit 1 if they are stale

Beside it stand what was kept of one call's bodies (``calls.jsonl.bodies``), the public key of its
checkpoints (``calls.pub``) and a copy of the last checkpoint (``calls.checkpoint``), as somebody
outside would have kept it. The private key is no secret: it is made from a word.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from mcp_envelope.core.canonical import canonical  # noqa: E402
from mcp_envelope.core.entry import (  # noqa: E402
    GENESIS,
    Body,
    Facts,
    body_of_value,
    line,
    started,
    stopped,
)
from mcp_envelope.core.merkle import Frontier, leaf_hash  # noqa: E402
from mcp_envelope.core.seal import origin_of, read_sealed, sealed_line  # noqa: E402
from mcp_envelope.core.signing import Signer  # noqa: E402

FOLDER = Path("examples")
SIGNER = Signer("example", sha256(b"mcp-envelope example ledger").digest())
#: The most lines between two checkpoints.
EVERY = 12
_BEGIN = datetime(2026, 11, 19, 9, 0, tzinfo=UTC)
_DEFINITION = "sha256:" + sha256(b"a definition").hexdigest()
_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
_FAILED = {
    "arguments": {"path": "/srv/notes/tomorrow.md"},
    "result": {
        "content": [{"type": "text", "text": "tomorrow.md: no such file"}],
        "isError": True,
    },
}


@dataclass
class Chain:
    """Lines with their chain and tree, and the clock that they are written by."""

    lines: list[bytes] = field(default_factory=list)
    tree: Frontier = field(default_factory=Frontier)
    instance: str = ""
    now_ms: int = 0
    calls: int = 0
    unsealed: int = 0

    @property
    def time(self) -> str:
        """The time as lines say it."""
        return (_BEGIN + timedelta(milliseconds=self.now_ms)).isoformat(
            timespec="milliseconds"
        ).removesuffix("+00:00") + "Z"

    @property
    def prev(self) -> str:
        """The digest of the last line."""
        return sha256(self.lines[-1]).hexdigest() if self.lines else GENESIS

    def add(self, facts: Facts) -> None:
        """Write a line, and a checkpoint line where it is time for one."""
        self._write(line(facts, len(self.lines), self.prev))
        self.unsealed += 1
        if self.unsealed == EVERY:
            self.seal()

    def seal(self) -> None:
        """Write a checkpoint line."""
        origin = origin_of(sha256(self.lines[0]).hexdigest())
        self._write(
            sealed_line(
                len(self.lines),
                self.prev,
                time=self.time,
                instance=self.instance,
                origin=origin,
                root=self.tree.root(),
                signers=[SIGNER],
            )
        )
        self.unsealed = 0

    def _write(self, text: bytes) -> None:
        self.lines.append(text)
        self.tree.add(leaf_hash(text))

    def start(self, instance: str) -> None:
        """A run of the gateway begins."""
        self.instance = instance
        self.add(started(time=self.time, instance=instance))

    def stop(self, duration_ms: float) -> None:
        """It ends in order."""
        self.add(stopped(time=self.time, instance=self.instance, duration_ms=duration_ms))
        self.seal()

    def wait(self, ms: int) -> None:
        """Let time go by."""
        self.now_ms += ms

    def about(self, tool: str | None, peer: str, arguments: object, **more: Any) -> dict[str, Any]:
        """What all lines of a call say."""
        self.calls += 1
        random = sha256(f"call {self.calls}".encode()).hexdigest()
        ours = f"{random[:8]}-{random[8:12]}-4{random[13:16]}-8{random[17:20]}-{random[20:32]}"
        return {
            "kind": f"mcp/request:tools/call:{tool}",
            "tool": tool,
            "definition": _DEFINITION if tool is not None else None,
            "peer": peer,
            "request_id": ours,
            "client_id": self.calls,
            "run_id": ours,
            "door": "http",
            "dialect": "mcp",
            "input": body_of_value(arguments),
            **more,
        }

    def admit(self, about: dict[str, Any]) -> None:
        """A call is let through."""
        self._say("admitted", about)

    def settle(self, about: dict[str, Any], ms: int, result: object = None, **more: Any) -> None:
        """It ends ``ms`` after it was let through."""
        self.wait(ms)
        if result is not None:
            more["output"] = body_of_value(result)
        self._say("settled", {"outcome": "ok", "duration_ms": ms + 0.25, **about, **more})

    def refuse(
        self, about: dict[str, Any], code: str, message: str, event: str = "refused"
    ) -> None:
        """It is stopped before the tool knows of it."""
        error = {"code": code, "message": message}
        self._say(event, {**about, "outcome": code, "error": error, "duration_ms": 0.125})

    def _say(self, event: Any, said: dict[str, Any]) -> None:
        self.add(Facts(event=event, time=self.time, instance=self.instance, **said))


def _text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def _first_run(chain: Chain) -> None:
    """A run that is cut off while a call is under way."""
    chain.start("b17fa53e0c9d4f21")
    chain.wait(61_204)
    weather = chain.about("get_weather", "agent-7", {"city": "Oslo"}, trace_id=_TRACE)
    chain.admit(weather)
    chain.settle(weather, 312, _text("-3 °C, snow"))
    chain.wait(40)
    read = chain.about("read_file", "agent-7", {"path": "/srv/notes/today.md"}, trace_id=_TRACE)
    search = chain.about("search", "night-report", {"text": "snow", "limit": 3})
    chain.admit(read)
    chain.wait(2)
    chain.admit(search)
    chain.settle(read, 7, _text("buy a shovel"))
    chain.settle(search, 1_840, _text("2 pages found"))
    chain.wait(90_000)
    bad = chain.about("read_file", "agent-7", {"file": "today.md"})
    chain.refuse(bad, "INVALID_TOOL_INPUT", "Invalid tool input: required at /params/arguments")
    chain.wait(15_500)
    failed = chain.about("read_file", "agent-7", _FAILED["arguments"])
    chain.admit(failed)
    error = {"code": "EXECUTION_FAILED", "message": "Tool failed"}
    outcome = {"outcome": "EXECUTION_FAILED", "error": error}
    chain.settle(failed, 4, _FAILED["result"], **outcome)
    chain.wait(600_000)
    nothing: dict[str, Any] = {"kind": None, "dialect": "mcp", "client_id": None, "run_id": None}
    torn = chain.about(None, "anonymous", None, **nothing, input=Body(state="absent"))
    chain.refuse(torn, "INVALID_ENVELOPE", "Invalid MCP envelope at line 1, column 42", "malformed")
    chain.wait(2_750)
    chain.admit(chain.about("send_mail", "night-report", {"to": "ada@example.com", "text": "Hi"}))


def _second_run(chain: Chain) -> None:
    """A run that ends in order."""
    chain.start("e2c06d7714ab8835")
    chain.wait(5_000)
    rest = canonical({"password": "[redacted]", "user": "ada"})
    warning = (
        f"redacted: input at /password; the rest sha256:{sha256(rest).hexdigest()}, "
        f"{len(rest)} bytes"
    )
    login = chain.about(
        "log_in", "agent-7", None, input=Body(state="redacted"), warnings=(warning,)
    )
    chain.admit(login)
    chain.settle(login, 150, _text("welcome"))
    chain.wait(1_000)
    slow = chain.about("search", "night-report", {"text": "shovel", "limit": 50})
    chain.admit(slow)
    fault = {"code": "TIMEOUT", "message": "Timed out"}
    chain.settle(slow, 30_000, outcome="TIMEOUT", error=fault)
    chain.wait(800)
    kind = "mcp/request:resources/read:file:///srv/notes/today.md"
    page = chain.about(None, "agent-7", None, kind=kind, trace_id=_TRACE, input=Body())
    chain.admit(page)
    chain.settle(page, 3, {"contents": [{"uri": "file:///srv/notes/today.md", "text": "…"}]})
    chain.wait(60_000)
    chain.stop(97_003.5)


def make() -> dict[str, bytes]:
    """The files by name."""
    chain = Chain()
    _first_run(chain)
    chain.wait(3_600_000)
    _second_run(chain)
    bodies = [canonical(_FAILED["arguments"]), canonical(_FAILED["result"])]
    kept = [b'{"digest":"sha256:%b","body":%b}\n' % (_digest(body), body) for body in bodies]
    last = read_sealed(chain.lines[-1], _warnings(chain.lines[-1]))
    return {
        "calls.jsonl": b"".join(text + b"\n" for text in chain.lines),
        "calls.jsonl.bodies": b"".join(kept),
        "calls.pub": f"{SIGNER.key}\n".encode(),
        "calls.checkpoint": str(last.note).encode(),
    }


def _digest(data: bytes) -> bytes:
    return sha256(data).hexdigest().encode()


def _warnings(text: bytes) -> list[str]:
    found: list[str] = json.loads(text)["warnings"]
    return found


def run(arguments: list[str] | None = None) -> int:
    """Run as a program."""
    usage = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    usage.add_argument("--check", action="store_true", help="change nothing, exit 1 if stale")
    options = usage.parse_args(arguments)
    stale = [
        name
        for name, data in make().items()
        if not (ROOT / FOLDER / name).exists() or (ROOT / FOLDER / name).read_bytes() != data
    ]
    if not stale:
        return 0
    if options.check:
        names = ", ".join(stale)
        print(f"stale: {names}\nrun: python tools/make_example_ledger.py", file=sys.stderr)
        return 1
    for name, data in make().items():
        (ROOT / FOLDER / name).write_bytes(data)
    print(f"written: {', '.join(stale)}")
    return 0


if __name__ == "__main__":
    sys.exit(run())
