"""Decoding, encoding and converting, over documents drawn from the published schemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.dialects.strategies import SCHEMAS, instances

import mcp_envelope as me
from mcp_envelope.core.plain import same_value
from mcp_envelope.core.pointer import pointer_of, steps_of
from mcp_envelope.core.ports import Filling
from mcp_envelope.dialects import DIALECTS

#: How many examples the profile takes: fewer at home than in CI.
USUAL = settings.default.max_examples if settings.default is not None else 100
PARTS = [
    (name, part)
    for name in DIALECTS
    for part in DIALECTS[name].parts
    if part not in DIALECTS[name].records  # type: ignore[attr-defined]
]
PAIRS = [(name, part, to) for name, part in PARTS for to in DIALECTS]
OPENED = object()
OPEN = {"mcp", "mcpx/0.1", "jsonrpc/2.0", "tool/1.0"}
relaxed = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


def schema_of(dialect: str, part: str) -> Any:
    """The published schema of what a dialect writes as a part."""
    return SCHEMAS[f"urn:mcp-envelope:{dialect}:{emitted(dialect, part)}"]


def emitted(dialect: str, part: str) -> str:
    """The schema of what we write: tiered/1.0 reads more than it writes."""
    name = DIALECTS[dialect].parts[part]
    return "response.schema.json" if dialect == "tiered/1.0" else name


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every leaf of a value (empty containers too) with its pointer."""
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from leaves(part, (*path, name))
    elif isinstance(value, list) and value:
        for index, part in enumerate(value):
            yield from leaves(part, (*path, index))
    else:
        yield pointer_of(path), value


def missing(before: Any, after: Any, listed: tuple[str, ...]) -> list[str]:
    """Leaves of ``before`` that ``after`` lacks and nobody listed."""
    there = dict(leaves(after))
    for pointer in list(there):
        place, key, _ = pointer.partition("/dev.mcp-envelope~1")
        while key and place:  # an open place that was null or empty before has been used
            there.setdefault(place, OPENED)
            place = place.rpartition("/")[0]
    return [
        pointer
        for pointer, value in leaves(before)
        if not (pointer in there and _still(value, there[pointer]))
        and not any((pointer + "/").startswith(lost + "/") for lost in listed)
    ]


def _still(before: Any, after: Any) -> bool:
    return before in (None, {}) if after is OPENED else same_value(after, before)


def nested(value: Any) -> bool:
    """Whether this happens to be an envelope in an envelope, which decoding refuses."""
    result = value.get("result") if isinstance(value, dict) else None
    return isinstance(result, dict) and result.get("schema_version") == "mcp.envelope.v0.1"


@pytest.mark.parametrize(("dialect", "part"), PARTS)
@given(data=st.data())
@settings(relaxed, max_examples=2 * USUAL // 5)
def test_decoding_and_encoding_are_inverse(dialect: str, part: str, data: st.DataObject) -> None:
    """What a schema allows is decoded, encodes to an equal document, and decodes the same."""
    value = data.draw(instances(schema_of(dialect, part)))
    if nested(value):
        return
    document = me.Document.of(value)
    message = DIALECTS[dialect].decode(document, part)
    encoded = DIALECTS[dialect].encode(message, Filling())
    assert encoded.document == document
    assert (encoded.lost, encoded.filled) == ((), ())
    assert DIALECTS[dialect].decode(encoded.document, part) == message


@pytest.mark.parametrize(("dialect", "part", "to"), PAIRS)
@given(data=st.data())
@settings(relaxed, max_examples=USUAL // 8)
def test_there_and_back_loses_at_most_what_was_listed(
    dialect: str, part: str, to: str, data: st.DataObject
) -> None:
    """A conversion and its way back lose what they listed and nothing else."""
    check_there_and_back(dialect, part, to, data.draw(instances(schema_of(dialect, part))))


@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "part", "to"), PAIRS)
@given(data=st.data())
@settings(relaxed, max_examples=1000)
def test_there_and_back_many_times(dialect: str, part: str, to: str, data: st.DataObject) -> None:
    """The same, for as many documents as patience allows."""
    check_there_and_back(dialect, part, to, data.draw(instances(schema_of(dialect, part))))


def home(pointer: str, source: Any, value: Any, part: str) -> str:
    """Where in the source something stood that was carried along, and lost on the way back."""
    key = steps_of(pointer)[-1].removeprefix("dev.mcp-envelope/extra:")
    namespace, mark, inside = key.partition("#")
    places = {known: place for place, known in source.layout(value, part).namespaces.items()}
    return places[namespace] + inside if mark and namespace in places else pointer


def check_there_and_back(dialect: str, part: str, to: str, value: Any) -> None:
    """Convert and convert back, and compare what came home with what was listed."""
    source = DIALECTS[dialect]
    document = me.Document.of(value)
    if nested(value):
        return
    try:
        there = DIALECTS[to].encode(source.decode(document, part), Filling())
    except me.ConversionError:
        return
    assert all(document.at(pointer) is not None for pointer in there.lost), there.lost
    assert all(there.document.at(pointer) is not None for pointer in there.filled)
    target = DIALECTS[to]
    message = target.decode(there.document, target.part_of(there.document.value))
    try:
        back = source.encode(message, Filling())
    except me.ConversionError:
        # A kind that its payload contradicts comes back as the payload's, if there is one.
        if any(p.rule.endswith("kind-mismatch") for p in source.problems(document, part)):
            return
        raise
    listed = (*there.lost, *(home(pointer, source, value, part) for pointer in back.lost))
    # An error whose code was made coarser may come back as a result that is marked isError.
    listed += tuple(p.removesuffix("/code") for p in listed if p.endswith("/error/code"))
    if dialect == "tiered/1.0" and back.lost:
        listed += ("/error",)  # what comes from elsewhere is cut to what may stand in an error
    story = f"{document.raw!r}\n => {there.document.raw!r}\n => {back.document.raw!r}"
    assert missing(value, back.document.value, listed) == [], story
    if to in OPEN and not there.lost and not back.lost:
        assert back.document == document, story
