"""Redaction in a whole gateway: what lines, labels and bodies show, and what all others get."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from dataclasses import replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.facts import some_facts
from tests.gateway.rig import REVISIONS, STATELESS, Rig, answering, plan, rigged

from mcp_envelope.core.bodies import Keeping, noted
from mcp_envelope.core.canonical import canonical
from mcp_envelope.core.codes import TABLE
from mcp_envelope.core.entry import GENESIS, line
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.redaction import REDACTED, Redactor
from mcp_envelope.gateway.logs import LineFormatter
from mcp_envelope.gateway.settings import RecordSettings, Rules
from mcp_envelope.pipeline.record import LABEL, message_of

CANARY = "canary-7q"
KEPT = Rules(bodies="all")
REDACTED_STATE = {"state": "redacted"}
REMARK = re.compile(
    r"redacted: (input|output) at (.*); the rest sha256:([0-9a-f]{64}), ([0-9]+) bytes"
)
WAYS = list(product(("http", "stdio"), ("child", "http"), ("2025-11-25", STATELESS)))
SECRETS = {"user": "me", "password": CANARY, "headers": {"X-Api-Key": CANARY}}
REST = {"user": "me", "password": REDACTED, "headers": {"X-Api-Key": REDACTED}}
RESULT = {
    "content": [{"type": "text", "text": json.dumps({"token": CANARY, "n": 1})}],
    "structuredContent": {"token": CANARY, "n": 1},
}
REST_OF_RESULT = {
    "content": [
        {"type": "text", "text": json.dumps({"token": REDACTED, "n": 1}, separators=(",", ":"))}
    ],
    "structuredContent": {"token": REDACTED, "n": 1},
}


def answer_of(result: Any) -> dict[str, Any]:
    """A plan to answer with a result."""
    return answering(b'"result":' + json.dumps(result).encode())


def remarks(entry: dict[str, Any]) -> dict[str, tuple[str, str, int]]:
    """What a line says was redacted: side, places, digest and size of the rest."""
    found = [REMARK.fullmatch(text) for text in entry["warnings"]]
    return {each[1]: (each[2], each[3], int(each[4])) for each in found if each}


def about(value: Any) -> tuple[str, int]:
    """Digest and size of a value."""
    form = canonical(value)
    return sha256(form).hexdigest(), len(form)


def kept(rig: Rig) -> list[Any]:
    """The bodies that are kept, in the order in which they came."""
    for digest, body in rig.book.bodies.items():
        assert sha256(body).hexdigest() == digest
    return [json.loads(body) for body in rig.book.bodies.values()]


@pytest.mark.parametrize("twin", [False, True])
@pytest.mark.parametrize("door,upstream,revision", WAYS)
def test_lines_name_what_was_redacted_and_nobody_else_notices(
    door: str, upstream: str, revision: str, twin: bool, tmp_path: Path
) -> None:
    """State, places and the digest of the rest in line and label; client and server get it all."""

    async def work() -> None:
        async with rigged(door, upstream, revision, tmp_path, twin=twin, rules=KEPT) as rig:
            start = len(rig.book.lines)
            name = "puppet__free" if twin else "free"
            said = await rig.ask(rig.call(name, SECRETS, plan=answer_of(RESULT)))
            admitted, settled = rig.book.entries(start)
            assert (admitted["event"], settled["event"]) == ("admitted", "settled")
            assert admitted["input"] == settled["input"] == settled["output"] == REDACTED_STATE
            assert admitted["output"] == {"state": "absent"}
            places = "/password, /headers/X-Api-Key"
            assert remarks(admitted) == {"input": (places, *about(REST))}
            places = "/content/0/text, /structuredContent/token"
            assert remarks(settled) == {
                "input": ("/password, /headers/X-Api-Key", *about(REST)),
                "output": (places, *about(REST_OF_RESULT)),
            }
            label = said.message["result"]["_meta"][LABEL]
            assert (label["input"], label["output"]) == (REDACTED_STATE, REDACTED_STATE)
            assert label["warnings"] == settled["warnings"]
            del said.message["result"]["_meta"]
            assert kept(rig) == [REST, REST_OF_RESULT]
            assert (
                json.loads(said.raw)["result"]["structuredContent"] == RESULT["structuredContent"]
            )
            assert json.loads(said.raw)["result"]["content"] == RESULT["content"]
            heard = [json.loads(raw) for raw in rig.heard]
            (call,) = [each for each in heard if each.get("method") == "tools/call"]
            assert call["params"]["arguments"] == SECRETS
            assert CANARY not in b"\n".join(rig.book.lines).decode()

    asyncio.run(work())


@pytest.mark.parametrize("bodies", ["none", "errors", "all"])
def test_which_bodies_are_kept(bodies: Any, tmp_path: Path) -> None:
    """None, those of calls that fail (with their last line), or all (each with its line)."""
    failed = {"content": [], "isError": True}

    async def work() -> None:
        rules = Rules(bodies=bodies, output="strict", retries=0, unknown_tools="refuse")
        async with rigged("stdio", "child", STATELESS, tmp_path, rules=rules) as rig:

            async def after(*call: Any, **more: Any) -> list[Any]:
                before = len(rig.book.bodies)
                await rig.ask(rig.call(*call, **more))
                return kept(rig)[before:]

            fine = await after("free", {"n": 1}, plan=answer_of({"content": [1]}))
            assert fine == ([{"n": 1}, {"content": [1]}] if bodies == "all" else [])
            broken = await after("free", {"n": 2}, plan=answer_of(failed))
            assert broken == ([] if bodies == "none" else [{"n": 2}, failed])
            fault = answering(b'"error":{"code":1,"message":"x"}')
            assert await after("free", {"n": 3}, plan=fault) == (
                [] if bodies == "none" else [{"n": 3}]
            )
            died = await after("free", {"n": 4}, plan=plan(then="die"))
            assert died == ([] if bodies == "none" else [{"n": 4}])
            refused = await after("picky", {"n": 5})
            assert refused == ([] if bodies == "none" else [{"n": 5}])
            unknown = await after("nobody", {"n": 6})
            assert unknown == ([] if bodies == "none" else [{"n": 6}])
            strict = await after("promising", {"n": 7}, plan=answer_of({"structuredContent": 8}))
            assert strict == ([] if bodies == "none" else [{"n": 7}])

    asyncio.run(work())


def test_the_input_of_a_call_that_never_ends_is_kept(tmp_path: Path) -> None:
    """With `all` it goes with the first line."""

    async def work() -> None:
        async with rigged("stdio", "child", STATELESS, tmp_path, rules=KEPT) as rig:
            start = len(rig.book.lines)
            message = rig.call(arguments={"n": 1}, plan=plan(then="hang"))
            rig.write(json.dumps(message).encode())
            assert (await rig.book.after(start, 1))[0]["event"] == "admitted"
            assert kept(rig) == [{"n": 1}]
            await rig.tell("notifications/release")
            await rig.read()

    asyncio.run(work())


def test_what_is_not_kept_is_said(tmp_path: Path) -> None:
    """What is too long, and what has no canonical form; a tool's own rules count before others."""
    rules = {"picky": Rules(digests=False, bodies="all"), "brief": Rules(bodies="errors")}

    async def work() -> None:
        record = RecordSettings(max_body_bytes=40)
        async with rigged(
            "stdio", "child", STATELESS, tmp_path, rules=KEPT, tools=rules, record=record
        ) as rig:

            async def last(*call: Any, **more: Any) -> dict[str, Any]:
                await rig.ask(rig.call(*call, **more))
                return rig.book.entries()[-1]

            found = await last("free", {"n": "x" * 40}, plan=answer_of({"content": []}))
            assert found["warnings"] == ["input not kept: it has 48 bytes"]
            assert "digest" in found["input"]
            assert kept(rig) == [{"content": []}]
            found = await last("free", {"n": 10**20}, plan=answer_of({"content": [10**20]}))
            assert found["input"] == found["output"] == {"state": "out_of_domain"}
            assert found["warnings"] == [
                "input not kept: it has no canonical form",
                "output not kept: it has no canonical form",
            ]
            found = await last("picky", {"text": "x", "password": CANARY}, plan=answer_of(RESULT))
            assert found["input"] == found["output"] == {"state": "not_recorded"}
            assert found["warnings"] == []
            found = await last("picky", plan=answer_of({"content": []}))
            assert found["input"] == {"state": "absent"}
            assert len(rig.book.bodies) == 1

    asyncio.run(work())


def test_an_operators_own_rules(tmp_path: Path) -> None:
    """Keys and places of one tool; another's calls are as usual, or nothing is redacted at all."""
    rules = {
        "free": Rules(redact_keys=("ssn",), redact_pointers=("/output/structuredContent/*/mail",)),
        "brief": Rules(redact_credentials=False),
    }

    async def work() -> None:
        async with rigged("http", "child", STATELESS, tmp_path, tools=rules) as rig:

            async def last(tool: str) -> dict[str, Any]:
                result = {"content": [], "structuredContent": [{"mail": "m"}], "n": 1}
                arguments = {"S-S-N": "1", "password": "p"}
                await rig.ask(rig.call(tool, arguments, plan=answer_of(result)))
                return rig.book.entries()[-1]

            found = remarks(await last("free"))
            assert found["input"][0] == "/S-S-N, /password"
            assert found["output"][0] == "/structuredContent/0/mail"
            usual = await last("größe 測試")
            assert (remarks(usual)["input"][0], "output" in remarks(usual)) == ("/password", False)
            off = await last("brief")
            assert remarks(off) == {}
            assert "digest" in off["input"]
            route = rig.gateway.routes["puppet"]
            route.settings = replace(route.settings, tools={"free": Rules(digests=False)})
            assert (await last("free"))["input"] == {"state": "not_recorded"}
            assert (await last("brief"))["input"] == REDACTED_STATE

    asyncio.run(work())


@pytest.mark.parametrize("revision", REVISIONS)
def test_texts_of_lines_are_redacted_too(revision: str, tmp_path: Path) -> None:
    """URIs of resources, names of prompts and tools, the client's ids, names in refusals."""
    token = "ghp_" + "a1" * 18
    asked: list[tuple[str, dict[str, Any]]] = [
        ("resources/read", {"uri": f"https://u:{CANARY}@h/x?access_token={CANARY}&page=2"}),
        ("prompts/get", {"name": f"password={CANARY}"}),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": f"x://u:{CANARY}@h"}}),
        ("tools/call", {"name": token, "arguments": {}}),
        ("tools/call", {"name": "picky", "arguments": {"text": 1}}),
    ]

    async def work() -> None:
        async with rigged("stdio", "child", revision, tmp_path, rules=Rules(retries=0)) as rig:
            for method, params in asked:
                message = rig.request(method, params) | {"id": f"Bearer {CANARY}-{rig.count}"}
                await rig.ask(message)
            text = b"\n".join(rig.book.lines).decode()
            assert CANARY not in text
            assert token not in text
            kinds = [entry["kind"] for entry in rig.book.entries() if entry["event"] == "settled"]
            assert (
                f"mcp/request:resources/read:https://u:{REDACTED}@h/x?access_token={REDACTED}&page=2"
                in kinds
            )
            assert f"mcp/request:tools/call:{REDACTED}" in kinds
            ids = {entry["client_id"] for entry in rig.book.entries()}
            assert f"Bearer {REDACTED}" in ids

    asyncio.run(work())


def test_places_in_refusals_name_no_secret(tmp_path: Path) -> None:
    """Neither members below what is redacted, nor names that are secrets themselves."""
    keys: dict[str, Any] = {"type": "object", "additionalProperties": False}
    for _ in range(2):
        keys = {"type": "object", "additionalProperties": keys}
    tools = [{"name": "fussy", "inputSchema": keys}]
    rules = Rules(redact_pointers=("/input/people/*",), unknown_tools="refuse")
    token = "ghp_" + "a1" * 18

    async def work() -> None:
        for mode in ("strict", "warn"):
            own = {"fussy": replace(rules, input=mode)}
            async with rigged("http", "child", STATELESS, tmp_path, tools=own) as rig:
                await rig.ask(rig.call(plan={"tools": tools}))
                for arguments in ({"people": {"x": {CANARY: 1}}}, {token: 1}, {"a": {token: 1}}):
                    await rig.ask(rig.call("fussy", arguments))
                    last = rig.book.entries()[-1]
                    told = last["error"]["message"] if last["error"] else last["warnings"][0]
                    assert " at /params/arguments/" in told, last
                    assert CANARY not in json.dumps(last)
                    assert token not in json.dumps(last)

    asyncio.run(work())


def test_a_task_is_labelled_with_the_same_states(tmp_path: Path) -> None:
    """Its result comes later, and the rules of its call hold."""
    begun = b'"result":{"task":{"taskId":"t-1","status":"working","ttl":1.0}}'

    async def work() -> None:
        async with rigged("stdio", "child", "2025-11-25", tmp_path) as rig:
            await rig.ask(rig.call(arguments=SECRETS, plan=answering(begun)))
            asked = rig.request("tasks/result", {"taskId": "t-1", "plan": answer_of(RESULT)})
            label = (await rig.ask(asked)).message["result"]["_meta"][LABEL]
            assert (label["input"], label["output"]) == (REDACTED_STATE, REDACTED_STATE)
            assert set(remarks(label)) == {"input", "output"}

    asyncio.run(work())


def test_words_of_our_own_are_no_secrets() -> None:
    """What the error table says is left as it is."""
    for code in TABLE:
        plain = message_of(EnvelopeError("it is so", code=code, pointer="/params/name"))
        off = Redactor(credentials=False)
        assert plain == message_of(
            EnvelopeError("it is so", code=code, pointer="/params/name"), off
        )


HOSTILE = st.text(
    st.sampled_from(list('a/~=:"\n\r\x00\x1b\x7f\x85\u2028\u2029\u202e\u2066\ufeffä')), max_size=8
)


@given(st.lists(HOSTILE, min_size=1, max_size=4), st.sampled_from(["password", "x"]))
def test_remarks_forge_no_line(names: list[str], last: str) -> None:
    """Names of members stand in warnings: no text in them ends a line or hides another."""
    value: Any = {last: "ghp_" + "a1" * 18}
    for name in names:
        value = {name: value}
    found = noted(value, "input", Keeping(bodies="all", largest=1))
    assert len(found.warnings) == 2
    text = line(some_facts(warnings=found.warnings), 3, GENESIS)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]", text.decode())
    told = json.loads(text)["warnings"]
    assert told == list(found.warnings)
    assert "ghp_" not in told[0]


@given(HOSTILE, HOSTILE)
def test_no_text_forges_a_line_of_the_log(message: str, thrown: str) -> None:
    """Nor does a traceback, whose lines have a margin; secrets are left out of both."""
    try:
        raise ValueError(f"{thrown}\n2026-01-01 00:00:00 ERROR forged password={CANARY}")
    except ValueError as error:
        caught = (type(error), error, error.__traceback__)
    record = logging.LogRecord(
        "x", logging.ERROR, "f", 1, "%s", (f"{message} Authorization: Bearer {CANARY}",), caught
    )
    first, *rest = LineFormatter().format(record).split("\n")
    assert all(each.startswith("  | ") for each in rest)
    assert not re.search(
        "[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]", "".join([first, *rest])
    )
    assert CANARY not in "".join([first, *rest])
