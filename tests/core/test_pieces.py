"""What is a line, and what is none: both verifiers agree."""

from __future__ import annotations

import json

import pytest
from tests.core.both import alike
from tests.core.facts import some_facts
from tests.core.ledgers import OURS, Book

from mcp_envelope.core.entry import line
from mcp_envelope.core.pieces import read_entry

TEXT = line(some_facts(event="settled", error={"code": "X", "message": "@@"}), 0, "0" * 64)


def of_one(text: bytes) -> tuple[str, int] | None:
    """What is said of a ledger that begins with this line."""
    book = Book()
    book.add_forged(text)
    book.seal()
    return alike(book.data)


@pytest.mark.parametrize(
    "more",
    [b',"seq":9}', b',"event":"admitted"}', b',"v" : 1}', b',"error":{"code":"X","code":"Y"}}'],
)
def test_no_name_stands_twice_in_a_line(more: bytes) -> None:
    """Readers would not agree on what it says: some take the first, others the last."""
    text = TEXT
    if more.startswith(b',"error"'):
        text = text.replace(b'"error":{"code":"X",', b'"error":{"code":"Y","code":"X",')
    else:
        text = text[:-1] + more
    assert text != TEXT
    json.loads(text)
    assert of_one(TEXT) is None
    assert of_one(text) == ("unreadable", 0)


def test_other_members_and_spellings_are_fine() -> None:
    """The same value may be written in several ways, and a later version may say more."""
    for text in (
        TEXT[:-1] + b',"more":{"a":[{"b":1.50}]}}',
        TEXT.replace(b'"message":"@@"', b'"message": "\\u0040\\ud83d\\ude00"'),
        TEXT.replace(b'"@@"', b'"\\":,\\":{"'),
    ):
        assert text != TEXT
        assert of_one(text) is None


@pytest.mark.parametrize("half", [b"\\ud800", b"\\uDFFF", b"a\\udc00b"])
def test_no_text_of_a_line_holds_half_of_a_surrogate_pair(half: bytes) -> None:
    """UTF-8 cannot hold it, so it could be neither shown nor hashed again."""
    assert of_one(TEXT.replace(b"@@", half)) == ("unreadable", 0)
    assert of_one(TEXT.replace(b'"code"', b'"%b"' % half)) == ("unreadable", 0)
    book = Book()
    book.call()
    book.seal()
    for at, found in (
        (b"mcp-envelope/ledger/", b"mcp-envelope/ledger/" + half),
        (b"key: ", b"key: " + half),
    ):
        last = book.texts[-1]
        data = book.data.replace(last, last.replace(at, found, 1))
        assert alike(data, [OURS.key]) == ("unreadable", 2)


@pytest.mark.parametrize("depth", [10, 300, 100_000])
def test_what_is_nested_deeply_does_no_harm(depth: int) -> None:
    """It is a line or none, without a traceback."""
    nested = TEXT.replace(b'"@@"', b"[" * depth + b"]" * depth)
    assert (read_entry(nested + b"\n") is None) == (depth > 1_000)
    assert (of_one(nested) is None) == (depth < 1_000)
