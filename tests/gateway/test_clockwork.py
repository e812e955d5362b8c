"""Deterministic mode: the same calls give the same ledger, byte for byte; else time is real."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.gateway import puppet
from tests.gateway.rig import REVISIONS, STATELESS, answering, plan, rigged

from mcp_envelope.gateway.clockwork import Clockwork
from mcp_envelope.gateway.settings import Rules
from mcp_envelope.stores import read_ledger

FAULT = answering(b'"error":{"code":1,"message":"x"}')


def messages(revision: str) -> list[dict[str, Any]]:
    """Calls that end in many ways."""
    meta = {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    }
    more = meta if revision == STATELESS else {}
    hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {}}
    says: list[tuple[str, dict[str, Any]]] = [
        *([] if revision == STATELESS else [("initialize", hello)]),
        ("tools/call", {"name": "free", "arguments": {"password": "p", "n": 1}}),
        ("tools/call", {"name": "picky", "arguments": {}}),
        ("tools/call", {"name": "free", "plan": FAULT}),
        ("ping", {}),
        ("resources/read", {"uri": "file:///x"}),
        ("tools/call", {"name": "free", "plan": plan(then="die")}),
        ("tools/call", {"name": "free", "arguments": {"n": 2}}),
    ]
    return [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": params | more}
        for number, (method, params) in enumerate(says)
    ]


@pytest.mark.parametrize(
    "revision,scheme",
    [
        ("2025-11-25", "sqlite"),
        pytest.param("2025-11-25", "jsonl", marks=pytest.mark.whole),
        pytest.param(STATELESS, "sqlite", marks=pytest.mark.whole),
        pytest.param(STATELESS, "jsonl", marks=pytest.mark.whole),
    ],
)
def test_two_runs_of_a_process_give_equal_ledgers(
    scheme: str, revision: str, tmp_path: Path
) -> None:
    """Over stdio, each call after the answer to the one before."""
    ledgers = [run(tmp_path / str(number), scheme, revision) for number in range(2)]
    assert ledgers[0] == ledgers[1]
    lines = [json.loads(line) for line in ledgers[0]]
    assert len(lines) > 10
    assert lines[0]["time"] == "2000-01-01T00:00:00.000Z"
    assert {line["duration_ms"] for line in lines} <= {0.0, None}


def run(folder: Path, scheme: str, revision: str) -> list[bytes]:
    """The lines of a ledger."""
    folder.mkdir()
    server = (sys.executable, "-I", "-S", puppet.__file__, str(folder / "heard"))
    place = f"{scheme}:{folder / 'record'}"
    words = ("-m", "mcp_envelope", "run", "--ledger", place, "--", *server)
    extra = {"MCP_ENVELOPE_DETERMINISTIC": "true", "MCP_ENVELOPE_RULES__RETRIES": "0"}
    state = {"XDG_STATE_HOME": str(folder.parent / "state")}  # the same key for both
    with subprocess.Popen(
        (sys.executable, *words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | extra | state,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for message in messages(revision):
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            while "id" not in json.loads(process.stdout.readline()):
                pass
        process.stdin.close()
        assert process.wait(20) == 0
    source = read_ledger(place)
    try:
        return [piece.removesuffix(b"\n") for piece in source.physical()]
    finally:
        source.close()


@pytest.mark.parametrize("twin", [False, True])
@pytest.mark.parametrize("upstream", ["child", "http"])
@pytest.mark.parametrize("door", ["stdio", "http"])
@pytest.mark.parametrize("revision", REVISIONS)
def test_two_gateways_in_one_process_give_equal_lines(
    revision: str, door: str, upstream: str, twin: bool, tmp_path: Path
) -> None:
    """Labels and sessions as well."""

    async def work() -> tuple[list[bytes], list[bytes]]:
        rules = Rules(retries=0)
        async with rigged(
            door, upstream, revision, tmp_path, twin=twin, rules=rules, deterministic=True
        ) as rig:
            name = "puppet__free" if twin else "free"
            answers = [
                (await rig.ask(message)).raw
                for message in (
                    rig.call(name, {"n": 1}),
                    rig.call(name, plan=FAULT),
                    rig.call(name, "no object"),
                    rig.request("ping"),
                )
            ]
            answers += (await rig.send(b"{")).messages
        return list(rig.book.lines), answers

    first, second = asyncio.run(work()), asyncio.run(work())
    assert first == second
    assert len(first[0]) >= 7


def test_its_times_and_ids_are_counted() -> None:
    """Each a millisecond after the last; ids are UUIDs, and another seed gives others."""
    one, other = Clockwork.deterministic(), Clockwork.deterministic("x")
    assert [one.now() for _ in range(2)] == ["2000-01-01T00:00:00.000Z", "2000-01-01T00:00:00.001Z"]
    ids = [one.new_id() for _ in range(100)] + [other.new_id() for _ in range(100)]
    assert len(set(ids)) == 200
    assert {UUID(each).version for each in ids} == {4}
    assert one.lasted(0.0) == 0.0
    assert one.instance != other.instance


def test_else_time_is_the_machines_and_nobody_guesses_an_id() -> None:
    """Two runs differ in everything."""
    one, other = Clockwork.real(), Clockwork.real()
    now = datetime.now(UTC)
    assert abs((datetime.fromisoformat(one.now()) - now).total_seconds()) < 5
    assert re.fullmatch(r"[0-9-]{10}T[0-9:]{8}\.[0-9]{3}Z", one.now())
    assert len({one.new_id(), one.new_id(), other.new_id()}) == 3
    assert one.instance != other.instance
    assert 0 <= one.lasted(one.tick()) < 5_000
    assert not one.is_deterministic


def test_nothing_else_of_the_gateway_asks_the_machine_for_what_is_written(root: Path) -> None:
    """Time and chance come through one module; what else reads clocks measures or waits."""
    told = re.compile(r"\b(time\.time(_ns)?|datetime\.now|os\.urandom|uuid[14]|secrets\.token)")
    files = itertools.chain.from_iterable(
        (root / "src/mcp_envelope" / family).rglob("*.py")
        for family in ("gateway", "pipeline", "stores", "transports", "upstreams")
    )
    found = {file.name for file in files if told.search(file.read_text(encoding="utf-8"))}
    # What `doctor` finds out and how old a watched file of schemas is are in no record; keys are
    # made by chance, and what is too old is removed by the machine's clock, or not at all.
    others = {"checkup.py", "checkup_record.py", "schemas.py", "keys.py", "recording.py"}
    assert found - others == {"clockwork.py"}
