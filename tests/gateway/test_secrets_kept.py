"""Where bodies are kept: a running gateway, full of secrets, writes none of them anywhere."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.gateway import puppet
from tests.gateway.rig import answering, plan
from tests.gateway.wire import post
from tests.gateway_process import gateway

from mcp_envelope.core.redaction import REDACTED
from mcp_envelope.stores import read_ledger

CANARY = "canary7q"
HEAD = {
    "authorization": f"Bearer {CANARY}-authorization",
    "cookie": f"session={CANARY}",
    "x-api-key": f"{CANARY}-key",
    "proxy-authorization": f"Basic {CANARY}",
    "traceparent": f"password={CANARY}",
    "x-forwarded-for": f"token={CANARY}",
}
BASIC = base64.b64encode(f"me:{CANARY}".encode()).decode()
KEY = f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----\n"
#: What is secret of arguments and results alike.
SECRETS: dict[str, Any] = {
    "password": CANARY,
    "Client-Secret": {"a": [CANARY]},
    "X-API-Key": [CANARY, 1],
    "otp": CANARY,
    "note": CANARY,
    "people": [{"name": CANARY, "age": 7}],
    "env": [{"name": "DB_PASSWORD", "value": CANARY}],
    "args": ["--token", CANARY, f"--api-key={CANARY}", "-v"],
    "text": f"curl -H 'Authorization: Basic {BASIC}' -H 'Cookie: a={CANARY}; b={CANARY}' https://h",
    "file": f"# config\ndb_password: {CANARY} and {CANARY}\nurl: postgres://u:{CANARY}@h/db\n{KEY}",
    "page": f"see https://h/x?access_token={CANARY}&page=2, or send Bearer {CANARY}-1",
    "json": json.dumps({"token": CANARY, "inner": json.dumps({"secret": {"x": CANARY}})}),
    "again": f"somebody said {CANARY}",
    "torn": f'{{"password": "{CANARY}',
    f"password={CANARY}": 1,
}
RESULT = {
    "content": [
        {"type": "text", "text": json.dumps(SECRETS)},
        {"type": "text", "text": json.dumps({"rows": [{"mail": CANARY}]}, indent=1)},
        {"type": "resource", "resource": {"uri": f"x://u:{CANARY}@h", "text": f"api_key={CANARY}"}},
    ],
    "structuredContent": {"rows": [{"mail": CANARY}], "more": SECRETS},
    "_meta": {"vendor/session_token": CANARY},
}
ECHO = {"content": [{"type": "text", "text": f"there is no {CANARY} here"}]}
FAULT = {"code": -32602, "message": f"bad password {CANARY}", "data": CANARY}
SETTINGS = """
log_level = "debug"
[rules]
bodies = "all"
retries = 0
redact_keys = ["note"]
redact_pointers = [
  "/input/people/*/name", "/output/structuredContent/rows/*/mail",
  "/output/structuredContent/more/people", "/output/content/0/text",
]
[upstreams.puppet]
command = [%s]
env.TOKEN = "canary7q-env"
"""


def calls() -> list[dict[str, Any]]:
    """Calls that end in each way there is, full of secrets."""
    says = [
        ("tools/call", {"name": "free", "arguments": SECRETS, "plan": answer(RESULT)}),
        (
            "tools/call",
            {"name": "free", "arguments": SECRETS, "plan": answer(RESULT | {"isError": True})},
        ),
        ("tools/call", {"name": "free", "arguments": SECRETS, "plan": failing()}),
        ("tools/call", {"name": "picky", "arguments": SECRETS | {"text": [f"secret={CANARY}"]}}),
        ("tools/call", {"name": "promising", "arguments": SECRETS, "plan": answer(RESULT)}),
        ("tools/call", {"name": f"password={CANARY}", "arguments": SECRETS}),
        (
            "tools/call",
            {"name": "free", "arguments": SECRETS, "plan": answering(b'"result":{canary7q}')},
        ),
        ("tools/call", {"name": "free", "arguments": SECRETS, "plan": answer(ECHO)}),
        ("resources/read", {"uri": f"https://u:{CANARY}@h/?token={CANARY}"}),
        ("prompts/get", {"name": f"api_key={CANARY}", "arguments": SECRETS}),
        ("ping", {"x": CANARY}),
        ("tools/call", {"name": "free", "arguments": SECRETS, "plan": plan(then="die")}),
    ]
    return [
        {"jsonrpc": "2.0", "id": f"Bearer {CANARY}-{number}", "method": method, "params": params}
        for number, (method, params) in enumerate(says)
    ]


def answer(result: Any) -> dict[str, Any]:
    """A plan to answer with a result."""
    return answering(b'"result":' + json.dumps(result).encode())


def failing() -> dict[str, Any]:
    """A plan to fail, in words that repeat secrets."""
    return answering(b'"error":' + json.dumps(FAULT).encode())


BROKEN = (
    *(
        b'{"jsonrpc":"2.0","id":"password=canary7q","password":"canary7q',
        b'{"canary7q":1,"canary7q":2}',
    ),
    *(b'{"jsonrpc":"2.0","id":"token: canary7q"}', b"canary7q"),
)
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a"}},
}


def written(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Each file below a folder."""
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.name != "heard":
            yield file.name, file.read_bytes()


def assert_clean(folder: Path, said: bytes | str) -> list[str]:
    """No file and no log holds a canary; the names of the files."""
    for name, raw in written(folder):
        assert CANARY.encode() not in raw, name
        assert BASIC.encode() not in raw, name
    text = said if isinstance(said, str) else said.decode()
    assert CANARY not in text
    return [name for name, _ in written(folder)]


def assert_kept(place: str) -> None:
    """Bodies are there, and hold what is left of the secrets."""
    source = read_ledger(place)
    try:
        lines = [json.loads(line) for line in (each.line for each in source.after(0))]
        remarks = [
            text for line in lines for text in line["warnings"] if "the rest sha256:" in text
        ]
        bodies = {source.body(text.rpartition("sha256:")[2][:64]) for text in remarks}
    finally:
        source.close()
    events = [line["event"] for line in lines]
    assert events.count("malformed") == len(BROKEN)
    assert events.count("settled") >= 8
    assert "refused" in events
    assert len(bodies) >= 5
    assert len(remarks) >= 16
    for body in bodies:
        assert body is not None
        assert REDACTED.encode() in body
        assert CANARY.encode() not in body


def prepared(folder: Path, scheme: str) -> tuple[str, tuple[str, ...], dict[str, str]]:
    """Where the ledger is, the words of the command line, and variables."""
    for name in ("record", "state"):
        (folder / name).mkdir()
    command = (sys.executable, "-I", "-S", puppet.__file__, str(folder / "heard"))
    settings = folder / "s.toml"
    settings.write_text(SETTINGS % ", ".join(map(json.dumps, command)), encoding="utf-8")
    place = f"{scheme}:{folder / 'record' / 'ledger'}"
    state = {"XDG_STATE_HOME": str(folder / "state"), "SECRET": f"{CANARY}-env"}
    return place, ("--ledger", place, "--config", str(settings)), state


@pytest.mark.parametrize("scheme", ["jsonl", "sqlite"])
def test_no_secret_is_written_behind_the_stdio_door(scheme: str, tmp_path: Path) -> None:
    """Neither while it runs, nor at the end."""
    place, words, state = prepared(tmp_path, scheme)
    errors = tmp_path / "errors"
    with (
        errors.open("wb") as sink,
        subprocess.Popen(
            (sys.executable, "-m", "mcp_envelope", "run", *words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
            env=os.environ | state,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        for raw in [json.dumps(each).encode() for each in (HELLO, *calls())] + list(BROKEN):
            process.stdin.write(raw + b"\n")
            process.stdin.flush()
            assert process.stdout.readline()
        names = assert_clean(tmp_path / "record", errors.read_bytes())
        assert ("ledger-wal" in names) == (scheme == "sqlite")
        process.stdin.close()
        assert process.wait(20) == 0
    assert CANARY in (tmp_path / "heard").read_text(encoding="utf-8")
    assert_clean(tmp_path / "record", errors.read_bytes())
    assert_clean(tmp_path / "state", "")
    assert_kept(place)


@pytest.mark.parametrize("scheme", ["jsonl", "sqlite"])
def test_no_secret_is_written_behind_the_http_door(scheme: str, tmp_path: Path) -> None:
    """Nor is one client's told to another, who asks in between."""
    place, words, state = prepared(tmp_path, scheme)

    async def work(port: int) -> None:
        sessions = []
        for _ in range(2):
            hello = await post(port, json.dumps(HELLO).encode(), HEAD)
            sessions.append({"mcp-session-id": hello.head["mcp-session-id"]})
        for number, message in enumerate(calls()):
            await post(port, json.dumps(message).encode(), HEAD | sessions[0])
            other = {
                "jsonrpc": "2.0",
                "id": number,
                "method": "tools/call",
                "params": {"name": "free"},
            }
            said = await post(port, json.dumps(other).encode(), sessions[1])
            assert not any(CANARY.encode() in raw for raw in said.messages)
        for raw in BROKEN:
            await post(port, raw, HEAD | sessions[0])

    with gateway(*words, environment=state) as running:
        asyncio.run(work(running.port))
        assert_clean(tmp_path / "record", running.stderr())
    assert_clean(tmp_path / "record", "")
    assert_clean(tmp_path / "state", "")
    assert_kept(place)
