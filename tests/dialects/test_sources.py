"""Tracebacks and source text stay out of errors, however they come."""

from __future__ import annotations

import pytest

import mcp_envelope as me
from mcp_envelope.dialects.sources import is_safe, without_code

HEAD = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\n    SECRET = 42\n'
LEFT_OUT = "the tool failed; what it said looks like source text and is left out"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("File not found: /missing.py.", "File not found: /missing.py."),
        ("", ""),
        ("it failed\n", "it failed\n"),
        ("it failed\nSECRET = 42", "it failed"),
        ("x" * 501, "x" * 500),
        (HEAD + "ValueError: no", "ValueError: no"),
        (HEAD + "ValueError: could not parse:\nSECRET = 42", "ValueError: could not parse:"),
        (HEAD + "ValueError: could not parse\n  SECRET = 42", "ValueError: could not parse"),
        (HEAD + "ValueError: no\n\nDuring handling:\n\n" + HEAD + "KeyError: 1", "KeyError: 1"),
        (HEAD.replace("\n", "\u2028") + "ValueError: no", "ValueError: no"),
        (HEAD.replace("\n", "\x85") + "ValueError: no", "ValueError: no"),
        ("it failed:\n" + HEAD + "ValueError: no", "ValueError: no"),
        ("Error: boom\n    at foo (x.js:1:2)", "Error: boom"),
        (HEAD, LEFT_OUT),
        ("def login(u):\n    return check(u, SECRET)", LEFT_OUT),
        ("password = SECRET\nlogin()", LEFT_OUT),
        ("  + Exception Group " + HEAD + "  | SECRET", LEFT_OUT),
    ],
)
def test_a_message_is_the_line_that_says_what_went_wrong(text: str, said: str) -> None:
    """The exception after the frames of a traceback, else the first line if it is no code."""
    assert without_code(text) == said


@pytest.mark.parametrize(
    "value",
    [
        {"stack": HEAD},
        {"stack": ["Traceback (most recent call last):", '  File "x.py", line 3, in f']},
        {"frames": ['  File "x.py", line 1, in f', "    SECRET = 42"]},
        {"source": ["def f():", "   SECRET = 42"]},
        {"stack": ["Error: boom", "    at foo (x.js:1:2)"]},
        {"lines": ["SECRET = 42;" * 9] * 9},
        {HEAD: 1},
        {"a": [{"b": {HEAD: None}}]},
        {"text": "one\u2028two"},
        "x" * 501,
    ],
    ids=range(10),
)
def test_what_might_be_code_is_not_safe(value: object) -> None:
    """Texts of several lines, long or indented ones, also as names and in lists of lines."""
    assert not is_safe(me.Document.of(value))


@pytest.mark.parametrize(
    "value",
    [None, 7, "no such file: /x.py", {"exit_code": 2, "missing": ["a", "b"], "n": {"k": None}}],
    ids=repr,
)
def test_ordinary_details_are_safe(value: object) -> None:
    """Numbers, names and single lines may stand in an error."""
    assert is_safe(me.Document.of(value))


def test_no_way_leads_source_text_into_an_error() -> None:
    """S002-19: neither as message, code, details, partial result's text, nor carried along."""
    status = {"code": "error", "message": HEAD}
    response = {"id": "i", "version": "1.0.0", "timestamp": "2026-01-01T00:00:00Z"}
    entry = {"message": HEAD, "code": HEAD, "detail": {HEAD: HEAD}, "more": HEAD}
    for value in (
        {**response, "status": status, "errors": [entry], "metadata": {"frames": [HEAD]}},
        {**response, "status": status, "headers": {"stack": HEAD}},
    ):
        converted = me.convert(me.dump(value), "tiered/1.0")
        assert b"SECRET" not in me.parse(converted.data)["error"].raw
        assert converted.lost
