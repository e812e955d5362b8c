"""Asking an upstream who it is, with upstreams that say whatever a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, frame_of
from mcp_envelope.core.link import Item, Link
from mcp_envelope.gateway.probe import Probed, probe

Said = Callable[[str, dict[str, Any]], Any]
TOOL = {"name": "t", "inputSchema": {"type": "object"}}
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "s", "version": "1"},
}


class Heard:
    """A reply: a result, an error, an HTTP status, or nothing for ever."""

    def __init__(self, question: Frame, said: Any) -> None:
        self.status = said if isinstance(said, int) else 200
        self.headers: Mapping[str, str] = {}
        self.streams: bool | None = None
        self.body = b""
        self._items: list[Item] = [Item(None)]
        if isinstance(said, dict):
            progress = {"jsonrpc": "2.0", "method": "notifications/progress"}
            whole = said if "error" in said else {"result": said}
            answer = {"jsonrpc": "2.0", "id": question.id, **whole}
            self._items += [Item(frame_of(progress)), Item(frame_of(answer))]
        self._for_ever = said == "silence"

    async def __aiter__(self) -> AsyncIterator[Item]:
        """What there is, in order."""
        for item in self._items:
            yield item
        if self._for_ever:
            await asyncio.Event().wait()

    async def close(self) -> None:
        """Nothing to let go of."""


class Fake:
    """An upstream, and its own link."""

    name = "fake"

    def __init__(self, said: Said) -> None:
        self._said = said
        self.asked: list[str] = []
        self.eras: list[bool] = []
        self.closed = False

    async def connect(self, *, stateless: bool) -> Link:
        """Note the era."""
        self.eras.append(stateless)
        return self

    def relay(self) -> None:
        """Not this way."""
        return

    async def send(self, frame: Frame, head: Mapping[str, str]) -> Heard:
        """Answer as the test wants."""
        self.asked.append(frame.method)
        if frame.shape == "notification":
            return Heard(frame, 202)
        return Heard(frame, self._said(frame.method, dict(frame.params)))

    async def listen(self, head: Mapping[str, str]) -> Heard:
        """Nobody asks for this."""
        raise AssertionError("nobody listens")

    async def close(self) -> None:
        """Note it."""
        self.closed = True


def probed(said: Said, wait: float = 10) -> tuple[Probed, Fake]:
    """What asking such an upstream gives; it is closed in any case."""
    fake = Fake(said)
    try:
        return asyncio.run(probe(fake, wait=wait)), fake
    finally:
        assert fake.closed


def test_an_older_server() -> None:
    """It is greeted, thanked, and asked for all pages of its tools."""

    def said(method: str, params: dict[str, Any]) -> Any:
        if method == "initialize":
            assert params["protocolVersion"] == "2025-11-25"
            return HELLO
        more = {"tools": [{**TOOL, "name": "u"}]}
        return more if params.get("cursor") == "x" else {"tools": [TOOL], "nextCursor": "x"}

    found, fake = probed(said)
    assert (found.server, found.version, found.revision) == ("s", "1", "2025-06-18")
    assert (found.tools, found.schemas, found.unusable) == (("t", "u"), 2, {})
    assert fake.asked == ["initialize", "notifications/initialized", "tools/list", "tools/list"]
    assert fake.eras == [False]


@pytest.mark.parametrize(
    "refusal", [{"error": {"code": -32601, "message": "no"}}, 400, 404], ids=str
)
def test_a_newer_server(refusal: Any) -> None:
    """One that knows no ``initialize`` is discovered; each request says all about itself then."""

    def said(method: str, params: dict[str, Any]) -> Any:
        if method == "initialize":
            return refusal
        meta = params["_meta"]
        assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        assert meta["io.modelcontextprotocol/clientCapabilities"] == {}
        if method == "server/discover":
            return {"capabilities": {}, "serverInfo": {"name": "n", "version": 2}}
        raise AssertionError(method)

    found, fake = probed(said)
    assert (found.server, found.version, found.revision) == ("n", "", "2026-07-28")
    assert found.tools == ()  # it offers none, and so is not asked
    assert fake.eras == [False, True]


@pytest.mark.parametrize(
    "answers,said",
    [
        ({"initialize": 401}, "HTTP 401 to initialize at ?; put an authorization header"),
        ({"initialize": 404}, "HTTP 404 to initialize; check the path of the URL"),
        ({"initialize": 200}, "no answer to initialize; look into the server's log"),
        ({"initialize": {"error": {"code": 1, "message": "a\x1b"}}}, "it answered initialize with"),
        ({"initialize": HELLO, "tools/list": {"tools": {}}}, "its tools/list has no list of tools"),
        (
            {"initialize": HELLO, "tools/list": {"error": {"code": 5, "message": "x" * 999}}},
            "it answered tools/list with an error: 5, 'xxx",
        ),
    ],
)
def test_servers_that_make_no_sense(answers: dict[str, Any], said: str) -> None:
    """What is wrong, and what to do, in one short line."""
    with pytest.raises(EnvelopeError) as caught:
        probed(lambda method, _: answers.get(method, 400))
    assert str(caught.value).startswith(said.replace(" at ?", ""))
    assert caught.value.hint
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


def test_a_server_that_says_nothing() -> None:
    """It is given up, and closed."""
    with pytest.raises(TimeoutError):
        probed(lambda _, __: "silence", wait=0.05)


def test_schemas_that_cannot_be_used() -> None:
    """They are named with the reason; the others count."""
    bad = {"name": "bad", "inputSchema": {"$ref": "#/none"}, "outputSchema": {"type": "object"}}
    answers = {"initialize": HELLO, "tools/list": {"tools": [TOOL, bad, 5]}}
    found, _ = probed(lambda method, _: answers[method])
    assert (found.schemas, list(found.unusable)) == (2, ["bad.inputSchema"])
