"""Several servers without prefixes: names are as they are, and no two may be the same."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.gateway import player
from tests.gateway.crew import ABSENT, Parts, crew, page, tools
from tests.gateway.rig import STATELESS

from mcp_envelope.core.errors import ConfigError

SOME = [("stdio", "2025-11-25"), ("http", STATELESS)]
PROMPTS: dict[str, Any] = {"tools": {}, "prompts": {}}


@pytest.mark.parametrize("door,revision", SOME)
def test_names_stay_as_they_are(door: str, revision: str, tmp_path: Path) -> None:
    """Calls find their server by its list, also if nobody has asked for one."""
    parts: Parts = {
        "a": {"capabilities": PROMPTS, "answers": {
            "tools/list": tools("one__x", "two"), "prompts/list": page("prompts", {"name": "two"}),
            "prompts/get": '"result":{"who":"a"}',
        }},
        "b": {"answers": {"tools/list": tools("three")}},
    }  # fmt: skip

    async def work() -> None:
        async with crew(door, revision, tmp_path, parts, namespace=False) as rig:
            assert "result" in (await rig.ask(rig.call("three"))).message
            assert "result" in (await rig.ask(rig.call("one__x"))).message
            assert (await rig.result("prompts/get", {"name": "two"}))["who"] == "a"
            found = await rig.result("tools/list")
            assert [each["name"] for each in found["tools"]] == ["one__x", "two", "three"]
            assert (await rig.error("tools/call", {"name": "four"}))["code"] == -32602
            called = [each["params"]["name"] for each in rig.read_by("b", "tools/call")]
            assert called == ["three"]

    asyncio.run(work())


@pytest.mark.parametrize("what", ["tools", "prompts"])
def test_two_of_one_name_are_a_mistake_at_the_start(what: str, tmp_path: Path) -> None:
    """Both servers are named, and the name; on whichever page it stands."""
    plain, paged = {"name": "same"}, {"name": "other"}
    answers = {"tools/list": tools()}
    first = answers | {f"{what}/list": page(what, plain)}
    second = answers | {f"{what}/list": [page(what, paged, nextCursor="1"), page(what, plain)]}
    parts: Parts = {
        "a": {"capabilities": PROMPTS, "answers": first},
        "b": {"capabilities": PROMPTS, "answers": second},
    }

    async def work() -> None:
        with pytest.raises(ConfigError, match=f"a and b both have a {what[:-1]} called 'same'"):
            async with crew("http", STATELESS, tmp_path, parts, namespace=False):
                raise AssertionError("it started")

    asyncio.run(work())


def test_the_command_says_so_in_one_line(tmp_path: Path) -> None:
    """With exit code 2, as for any mistake in the settings."""
    part = tmp_path / "part.json"
    part.write_text(json.dumps({}), encoding="utf-8")
    command = [sys.executable, "-I", "-S", player.__file__, str(tmp_path / "heard"), str(part)]
    file = tmp_path / "settings.toml"
    upstreams = "\n".join(f"[upstreams.{name}]\ncommand = {command}" for name in ("a", "b"))
    text = f"namespace = false\n{upstreams}\n"
    file.write_text(text, encoding="utf-8")
    words = [sys.executable, "-m", "mcp_envelope", "run", "--ledger", "memory:"]
    words += ["--config", str(file)]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=30, input="", check=False)
    assert ran.returncode == 2, ran.stderr
    assert ran.stdout == ""
    *before, last = ran.stderr.splitlines()
    assert all(" INFO " in line for line in before)
    assert "a and b both have a tool called 'free'" in last
    assert "namespace = true" in last


@pytest.mark.parametrize("door,revision", SOME)
def test_a_name_that_two_have_later_is_neithers(
    door: str, revision: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The check at the start saw one only: no call may go to whichever listed first."""
    alive = tmp_path / "alive"
    parts: Parts = {
        "a": {"alive": str(alive), "answers": {"tools/list": tools("same", "one")}},
        "b": {"answers": {"tools/list": tools("same", "two")}},
    }

    async def work() -> None:
        async with crew(door, revision, tmp_path, parts, namespace=False) as rig:
            assert "could not be compared" in caplog.text
            assert "result" in (await rig.ask(rig.call("same"))).message
            alive.touch()
            found: Any = {"_meta": {ABSENT: []}}
            async with asyncio.timeout(20):
                while ABSENT in found.get("_meta", {}):
                    found = await rig.result("tools/list")
                    await asyncio.sleep(0.05)
            names = [each["name"] for each in found["tools"]]
            assert names == ["one", "two"]
            assert "both have a tool called 'same'" in caplog.text
            error = await rig.error("tools/call", {"name": "same"})
            assert error["code"] == -32602
            assert "a and b both have one" in error["data"]["hint"]

    asyncio.run(work())
