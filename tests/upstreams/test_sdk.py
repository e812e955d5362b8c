"""A server of the official SDK's is spoken to in both eras."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.upstreams.conftest import Run
from tests.upstreams.peers import META, ask, notification, request, upstream, values

#: The SDK takes seconds to load: run by tools/ci.py.
pytestmark = pytest.mark.whole

_SERVER = (sys.executable, str(Path(__file__).with_name("sdk_server.py")))


def test_a_conversation_of_each_era(run: Run) -> None:
    """Initialize or not, a tool is called, its progress comes first and its result last."""

    async def work() -> None:
        async with upstream(*_SERVER) as made:
            opened = await made.connect(stateless=False)
            links = [await made.connect(stateless=True) for _ in range(2)]
            client = {"name": "test", "version": "1"}
            found = await ask(
                opened, 0, "initialize",
                protocolVersion="2025-11-25", capabilities={}, clientInfo=client,
            )  # fmt: skip
            assert found["serverInfo"]["name"] == "sdk"
            await opened.send(notification("notifications/initialized"), {})
            call = {"name": "count", "arguments": {"to": 3}}
            await _check(opened, {"progressToken": "p"}, call)
            meta = {
                "progressToken": "p",
                META + "protocolVersion": "2026-07-28",
                META + "clientInfo": client,
                META + "clientCapabilities": {},
            }
            for stateless in links:
                await _check(stateless, meta, call)

    async def _check(opened: Any, meta: dict[str, Any], call: dict[str, Any]) -> None:
        *progress, answer = await values(
            await opened.send(request("c", "tools/call", meta, **call), {})
        )
        assert [p["params"]["progress"] for p in progress] == [0, 1, 2]
        assert {p["params"]["progressToken"] for p in progress} == {"p"}
        assert answer["id"] == "c"
        assert answer["result"]["content"][0]["text"] == "counted to 3"

    run(work())
