"""Facts for ledger lines: a usual call's, and such as nobody wishes to see."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from mcp_envelope.core.entry import Body, Facts

DIGEST = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
TEXTS_OF_FACTS = (
    *("time", "instance", "kind", "tool", "definition", "peer", "grant", "request_id", "run_id"),
    *("trace_id", "correlation_id", "door", "dialect", "outcome"),
)


def some_facts(**more: Any) -> Facts:
    """A usual call's, but for what is named."""
    usual: dict[str, Any] = {
        "event": "settled",
        "time": "2026-11-19T20:59:08.123456Z",
        "instance": "time-4c1a",
        "kind": "mcp/request:tools/call:get_current_time",
        "tool": "get_current_time",
        "peer": "stdio:1234",
        "request_id": "0192f0c1-7777-7000-8000-000000000000",
        "client_id": 7,
        "door": "stdio",
        "dialect": "mcp/2025-11-25",
        "outcome": "ok",
        "duration_ms": 12.345,
        "input": Body(digest=DIGEST, size=31),
        "output": Body(digest=DIGEST, size=112),
    }
    return Facts(**{**usual, **more})


# Everything Python can hold in a str, halves of surrogate pairs too, and favourites.
TEXTS = st.one_of(
    st.text(st.characters(codec=None), max_size=20),
    st.sampled_from(["\n", '"},\n{"v":1', "\u2028", "\u2029", "\x85", "\x00", "\x1b[2J", "\ud800"]),
    st.sampled_from(["\x7f", "\u202e", "\ufeff", "\r", "\x0b\x0c\x1c\x1d\x1e", "𝄞", ""]),
    st.sampled_from(["a" * 5_000, "a" * 66_000, "\x00" * 1_000, "𝄞" * 20_000, "\u2028" * 11_000]),
)
BODIES = st.one_of(
    st.builds(Body, digest=st.just(DIGEST), size=st.integers(0, 2**40)),
    st.builds(
        Body,
        state=st.sampled_from(["redacted", "not_recorded", "out_of_domain", "truncated", "absent"]),
    ),
)
IDS = st.one_of(
    st.none(),
    TEXTS,
    st.integers(-(10**999) + 1, 10**1000 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
)


def all_facts() -> st.SearchStrategy[Facts]:
    """Any at all."""
    maybe = {name: st.none() | TEXTS for name in TEXTS_OF_FACTS if name not in ("time", "instance")}
    return st.builds(
        Facts,
        event=st.sampled_from(["admitted", "settled", "refused", "malformed", "started"]),
        time=TEXTS,
        instance=TEXTS,
        client_id=IDS,
        error=st.none() | st.fixed_dictionaries({"code": TEXTS, "message": TEXTS}),
        duration_ms=st.none() | st.floats(0, 1e9),
        input=BODIES,
        output=BODIES,
        warnings=st.lists(TEXTS, max_size=5).map(tuple),
        **maybe,
    )
