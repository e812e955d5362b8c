"""Ledger lines: their bytes, their bounds, and what no text from outside can do to them."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.facts import DIGEST, TEXTS_OF_FACTS, all_facts, some_facts

from mcp_envelope.core.canonical import canonical
from mcp_envelope.core.document import parse
from mcp_envelope.core.entry import (
    GENESIS,
    MOST,
    Body,
    Facts,
    body_of,
    line,
    output_body,
    started,
    stopped,
)

FIELDS = (
    *("v", "event", "seq", "prev", "time", "instance", "kind", "tool", "definition", "peer"),
    *("grant", "request_id", "client_id", "run_id", "trace_id", "correlation_id", "door"),
    *("dialect", "outcome", "error", "duration_ms", "input", "output", "warnings"),
)
SURROGATES = re.compile("[\ud800-\udfff]")
LABEL = "dev.mcp-envelope/record"


def read(facts: Facts) -> dict[str, Any]:
    """What a reader of the line gets."""
    found: dict[str, Any] = json.loads(line(facts, 3, GENESIS))
    return found


def test_the_bytes_of_a_line_are_these() -> None:
    """Lines written once must verify for ever, so not a byte of this may change."""
    assert line(some_facts(), 3, GENESIS).decode() == (
        '{"v":1,"event":"settled","seq":3,"prev":"' + "0" * 64 + '",'
        '"time":"2026-11-19T20:59:08.123456Z","instance":"time-4c1a",'
        '"kind":"mcp/request:tools/call:get_current_time","tool":"get_current_time",'
        '"definition":null,"peer":"stdio:1234","grant":null,'
        '"request_id":"0192f0c1-7777-7000-8000-000000000000","client_id":7,"run_id":null,'
        '"trace_id":null,"correlation_id":null,"door":"stdio","dialect":"mcp/2025-11-25",'
        '"outcome":"ok","error":null,"duration_ms":12.345,'
        '"input":{"digest":"sha256:' + DIGEST + '","bytes":31},'
        '"output":{"digest":"sha256:' + DIGEST + '","bytes":112},"warnings":[]}'
    )


def test_every_line_has_every_field_in_the_order_of_the_interface() -> None:
    """What is not known is null, never left out."""
    bare = read(Facts(event="started", time="t", instance="i"))
    assert tuple(bare) == FIELDS
    assert {name for name, value in bare.items() if value is None} == {
        *TEXTS_OF_FACTS,
        *("client_id", "error", "duration_ms"),
    } - {"time", "instance"}
    assert bare["input"] == bare["output"] == {"state": "absent"}


def test_the_page_about_the_record_names_the_same_fields(root: Path) -> None:
    """In the same order, so that whoever reads a ledger finds what it says there."""
    page = (root / "docs" / "ledger.md").read_text(encoding="utf-8")
    table = page[page.index("| field | is |") :].partition("\n\n")[0]
    first_cells = [row.split("|")[1] for row in table.splitlines()]
    assert tuple(re.findall("`(.+?)`", "".join(first_cells))) == FIELDS


@given(all_facts(), st.integers(0, 2**53))
def test_any_facts_give_one_valid_line_that_reads_back(facts: Facts, seq: int) -> None:
    """One line for every reader, at most 65,535 bytes, strict JSON, with what was said."""
    text = line(facts, seq, GENESIS)
    assert len(text) <= MOST
    assert len(text.decode().splitlines()) == 1
    assert text.splitlines() == [text]
    found = parse(text).value
    assert tuple(found) == FIELDS
    assert found["seq"] == seq
    last = found["warnings"][-1] if found["warnings"] else ""
    cut = last[11:].split(", ") if last.startswith("truncated: ") else []
    for name in (*TEXTS_OF_FACTS, "client_id"):
        said, told = getattr(facts, name), found[name]
        if isinstance(said, str):
            said = SURROGATES.sub("\ufffd", said)
        if name in cut:
            assert told.endswith("…")
            assert said.startswith(told[:-1])
        else:
            assert (type(told), told) == (type(said), said)


@given(all_facts())
def test_nothing_in_a_line_steers_a_terminal_or_hides_text(facts: Facts) -> None:
    """Controls, line separators, overrides of direction and marks are escaped."""
    unseen = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
    assert not re.search(unseen, line(facts, 0, GENESIS).decode())


@pytest.mark.parametrize(
    "id", [7, "7", 7.5, 0, -1, "", None, 12345678901234567890, 10**900, 1.0, 5e-324]
)
def test_the_clients_id_keeps_its_type(id: Any) -> None:
    """`7` and `"7"` are different clients' business, and 20 digits are 20 digits."""
    told = read(some_facts(client_id=id))["client_id"]
    assert (type(told), told) == (type(id), id)


def test_an_integer_longer_than_any_document_holds_is_named_by_its_size() -> None:
    """Python would refuse to print it."""
    assert read(some_facts(client_id=1 << 20_000))["client_id"] == "20001 bits…"
    assert read(some_facts(client_id=10**1000))["client_id"] == "3322 bits…"


def test_halves_of_surrogate_pairs_are_replaced_where_one_sees_it() -> None:
    """No UTF-8 can hold them."""
    found = read(some_facts(peer="a\ud800b", error={"code": "X", "message": "\udfff"}))
    assert found["peer"] == "a\ufffdb"
    assert found["error"] == {"code": "X", "message": "\ufffd"}


def test_what_is_long_is_cut_in_a_fixed_order_and_named() -> None:
    """Warnings and messages go first; what is short stays whole."""
    long = "x" * 55_000
    found = read(some_facts(peer=long, tool="y" * 5_000, warnings=("short", long)))
    assert found["warnings"] == ["short", "x" * 4_095 + "…", "truncated: warnings"]
    assert (found["peer"], found["tool"]) == (long, "y" * 5_000)
    found = read(some_facts(client_id=long, error={"code": "TIMEOUT", "message": long}))
    assert found["error"] == {"code": "TIMEOUT", "message": "x" * 4_095 + "…"}
    assert found["warnings"] == ["truncated: error.message"]
    assert found["client_id"] == long


@pytest.mark.parametrize("character", ["x", "\x00", "𝄞", "\u2028", "\ud800"])
def test_the_longest_facts_of_all_fit(character: str) -> None:
    """Whatever is in them, and although each field is long."""
    long = character * 70_000
    texts = dict.fromkeys(TEXTS_OF_FACTS, long)
    facts = some_facts(
        **texts,
        client_id=long,
        error={"code": long, "message": long},
        warnings=(long,) * 30,
    )
    text = line(facts, 2**53, GENESIS)
    assert len(text) <= MOST
    assert json.loads(text)["warnings"][-1].startswith("truncated: warnings, error.message, peer")


@pytest.mark.parametrize("character", ["\u2028", "\x85", "\ud800", "\x00"])
def test_a_long_text_costs_little_whatever_is_in_it(character: str) -> None:
    """Lines are written by the event loop, and ids of 4 MB may come from anybody."""
    began = perf_counter()
    line(some_facts(client_id=character * 1_400_000), 0, GENESIS)
    assert perf_counter() - began < 0.5


@pytest.mark.parametrize("length", range(MOST - 3, MOST + 4))
def test_the_bound_is_exact(length: int) -> None:
    """65,535 bytes are allowed and nothing is cut before."""
    facts = some_facts(peer="")
    peer = "x" * (length - len(line(facts, 3, GENESIS)))
    text = line(some_facts(peer=peer), 3, GENESIS)
    assert (len(text) == length) == (length <= MOST)
    assert bool(json.loads(text)["warnings"]) == (length > MOST)


def test_a_body_is_the_digest_and_size_of_the_canonical_form() -> None:
    """However the value was written."""
    document = parse(b'{ "b": 1.0, "a": [1e2] }')
    text = b'{"a":[100],"b":1}'
    assert canonical(document) == text
    assert body_of(document) == Body(digest=sha256(text).hexdigest(), size=len(text))
    assert body_of(document).as_json() == {
        "digest": f"sha256:{sha256(text).hexdigest()}",
        "bytes": len(text),
    }


def test_a_body_without_a_digest_says_why() -> None:
    """No value, and one that has no canonical form."""
    assert body_of(None).as_json() == {"state": "absent"}
    assert body_of(parse(b"[12345678901234567890]")).as_json() == {"state": "out_of_domain"}
    assert body_of(parse(b"null")) == Body(digest=sha256(b"null").hexdigest(), size=4)


@pytest.mark.parametrize(
    "result,rest",
    [
        (b'{"_meta":{"dev.mcp-envelope/record":{"seq":1},"z":1.0}}', b'{"_meta":{"z":1}}'),
        (b'{"_meta":{"dev.mcp-envelope/record":1},"a":2}', b'{"a":2}'),
        (b'{"b":1,"_meta":{"z":1},"a":2}', b'{"_meta":{"z":1},"a":2,"b":1}'),
        (b'{"_meta":"dev.mcp-envelope/record"}', b'{"_meta":"dev.mcp-envelope/record"}'),
        (b'["dev.mcp-envelope/record"]', b'["dev.mcp-envelope/record"]'),
    ],
)
def test_an_output_is_taken_without_our_key_and_nothing_else(result: bytes, rest: bytes) -> None:
    """INTERFACE.md: the canonical result without our `_meta` key. The document stays as it is."""
    document = parse(result)
    assert output_body(document, LABEL) == Body(digest=sha256(rest).hexdigest(), size=len(rest))
    assert document == parse(result)


def test_starts_and_stops_have_lines_of_their_own() -> None:
    """They name the run of the gateway, and nothing of any call."""
    begun = started(time="t0", instance="i", warnings=("w",))
    ended = stopped(time="t1", instance="i", duration_ms=5.0)
    assert (begun.event, begun.outcome, begun.warnings) == ("started", "ok", ("w",))
    assert (ended.event, ended.outcome, ended.duration_ms) == ("stopped", "ok", 5.0)
    of_calls = {"kind", "tool", "peer", "request_id", "client_id", "door", "error"}
    assert not any(facts._asdict()[name] for facts in (begun, ended) for name in of_calls)
