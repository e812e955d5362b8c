"""Driving a server with `wrk` and prepared requests."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson
from instant import ARGUMENTS, LEGACY, STATELESS
from rig import RigError, pinned

#: So many requests are made beforehand, each with an id of its own, and sent in turn.
_PREPARED = 256
_META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
# A long bracket of this level stands in no JSON that is sent here.
_SCRIPT = """
local prepared = {}
local turn = 0
function init(args)
  local first, last = [===[%(first)s]===], [===[%(last)s]===]
  for i = 1, %(count)d do
    prepared[i] = wrk.format("POST", "/mcp", nil, first .. i .. last)
  end
end
function request()
  turn = turn %% %(count)d + 1
  return prepared[turn]
end
wrk.headers = {%(headers)s}
function done(summary, latency, requests)
  local e = summary.errors
  io.write("RESULT ", string.format(
    '{"calls":%%d,"micros":%%d,"p50":%%g,"p99":%%g,"errors":%%d}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    e.connect + e.read + e.write + e.status + e.timeout))
end
"""


@dataclass(frozen=True)
class Driven:
    """What `wrk` has seen: calls, calls per second, and latencies in milliseconds."""

    calls: int
    rate: float
    p50: float
    p99: float


def is_there() -> bool:
    """Whether there is `wrk`, and `taskset`."""
    return shutil.which("wrk") is not None and shutil.which("taskset") is not None


def call(tool: str, id: object, *, stateless: bool) -> bytes:
    """A tools/call, its id early in the text."""
    params: dict[str, object] = {"name": tool, "arguments": ARGUMENTS[tool]}
    if stateless:
        params["_meta"] = _META
    return orjson.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})


def headers(tool: str, session: str | None, *, stateless: bool) -> dict[str, str]:
    """The headers of such a call."""
    if stateless:
        named = {"mcp-method": "tools/call", "mcp-name": tool}
        return {**_JSON, "mcp-protocol-version": STATELESS, **named}
    head = {**_JSON, "mcp-protocol-version": LEGACY}
    return {**head, "mcp-session-id": session} if session is not None else head


def opening() -> tuple[bytes, dict[str, str]]:
    """An initialize request, and its headers."""
    params = {"protocolVersion": LEGACY, "capabilities": {}}
    params |= {"clientInfo": {"name": "bench", "version": "1"}}
    asked = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    return orjson.dumps(asked), _JSON


def drive(
    port: int,
    body: tuple[bytes, bytes],
    head: Mapping[str, str],
    *,
    core: int,
    concurrency: int,
    seconds: float,
) -> Driven:
    """Send requests for some seconds; ``body`` is what stands before the id and behind it."""
    fields = ", ".join(f"[{json.dumps(name)}]={json.dumps(text)}" for name, text in head.items())
    values = {"first": body[0].decode(), "last": body[1].decode(), "count": _PREPARED}
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "calls.lua"
        script.write_text(_SCRIPT % {**values, "headers": fields}, encoding="utf-8")
        line = ["wrk", "-t1", f"-c{concurrency}", f"-d{seconds:g}s", "-s", str(script)]
        line.append(f"http://127.0.0.1:{port}/mcp")
        ran = subprocess.run(
            pinned(core, line), capture_output=True, text=True, check=False, timeout=seconds + 60
        )
    found = [text for text in ran.stdout.splitlines() if text.startswith("RESULT ")]
    if not found:
        raise RigError(f"wrk said: {ran.stdout}{ran.stderr}")
    result = json.loads(found[0].removeprefix("RESULT "))
    if result["errors"] or not result["calls"]:
        raise RigError(f"not all calls were answered: {result}")
    calls = result["calls"]
    rate = calls / (result["micros"] / 1e6)
    return Driven(calls, rate, result["p50"] / 1000, result["p99"] / 1000)
