"""Against the official SDK's server: sessions, no sessions, and 2026-07-28."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from mcp.server.mcpserver import MCPServer
from tests.upstreams.http_peers import (
    CAPABILITIES,
    INITIALIZE,
    INITIALIZED,
    REVISION,
    request,
    run,
    sdk_server,
    serving,
)

from mcp_envelope.core.frame import Frame, frame_of
from mcp_envelope.upstreams.http import HttpUpstream
from mcp_envelope.upstreams.http_client import ClientLink

MODERN = "2026-07-28"


@pytest.fixture(scope="module")
def sessions() -> Iterator[str]:
    """A server that keeps sessions, for the older revisions; it speaks the new one as well."""
    with serving(sdk_server().streamable_http_app()) as url:
        yield f"{url}/mcp"


@pytest.fixture(scope="module")
def plain() -> Iterator[str]:
    """A server without sessions that answers in JSON."""
    server: MCPServer = sdk_server()
    with serving(server.streamable_http_app(stateless_http=True, json_response=True)) as url:
        yield f"{url}/mcp"


def steps(id: int, revision: str | None = None) -> Frame:
    """A call that reports progress three times."""
    meta: dict[str, object] = {"progressToken": f"t{id}"}
    if revision is not None:
        meta |= {REVISION: revision, CAPABILITIES: {}}
    params = {"name": "steps", "arguments": {"count": 3}, "_meta": meta}
    return frame_of({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})


async def frames(link: ClientLink, frame: Frame) -> list[Frame]:
    """The messages that come back for one."""
    return [item.frame async for item in await link.send(frame, {}) if item.frame is not None]


def text_of(frame: Frame) -> str:
    """The text of a tool's result."""
    found: str = frame.value["result"]["content"][0]["text"]
    return found


@pytest.mark.parametrize("kind", ["sessions", "plain"])
def test_an_older_conversation(kind: str, request_: pytest.FixtureRequest) -> None:
    """Handshake, calls, progress on the call's own stream where there are streams, and the end."""
    url = request_.getfixturevalue(kind)

    async def work() -> None:
        upstream = HttpUpstream("up", url)
        link = await upstream.connect(stateless=False)
        (opened,) = await frames(link, INITIALIZE)
        assert opened.value["result"]["protocolVersion"] == "2025-11-25"
        assert (link.session.id is not None) == (kind == "sessions")
        await frames(link, INITIALIZED)
        echo = request("tools/call", 5, name="echo", arguments={"text": "grüße"})
        (found,) = await frames(link, echo)
        assert text_of(found) == "grüße"
        *progress, done = await frames(link, steps(6))
        if kind == "sessions":
            assert [frame.params["progress"] for frame in progress] == [0, 1, 2]
        assert text_of(done) == "done"
        await upstream.close()
        assert not upstream._pool._open

    run(work())


@pytest.mark.parametrize("kind", ["sessions", "plain"])
def test_a_modern_conversation(kind: str, request_: pytest.FixtureRequest) -> None:
    """2026-07-28: every request by itself, with headers that the server checks."""
    url = request_.getfixturevalue(kind)

    async def work() -> None:
        upstream = HttpUpstream("up", url)
        link = await upstream.connect(stateless=True)
        (found,) = await frames(link, request("server/discover", 1, MODERN))
        assert MODERN in found.value["result"]["supportedVersions"]
        calls = [
            request("tools/call", id, MODERN, name="echo", arguments={"text": str(id)})
            for id in range(20)
        ]
        answers = await asyncio.gather(*(frames(link, call) for call in calls))
        assert [text_of(found) for (found,) in answers] == [str(id) for id in range(20)]
        *progress, done = await frames(link, steps(99, MODERN))
        assert text_of(done) == "done"
        assert len(progress) in (0, 3)
        (missing,) = await frames(link, request("no/such", 3, MODERN))
        assert missing.value["error"]["code"] == -32601
        await upstream.close()

    run(work())


def test_a_session_that_the_server_has_forgotten(sessions: str) -> None:
    """After the session was deleted behind the link's back, the next call opens another."""

    async def work() -> None:
        upstream = HttpUpstream("up", sessions)
        link = await upstream.connect(stateless=False)
        await frames(link, INITIALIZE)
        await frames(link, INITIALIZED)
        first = link.session.id
        assert first is not None
        ended = await upstream.relay().end({"mcp-session-id": first})
        assert ended.status == 200
        (found,) = await frames(
            link, request("tools/call", 5, name="echo", arguments={"text": "x"})
        )
        assert text_of(found) == "x"
        assert link.session.id not in (None, first)
        await upstream.close()

    run(work())


def test_a_client_of_the_relay(sessions: str) -> None:
    """Through the relay the client keeps the session itself; statuses come back as they are."""
    head = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "origin": "http://evil.example",
        "host": "gateway.example",
    }

    async def work() -> None:
        upstream = HttpUpstream("up", sessions)
        link = upstream.relay()
        opened = await link.send(INITIALIZE, head)
        assert [item.frame is not None for item in [item async for item in opened]][-1]
        session = opened.headers["mcp-session-id"]
        bound = {**head, "mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
        noted = await link.send(INITIALIZED, bound)
        assert (noted.status, noted.body) == (202, b"")
        items = [item async for item in await link.send(steps(1), bound)]
        found = [item.frame for item in items if item.frame is not None]
        assert [frame.method for frame in found] == ["notifications/progress"] * 3 + [""]
        stream = await link.listen(bound)
        assert (stream.status, stream.streams) == (200, True)
        again = await link.listen(bound)
        assert again.status == 409
        await stream.close()
        assert (await link.end(bound)).status == 200
        late = await link.send(steps(2), bound)
        assert late.status == 404
        wrong = request("tools/list", 3, MODERN)
        refused = await link.send(wrong, {**head, "mcp-protocol-version": MODERN})
        assert refused.status == 400
        (item,) = [item async for item in refused]
        assert item.frame is not None
        assert item.frame.value["error"]["code"] == -32020
        await upstream.close()

    run(work())


@pytest.fixture
def request_(request: pytest.FixtureRequest) -> pytest.FixtureRequest:
    """Pytest's own, whose name is taken here."""
    return request
