"""What holds for every error, whichever door it is said at; and rigs that tests share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import UUID

from tests.gateway.rig import STATELESS, Rig, Said

#: The only numbers that may be taken from the ranges that JSON-RPC and MCP reserve.
RESERVED = {-32700, -32600, -32601, -32602, -32603, -32020, -32022}

#: How the label begins.
LABEL = b'"dev.mcp-envelope/record":'

Work = Callable[[Rig], Coroutine[Any, Any, None]]


class Stage:
    """A rig that is kept from test to test, and the loop that it lives on."""

    def __init__(self, runner: asyncio.Runner, rig: Rig) -> None:
        self._runner = runner
        self.rig = rig

    def play(self, work: Work) -> None:
        """Run one test's part; in the end nothing may be under way."""
        self.rig.book.faults.clear()

        async def in_time() -> None:
            async with asyncio.timeout(10):
                await work(self.rig)

        self._runner.run(in_time())


def check_error(
    rig: Rig,
    said: Said,
    code: str,
    number: int,
    *,
    http: int = 200,
    retryable: bool = False,
    id: object = ...,
) -> dict[str, Any]:
    """An answer says its code in the revision's words; gives the error's data."""
    assert said.http is None or said.http.status == http
    assert len(said.messages) == 1
    message = said.message
    assert set(message) == {"jsonrpc", "id", "error"}
    assert message["id"] == (rig.count if id is ... else id)
    error = message["error"]
    assert error["code"] == number
    assert not -32768 <= number <= -32000 or number in RESERVED
    assert isinstance(error["message"], str)
    data: dict[str, Any] = error["data"]
    assert data["code"] == code
    assert data["retryable"] is retryable
    UUID(data["requestId"])
    assert None not in data.values()
    return data


def check_tool_error(rig: Rig, said: Said, words: str) -> None:
    """An answer is a result marked ``isError``, for the model to read."""
    assert said.http is None or said.http.status == 200
    result = said.message["result"]
    assert said.message["id"] == rig.count
    assert result["isError"] is True
    assert words in result["content"][0]["text"]
    assert result.get("resultType") == ("complete" if rig.revision == STATELESS else None)


def check_lines(
    rig: Rig, start: int, *expected: tuple[str, str | None], request_id: str | None = None
) -> list[dict[str, Any]]:
    """The record's lines since ``start``: their events and outcomes, in order."""
    entries = rig.book.entries(start)
    assert [(each["event"], each["outcome"]) for each in entries] == list(expected)
    assert all(each["door"] == rig.door for each in entries)
    if request_id is not None:
        assert {each["request_id"] for each in entries} == {request_id}
    if entries and entries[-1]["error"] is not None:
        assert entries[-1]["error"]["code"] == entries[-1]["outcome"]
    return entries


async def until_run(rig: Rig, count: int) -> None:
    """Wait until so many calls have reached the upstream, which is another process maybe."""
    while ran(rig) < count:  # noqa: ASYNC110 - a file has no event
        await asyncio.sleep(0.002)


async def until_heard(rig: Rig, text: bytes) -> None:
    """Wait until the upstream has read something."""
    while not any(text in raw for raw in rig.heard):  # noqa: ASYNC110 - likewise
        await asyncio.sleep(0.002)


def ran(rig: Rig) -> int:
    """How many tool calls have reached the upstream."""
    return sum(json.loads(raw).get("method") == "tools/call" for raw in rig.heard)


def unlabelled(raw: bytes, *, had_meta: bool) -> bytes:
    """A result without what the gateway has put into it."""
    rest = without(raw, LABEL)
    return rest if had_meta else without(rest, b'"_meta":')


def without(raw: bytes, name: bytes) -> bytes:
    """A text without its first member of that name, which is given with its quotes and colon."""
    start = raw.index(name)
    text = raw[start + len(name) :].decode()
    _, length = json.JSONDecoder().raw_decode(text)
    return _cut(raw, start, start + len(name) + len(text[:length].encode()))


def _cut(raw: bytes, start: int, end: int) -> bytes:
    """The text without a member, and without the comma that this makes superfluous."""
    if raw[:start].endswith(b","):
        start -= 1
    elif raw[end:].startswith(b","):
        end += 1
    return raw[:start] + raw[end:]
