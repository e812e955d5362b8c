"""The texts of members and elements, against a slow reader that knows nothing of ours."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.texts import json_texts

from mcp_envelope.core import spans
from mcp_envelope.core.document import parse

_DECODER = json.JSONDecoder()


def _past_space(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


def slow_members(text: str) -> list[tuple[str, str]]:
    """The texts of keys and values, found by the standard library's own scanner."""
    found = []
    at = _past_space(text, _past_space(text, 0) + 1)
    while text[at] != "}":
        _, key_end = _DECODER.raw_decode(text, at)
        start = _past_space(text, _past_space(text, key_end) + 1)
        _, end = _DECODER.raw_decode(text, start)
        found.append((text[at:key_end], text[start:end]))
        at = _past_space(text, end)
        at = _past_space(text, at + 1) if text[at] == "," else at
    return found


def slow_elements(text: str) -> list[str]:
    """The texts of elements, found by the standard library's own scanner."""
    found = []
    at = _past_space(text, _past_space(text, 0) + 1)
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        found.append(text[at:end])
        at = _past_space(text, end)
        at = _past_space(text, at + 1) if text[at] == "," else at
    return found


@given(raw=json_texts())
def test_spans_are_those_that_a_slow_reader_finds(raw: bytes) -> None:
    """Members and elements are cut at the same places, at every depth, byte for byte."""
    pending = [raw]
    while pending:
        text = pending.pop()
        opening = text.strip()[:1]
        if opening == b"{":
            found = list(spans.members(text))
            assert [(k.decode(), v.decode()) for k, v in found] == slow_members(text.decode())
            pending += [value for _, value in found]
        elif opening == b"[":
            parts = list(spans.elements(text))
            assert [part.decode() for part in parts] == slow_elements(text.decode())
            pending += parts


@given(raw=json_texts())
def test_the_parts_of_a_document_are_documents_of_their_own_bytes(raw: bytes) -> None:
    """Each part has the value that its own bytes have when they are parsed alone."""
    document = parse(raw)
    for part in [*document.members().values(), *document.elements()]:
        again = parse(part.raw)
        assert again.value == part.value
        assert part.raw in raw
    for name, part in document.members().items():
        assert document[name].raw == part.raw


@pytest.mark.parametrize(
    "text,expected",
    [
        (b"{}", []),
        (b" {\n} ", []),
        (b'{"a":1}', [(b'"a"', b"1")]),
        (b'{ "a" : [ 1 , {"b":"]}"} ] , "":-0}', [(b'"a"', b'[ 1 , {"b":"]}"} ]'), (b'""', b"-0")]),
        (b'{"\\"":"\\\\","\\u0061":"\\""}', [(b'"\\""', b'"\\\\"'), (b'"\\u0061"', b'"\\""')]),
    ],
)
def test_members_keep_quotes_escapes_and_inner_space(
    text: bytes, expected: list[tuple[bytes, bytes]]
) -> None:
    """A key keeps its quotes and escapes, a value everything between its first and last byte."""
    assert list(spans.members(text)) == expected


@pytest.mark.parametrize(
    "text,expected",
    [
        (b"[]", []),
        (b"\t[ ] ", []),
        (b"[1]", [b"1"]),
        (
            b'[ 1.0 ,"a,]" , [ [ ] ],{"x" : 1},null ]',
            [b"1.0", b'"a,]"', b"[ [ ] ]", b'{"x" : 1}', b"null"],
        ),
    ],
)
def test_elements_are_cut_between_commas_that_count(text: bytes, expected: list[bytes]) -> None:
    """Commas and brackets within strings and inner arrays do not end an element."""
    assert list(spans.elements(text)) == expected


def test_parts_are_found_in_time_proportional_to_the_text() -> None:
    """A hundred thousand elements, and a long string of escapes, are cut in one pass."""
    many = b"[" + b",".join([b'{"a":[]}'] * 100_000) + b"]"
    assert sum(1 for _ in spans.elements(many)) == 100_000
    escapes = b'{"a":"' + b'\\\\\\"' * 500_000 + b'","b":1}'
    assert [len(value) for _, value in spans.members(escapes)] == [2_000_002, 1]
    deep = b"[" * 200 + b"]" * 200
    texts = [deep]
    while inner := list(spans.elements(texts[-1])):
        texts += inner
    assert all(len(outer) == len(part) + 2 for outer, part in pairwise(texts))


@given(raw=json_texts(), name=st.sampled_from(["a", "", "_meta", "é", '"']))
def test_what_is_known_of_a_text_changes_nothing_but_the_time_it_takes(
    raw: bytes, name: str
) -> None:
    """A member is set to the same effect whether or not the value of the text is given."""
    document = parse(raw)
    if not document.is_object:
        return
    inner = [(key, name) for key, part in document.value.items() if isinstance(part, dict)]
    for path in ((name,), ("new member", name), *inner):
        expected = spans.put(raw, path, b"1.0")
        assert spans.put(raw, path, b"1.0", document.value) == expected
