"""What may be a secret stays between those whose it is: neither record nor log ever holds it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.gateway import puppet
from tests.gateway.rig import REVISIONS, STATELESS, Rig, answering, plan, rigged

from mcp_envelope.core.errors import ConfigError
from mcp_envelope.gateway.announcement import announce

#: Each begins with this, and none may be found where it does not belong.
CANARY = "canary-"
INBOUND = {
    "authorization": "Bearer canary-authorization",
    "cookie": "session=canary-cookie",
    "x-api-key": "canary-key",
    "proxy-authorization": "Basic canary-proxy",
}
OWN = {"Authorization": "Bearer canary-own", "X-Own": "canary-own-2"}


async def use_everything(rig: Rig) -> list[bytes]:
    """Calls that end in each way there is, full of secrets; the answers."""
    text = b'"result":{"content":[{"type":"text","text":"canary-result"}],"isError":%b}'
    messages: list[Any] = [
        rig.call(arguments={"password": "canary-argument", "canary-name": 1}),
        rig.call("picky", {"text": ["canary-argument"], "canary-name": 1}),
        rig.call("promising", plan=answering(b'"result":{"structuredContent":"canary-result"}')),
        rig.call(plan=answering(text % b"true")),
        rig.call(plan=answering(text % b"false")),
        rig.call(plan=plan(then="die"), arguments={"x": "canary-argument"}),
        rig.request("ping", {"x": "canary-params"}),
    ]
    answers = []
    for message in messages:
        said = await rig.send(json.dumps(message).encode(), message, extra=INBOUND)
        answers += said.messages
    broken = (b'{"jsonrpc":"2.0","id":1,"canary-bytes', b'{"jsonrpc":"canary-bytes","id":1}')
    for raw in broken:
        answers += (await rig.send(raw, extra=INBOUND)).messages
    return answers


@pytest.mark.parametrize(
    "door,upstream,revision",
    list(product(("http", "stdio"), ("child", "http"), ("2025-11-25", STATELESS))),
)
def test_neither_record_nor_log_holds_a_secret(
    door: str,
    upstream: str,
    revision: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Of arguments, results, headers and the environment, however a call ends."""
    caplog.set_level(logging.DEBUG)
    given: dict[str, Any] = (
        {"env": {"TOKEN": "canary-env"}} if upstream == "child" else {"headers": OWN}
    )

    async def work() -> None:
        async with rigged(door, upstream, revision, tmp_path, **given) as rig:
            answers = await use_everything(rig)
            record = b"\n".join(rig.book.lines).decode()
            announce(rig.gateway.settings, rig.gateway.record, "a door")
            shown = f"{rig.gateway.settings!r} {rig.gateway.routes!r}"
            told = [{*head.values()} for head, _ in rig.end.heard]
            kept_back = {INBOUND[name] for name in INBOUND if name != "x-api-key"}
            assert not any(kept_back & values for values in told)
            if upstream == "http":
                assert all(
                    head["authorization"] == "Bearer canary-own" for head, _ in rig.end.heard
                )
            assert not any(b"canary-own" in raw or b"canary-env" in raw for raw in answers)
        assert record.count("\n") > 8
        assert CANARY not in record
        assert CANARY not in shown

    asyncio.run(work())
    assert CANARY not in caplog.text
    assert CANARY not in "".join(capfd.readouterr())


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_record_holds_nothing_that_an_upstream_says(revision: str, tmp_path: Path) -> None:
    """Messages of errors often repeat what was sent."""

    async def work() -> None:
        async with rigged("http", "child", revision, tmp_path) as rig:
            fault = (
                b'"error":{"code":-32602,"message":"bad password canary-text","data":"canary-2"}'
            )
            await rig.ask(rig.call(plan=answering(fault)))
            assert CANARY not in b"\n".join(rig.book.lines).decode()

    asyncio.run(work())


BROKEN = {
    "no json": b'"result":{canary-text}',
    "torn": b'"result":{"x":"canary-text',
    "twice": b'"result":{"canary-key":1,"canary-key":2}',
}


@pytest.mark.parametrize("flaw", ["no json", "torn", "twice"])
@pytest.mark.parametrize("revision", ["2025-11-25", STATELESS])
@pytest.mark.parametrize("upstream", ["child", "http"])
def test_what_stands_in_an_unreadable_answer_is_not_told(
    upstream: str, revision: str, flaw: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A result is one, even if it cannot be read."""
    caplog.set_level(logging.DEBUG)

    async def work() -> None:
        async with rigged("http", upstream, revision, tmp_path) as rig:
            how = "json" if upstream == "child" else "crooked"
            said = await rig.ask(rig.call(plan=answering(BROKEN[flaw], how=how)))
            assert said.message["error"]["code"] == 5021
            assert CANARY not in b"\n".join(rig.book.lines).decode()

    asyncio.run(work())
    assert CANARY not in caplog.text


@pytest.mark.parametrize("door", ["http", "stdio"])
@pytest.mark.parametrize("how", ["500", "503", "401", "302"])
def test_what_an_upstream_says_beside_its_status_is_not_logged(
    door: str, how: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor recorded."""
    caplog.set_level(logging.DEBUG)

    async def work() -> None:
        async with rigged(door, "http", "2025-11-25", tmp_path) as rig:
            await rig.ask(rig.call(plan=plan(b"Traceback: canary-text", how=how)))
            assert CANARY not in b"\n".join(rig.book.lines).decode()

    asyncio.run(work())
    assert CANARY not in caplog.text


@pytest.mark.parametrize("revision", REVISIONS)
def test_no_call_is_answered_with_a_server_error(revision: str, tmp_path: Path) -> None:
    """Older clients would drop the whole session (error table)."""

    async def work() -> None:
        async with rigged("http", "http", revision, tmp_path) as rig:
            said = await rig.ask(rig.call(plan=plan(b"oh", how="500")))
            assert said.http is not None
            assert said.http.status < 500

    asyncio.run(work())


@pytest.mark.parametrize("door", ["http", "stdio"])
def test_secrets_of_an_address_are_not_told(
    door: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """The query of a URL may be a token."""
    caplog.set_level(logging.DEBUG)

    async def work() -> None:
        url = "http://127.0.0.1:1/mcp?token=canary-query#canary-fragment"
        async with rigged(door, "http", STATELESS, tmp_path, url=url, headers=OWN) as rig:
            said = await rig.ask(rig.call())
            assert said.message["error"]["code"] == 5030
            assert CANARY not in said.raw.decode()
            assert CANARY not in b"\n".join(rig.book.lines).decode()
            announce(rig.gateway.settings, rig.gateway.record, "a door")
            assert CANARY not in repr(rig.gateway.settings)

    asyncio.run(work())
    assert CANARY not in caplog.text
    assert CANARY not in "".join(capfd.readouterr())


def test_credentials_in_an_address_are_refused_and_not_repeated(tmp_path: Path) -> None:
    """They belong into a header."""

    async def work() -> None:
        url = "http://canary-user:canary-password@127.0.0.1:1/mcp"
        with pytest.raises(ConfigError) as caught:
            async with rigged("http", "http", STATELESS, tmp_path, url=url):
                pass
        assert CANARY not in str(caught.value)

    asyncio.run(work())


def test_the_words_of_a_command_are_not_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """They hold tokens more often than not."""
    caplog.set_level(logging.DEBUG)
    words = (sys.executable, "-I", "-S", "-c", "raise SystemExit(1)", "--token=canary-word")

    async def work() -> None:
        async with rigged("stdio", "child", STATELESS, tmp_path, command=words) as rig:
            said = await rig.ask(rig.call())
            assert CANARY not in said.raw.decode()
            assert CANARY not in b"\n".join(rig.book.lines).decode()
            announce(rig.gateway.settings, rig.gateway.record, "a door")

    asyncio.run(work())
    assert CANARY not in caplog.text
    assert CANARY not in "".join(capfd.readouterr())


def test_a_running_gateway_tells_nothing_at_level_debug(tmp_path: Path) -> None:
    """A process of its own: what it writes to standard error, and its record's file."""
    ledger, log = tmp_path / "record.jsonl", tmp_path / "heard"
    server = (sys.executable, "-I", "-S", puppet.__file__, str(log), "--token=canary-word")
    command = ("-m", "mcp_envelope", "run", "--ledger", f"jsonl:{ledger}", "--", *server)
    text = answering(b'"result":{"content":[{"type":"text","text":"canary-result"}]}')
    params = {"name": "free", "arguments": {"password": "canary-argument"}}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
    says: list[tuple[str, dict[str, Any]]] = [
        ("initialize", hello),
        ("tools/call", params | {"plan": text}),
        ("tools/call", params | {"name": "picky"}),
        ("tools/call", params | {"plan": answering(b'"result":{canary-broken}')}),
        ("tools/call", params | {"plan": plan(then="die")}),
    ]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": given})
        for number, (method, given) in enumerate(says)
    ]
    ran = subprocess.run(
        (sys.executable, *command),
        input="\n".join([*lines, '{"canary-bytes']).encode(),
        capture_output=True,
        env=os.environ | {"MCP_ENVELOPE_LOG_LEVEL": "debug", "TOKEN": "canary-env"},
        timeout=30,
        check=False,
    )
    assert ran.returncode == 0
    assert ran.stdout.count(b"\n") == len(lines) + 1
    assert b"an answer is unreadable" in ran.stderr
    assert b"canary-argument" in log.read_bytes()
    assert CANARY.encode() not in ran.stderr
    assert b"settled" in ledger.read_bytes()
    assert CANARY.encode() not in ledger.read_bytes()
