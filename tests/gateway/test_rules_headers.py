"""Headers between doors and upstreams: made, held against the body, forwarded, or of no meaning."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.gateway.rig import REVISIONS, STATELESS, Rig, rigged
from tests.gateway.verdicts import check_error, check_lines, ran

from mcp_envelope.gateway.settings import HttpSettings

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


def head_of_call(rig: Rig) -> dict[str, str]:
    """The headers that came to the HTTP upstream with the last tool call."""
    return next(head for head, body in reversed(rig.end.heard) if b'"tools/call"' in body)


@pytest.mark.parametrize(
    "place,sent",
    [("a b", "a b"), ("ä", "=?base64?w6Q=?="), (" a", "=?base64?IGE=?="), (None, None)],
    ids=["plain", "beyond ascii", "space", "null"],
)
@pytest.mark.parametrize("twin", [False, True])
def test_headers_of_the_schema_are_made_for_a_client_on_pipes(
    place: str | None, sent: str | None, twin: bool, tmp_path: Path
) -> None:
    """Mcp-Param-* from the tool's schema, with the very first call, beside the standard ones."""

    async def work() -> None:
        async with rigged("stdio", "http", STATELESS, tmp_path, twin=twin) as rig:
            said = await rig.ask(rig.call("puppet__headed" if twin else "headed", {"place": place}))
            if place is not None:  # of null the schema of the tool disapproves
                assert "result" in said.message, said.raw
                head = head_of_call(rig)
                assert head["mcp-param-place"] == sent
                assert (head["mcp-method"], head["mcp-name"]) == ("tools/call", "headed")
            await rig.ask(rig.call("puppet__headed" if twin else "headed", {}))
            assert "mcp-param-place" not in head_of_call(rig)

    asyncio.run(work())


def test_headers_of_the_schema_are_not_made_for_older_revisions(tmp_path: Path) -> None:
    """They are of 2026-07-28."""

    async def work() -> None:
        async with rigged("stdio", "http", "2025-11-25", tmp_path) as rig:
            await rig.ask(rig.call("headed", {"place": "a"}))
            assert not {name for name in head_of_call(rig) if name.startswith("mcp-param-")}

    asyncio.run(work())


@pytest.mark.parametrize("upstream", ["child", "http"])
def test_a_header_that_came_twice_agrees_with_nothing(upstream: str, tmp_path: Path) -> None:
    """HEADER_MISMATCH, though each of the two says the same as the body."""

    async def work() -> None:
        async with rigged("http", upstream, STATELESS, tmp_path) as rig:
            start = len(rig.book.lines)
            twice = {"mcp_param_place": "a", "Mcp_Param_Place": "a"}
            said = await rig.ask(rig.call("headed", {"place": "a"}), **twice)
            check_error(rig, said, "HEADER_MISMATCH", -32020, http=400)
            check_lines(rig, start, ("refused", "HEADER_MISMATCH"))
            said = await rig.ask(rig.call(), Mcp_Method="tools/call")
            check_error(rig, said, "HEADER_MISMATCH", -32020, http=400)
            assert ran(rig) == 0

    asyncio.run(work())


@pytest.mark.parametrize("twin", [False, True])
def test_a_header_that_no_schema_names_is_forwarded(twin: bool, tmp_path: Path) -> None:
    """To an upstream that speaks HTTP; whoever put it there may be understood there."""

    async def work() -> None:
        async with rigged("http", "http", STATELESS, tmp_path, twin=twin) as rig:
            name = "puppet__free" if twin else "free"
            said = await rig.ask(rig.call(name, {}), mcp_param_vendor="=?base64?w6Q=?=")
            assert "result" in said.message, said.raw
            assert head_of_call(rig).get("mcp-param-vendor") == "=?base64?w6Q=?="

    asyncio.run(work())


def test_headers_are_dropped_in_front_of_pipes(tmp_path: Path) -> None:
    """The child gets the message's bytes but for its id, and the call is none the worse."""

    async def work() -> None:
        async with rigged("http", "child", STATELESS, tmp_path) as rig:
            message = rig.call("headed", {"place": "a"})
            said = await rig.ask(message, mcp_param_place="a", mcp_param_vendor="unheard-of")
            assert "result" in said.message, said.raw
            (heard,) = (raw for raw in rig.heard if b'"tools/call"' in raw)
            assert json.loads(heard) == message | {"id": json.loads(heard)["id"]}
            assert not any(b"unheard-of" in raw for raw in rig.heard)

    asyncio.run(work())


@pytest.mark.parametrize("revision", REVISIONS[:2])
@pytest.mark.parametrize("upstream", ["child", "http"])
def test_headers_say_nothing_in_older_revisions(
    upstream: str, revision: str, tmp_path: Path
) -> None:
    """No header is held against the body where no rule says that it repeats it."""

    async def work() -> None:
        async with rigged("http", upstream, revision, tmp_path) as rig:
            wrong = {"mcp_method": "tools/list", "mcp_name": "nobody", "mcp_param_place": "b"}
            said = await rig.ask(rig.call("headed", {"place": "a"}), **wrong)
            assert "result" in said.message, said.raw

    asyncio.run(work())


@pytest.mark.parametrize("told", [True, False], ids=["header", "no header"])
@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26"])
@pytest.mark.parametrize("door,upstream", [("http", "child"), ("http", "http"), ("stdio", "child")])
def test_versions_before_those_served_are_passed_on(
    door: str, upstream: str, version: str, told: bool, tmp_path: Path
) -> None:
    """The server hears the client's own word; the gateway's rules are those of 2025-06-18."""

    async def work() -> None:
        async with rigged(door, upstream, version, tmp_path, hands=False) as rig:
            silent = {} if told or door == "stdio" else {"mcp_protocol_version": ""}
            said = await rig.shake_hands()
            assert said.message["result"]["protocolVersion"] == version
            opening = next(json.loads(raw) for raw in rig.heard if b'"initialize"' in raw)
            assert opening["params"]["protocolVersion"] == version
            said = await rig.ask(rig.call("picky", {"text": "x"}), **silent)
            assert said.message["result"]["_meta"]["dev.mcp-envelope/record"]["seq"]
            said = await rig.ask(rig.call("picky", {"text": 7}), **silent)
            check_error(rig, said, "INVALID_TOOL_INPUT", -32602)

    asyncio.run(work())


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("upstream", ["child", "http"])
@pytest.mark.parametrize("door", ["http", "stdio"])
def test_a_trace_is_forwarded_and_recorded(
    door: str, upstream: str, revision: str, tmp_path: Path
) -> None:
    """``traceparent``, ``tracestate`` and ``baggage`` of ``_meta``, and the trace's id."""
    trace = {"traceparent": PARENT, "tracestate": "v=1,w=2", "baggage": "k=v;p"}

    async def work() -> None:
        async with rigged(door, upstream, revision, tmp_path) as rig:
            start = len(rig.book.lines)
            await rig.ask(rig.call("free", {}, _meta=trace))
            assert [each["trace_id"] for each in rig.book.entries(start)] == [TRACE, TRACE]
            heard = next(json.loads(raw) for raw in rig.heard if b'"tools/call"' in raw)
            assert trace.items() <= heard["params"]["_meta"].items()

    asyncio.run(work())


def test_a_trace_may_stand_in_the_http_request(tmp_path: Path) -> None:
    """It is forwarded there; where the message names a trace itself, that is the one recorded."""

    async def work() -> None:
        async with rigged("http", "http", STATELESS, tmp_path) as rig:
            start = len(rig.book.lines)
            await rig.ask(rig.call(), traceparent=PARENT, tracestate="v=1")
            assert {each["trace_id"] for each in rig.book.entries(start)} == {TRACE}
            head = head_of_call(rig)
            assert (head["traceparent"], head["tracestate"]) == (PARENT, "v=1")
            start = len(rig.book.lines)
            other = PARENT.replace("4bf9", "5bf9")
            await rig.ask(rig.call("free", {}, _meta={"traceparent": other}), traceparent=PARENT)
            assert {each["trace_id"] for each in rig.book.entries(start)} == {other[3:35]}

    asyncio.run(work())


def test_what_is_no_trace_is_recorded_as_none(tmp_path: Path) -> None:
    """And forwarded all the same: it is the sender's word."""
    wrong = [7, "", TRACE, PARENT.upper(), PARENT.replace(TRACE, "0" * 32),
             PARENT.replace("4", "g"), f"ff{PARENT[2:]}", f"{PARENT}-x", PARENT[:-3]]  # fmt: skip

    async def work() -> None:
        async with rigged("stdio", "child", "2025-11-25", tmp_path) as rig:
            start = len(rig.book.lines)
            for each in wrong:
                await rig.ask(rig.call("free", {}, _meta={"traceparent": each}))
            await rig.ask(rig.call("free", {}, _meta={"traceparent": f"01{PARENT[2:]}-x"}))
            settled = [each for each in rig.book.entries(start) if each["event"] == "settled"]
            assert [each["trace_id"] for each in settled] == [None] * len(wrong) + [TRACE]
            heard = [json.loads(raw)["params"] for raw in rig.heard if b'"tools/call"' in raw]
            assert [each["_meta"]["traceparent"] for each in heard[:-1]] == wrong

    asyncio.run(work())


GATE = HttpSettings(hosts=("tools.example", "odd.example:81"), origins=("https://app.example",))


@pytest.mark.parametrize("upstream", ["child", "http"])
def test_the_door_knows_its_hosts_and_origins(upstream: str, tmp_path: Path) -> None:
    """``http.hosts`` and ``http.origins`` beside the loopback ones; all else is 403, recorded."""
    let_in = [
        {"host": "tools.example"},
        {"host": "Tools.Example:8080"},
        {"host": "odd.example:81"},
        {"host": "localhost:1", "origin": "https://app.example"},
        {"host": "[::1]:1", "origin": "http://localhost:6274"},
    ]
    kept_out = [
        {"host": "odd.example:82"},
        {"host": "evil.example"},
        {"host": "tools.example.evil.example"},
        {"host": "tools.example", "origin": "https://evil.example"},
        {"origin": "http://app.example"},
        {"origin": "https://app.example:444"},
        {"origin": "https://localhost.evil.example"},
        {"origin": "null"},
    ]

    async def work() -> None:
        async with rigged("http", upstream, STATELESS, tmp_path, http=GATE) as rig:
            for head in let_in:
                said = await rig.ask(rig.call(), **head)
                assert "result" in said.message, head
            before = ran(rig)
            for head in kept_out:
                start = len(rig.book.lines)
                said = await rig.ask(rig.call(), **head)
                assert said.http is not None
                assert said.http.status == 403, head
                (line,) = rig.book.entries(start)
                assert (line["event"], line["outcome"]) == ("refused", "FORBIDDEN")
                assert line["request_id"] == said.message["error"]["data"]["requestId"]
            assert ran(rig) == before

    asyncio.run(work())
