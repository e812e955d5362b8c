"""Documents: the exact bytes beside the value, and what comes out of both."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from tests.core.texts import json_texts, json_values

from mcp_envelope.core.document import DEFAULT_LIMITS, Document, build, dump, parse
from mcp_envelope.core.errors import EnvelopeError, UsageError
from mcp_envelope.core.strict import parse_carefully

NUMBERS = [
    "1.0",
    "1e2",
    "-0",
    "-0.0",
    "1E+02",
    "10000000000000000000001",
    "0.10",
    "1e-400",
    "5e-324",
]


@pytest.mark.parametrize("number", NUMBERS)
def test_number_text_survives_wherever_a_payload_is_carried(number: str) -> None:
    """1.0, 1e2, -0 and long integers come out as they went in, by every way there is."""
    raw = f'{{"keep":[{{"n": {number} }}],"drop":null,"n":{number}}}'.encode()
    document = parse(raw)
    assert dump(document) == raw
    expected = number.encode()
    for found in (document["n"], document.at("/keep/0/n"), document.members()["n"]):
        assert found is not None
        assert found.raw == expected
    assert document["keep"].elements()[0].raw == b'{"n": %s }' % expected
    assert document.without("drop").raw == b'{"keep":[{"n": %s }],"n":%s}' % (expected, expected)
    assert build({"a": document["n"], "b": [document["keep"]]}).raw == (
        b'{"a":%s,"b":[[{"n": %s }]]}' % (expected, expected)
    )
    assert dump([document["n"], (document["n"],)]) == b"[%s,[%s]]" % (expected, expected)


def test_a_document_is_its_value_and_its_bytes() -> None:
    """A document equals its value however that is spelled, and treats parts as documents."""
    document = parse(b'{"a":[1,2.50,"\\u0078"],"b":{"c/d":{"~":null}}}')
    assert document == {"a": [1, 2.5, "x"], "b": {"c/d": {"~": None}}}
    assert document == parse(b'{"b":{"c/d":{"~":null}},"a":[1.0,25e-1,"x"]}')
    assert document != {"a": [True, 2.5, "x"], "b": {"c/d": {"~": None}}}
    assert parse(b"1") == 1.0
    assert parse(b"1") != parse(b"true")
    null = document.at("/b/c~1d/~0")
    assert null is not None, "null is there, None says that nothing is"
    assert null.value is None
    assert null != None  # noqa: E711
    assert null == parse(b"null")
    assert [document.at(p) for p in ("/x", "/a/3", "/a/01", "/a/-", "/a/+1", "/a/0/b")] == [
        None
    ] * 6
    assert document.at("") is document
    assert (len(document), "a" in document, list(document)) == (2, True, ["a", "b"])
    assert document["a"][1].raw == b"2.50"
    assert document.is_object
    assert not document["a"].is_object
    assert (document["a"].members(), document.elements()) == ({}, [])
    assert document.without("x") is document
    with pytest.raises(KeyError):
        document["c"]
    with pytest.raises(TypeError):
        hash(document)


def test_representations_hold_no_payload() -> None:
    """What ends up in logs says what and how large, never the contents."""
    assert repr(parse(b'{"secret":"x"}')) == "<Document dict, 14 bytes>"


@pytest.mark.parametrize("data", ["{}", None, 5, [1, 2], {"a": 1}])
def test_parse_takes_bytes_and_nothing_else(data: Any) -> None:
    """A str, a number or a list is the caller's mistake, said so."""
    with pytest.raises(UsageError, match=f"not {type(data).__name__}"):
        parse(data)
    for good in (bytearray(b"[1]"), memoryview(b"[1]"), memoryview(b"[-1-]")[::2]):
        assert parse(good).raw == bytes(good)


def test_a_document_keeps_its_bytes_when_the_buffer_changes() -> None:
    """What was read stays as it was, whatever becomes of the buffer it came in."""
    buffer = bytearray(b"[1]")
    document = parse(buffer)
    buffer[1:2] = b"2"
    assert (document.raw, document.value) == (b"[1]", [1])


def test_documents_of_values_hold_documents_of_texts() -> None:
    """Document.of takes plain values with documents anywhere inside, and documents themselves."""
    part = parse(b'{ "n": 1.0 }')
    assert Document.of(part) is part
    whole = Document.of({"a": [part, None], "b": "x"})
    assert whole.raw == b'{"a":[{ "n": 1.0 },null],"b":"x"}'
    assert whole.value == {"a": [{"n": 1.0}, None], "b": "x"}
    with pytest.raises(EnvelopeError, match="deeper"):
        build({"a": parse(b"[" * 200 + b"]" * 200)})
    assert build({"a": parse(b"[" * 199 + b"]" * 199)})


# -- properties --------------------------------------------------------------------------------


def by_the_long_way(raw: bytes) -> Document:
    """The same document, read without the short way for texts that print back unchanged."""
    return Document(raw, parse_carefully(raw, DEFAULT_LIMITS))


@given(raw=json_texts())
@example(raw=b'["a b", "a  b" ,"\\u0020 "]')
@example(raw=b"[ -0 , 1E2 , 1.0, 0.10 ]")
def test_a_document_has_the_value_that_json_says(raw: bytes) -> None:
    """Reading agrees with json.loads: the same values, of the same types, in the same order."""
    expected = json.loads(raw)
    document = parse(raw)
    assert repr(document.value) == repr(expected)
    assert dump(document) == raw == document.raw
    assert repr(by_the_long_way(raw).value) == repr(expected)


@given(raw=json_texts())
def test_the_short_way_and_the_long_way_agree(raw: bytes) -> None:
    """The same text gives the same document and parts, however fast it was read."""
    value = json.loads(raw)
    for text in (
        raw,
        json.dumps(value).encode(),
        json.dumps(value, indent=2).encode(),
        json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(),
    ):
        short, long = parse(text), by_the_long_way(text)
        assert repr(short.value) == repr(long.value) == repr(value)
        for one, other in zip(short.elements(), long.elements(), strict=True):
            assert (one.raw, repr(one.value)) == (other.raw, repr(other.value))
        assert {k: v.raw for k, v in short.members().items()} == {
            k: v.raw for k, v in long.members().items()
        }


@given(value=json_values(beyond_double=True))
def test_a_plain_value_comes_back_as_it_was(value: Any) -> None:
    """parse(dump(value)) is the value, types and order included."""
    assert repr(parse(dump(value)).value) == repr(value)


@given(raw=json_texts())
def test_building_from_the_parts_keeps_every_byte_of_them(raw: bytes) -> None:
    """An object or array built of a document's parts holds exactly their texts."""
    document = parse(raw)
    parts = document.members()
    assert build(parts) == (document if parts else {})
    assert [v.raw for v in build(parts).members().values()] == [v.raw for v in parts.values()]
    items = document.elements()
    assert dump(items) == b"[" + b",".join(item.raw for item in items) + b"]"


@pytest.mark.parametrize("text", ["a", "xyz", "/~", "/~2", "/a~", "#/a"])
def test_what_is_no_pointer_leads_nowhere(text: str) -> None:
    """RFC 6901, section 3: empty, or steps that begin with a slash; a tilde is escaped."""
    assert parse(b'{"a":{"":1},"~":2,"~2":3,"xyz":4}').at(text) is None
