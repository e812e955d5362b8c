"""Printing: exact for files, harmless for terminals; complaints in words and as JSON."""

from __future__ import annotations

import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcp_envelope as me
from mcp_envelope.cli.console import Console, described, shown, utf8

NASTY = "\x1b[31m\x07\x7f\x9b2J\u202e\u2028\u200b\U000e0041"


class Stream(io.TextIOWrapper):
    """Standard output, at a terminal or not, that keeps what was written."""

    def __init__(self, *, terminal: bool, encoding: str = "utf-8") -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding=encoding)
        self._terminal = terminal

    def isatty(self) -> bool:
        """What it pretends."""
        return self._terminal


def replaced(patch: pytest.MonkeyPatch, *, terminal: bool) -> Stream:
    """Make standard output a terminal or a pipe."""
    # In no fixture: between that and the test, pytest puts its own back.
    stream = Stream(terminal=terminal)
    patch.setattr(sys, "stdout", stream)
    return stream


def test_bytes_for_a_pipe_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is added, nothing escaped."""
    pipe = replaced(monkeypatch, terminal=False)
    data = f'["{NASTY[6:]}",\r\n1.0 ]'.encode()
    Console(json=False).write(data)
    assert pipe.bytes.getvalue() == data


@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_json_for_a_terminal_is_the_same_value_and_harmless(text: str) -> None:
    """At a terminal what could steer it is escaped, and what is read back is equal."""
    with pytest.MonkeyPatch.context() as patch:
        stream = replaced(patch, terminal=True)
        Console(json=False).write(json.dumps([text, {text: 1}], ensure_ascii=False).encode())
    seen = stream.bytes.getvalue().decode()
    assert json.loads(seen) == [text, {text: 1}]
    assert seen.endswith("]\n")
    assert seen[:-1].isprintable()


def test_a_terminal_gets_one_line_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line end is added where there is none; carriage returns cannot hide anything."""
    terminal = replaced(monkeypatch, terminal=True)
    console = Console(json=False)
    console.write(b"[1]")
    console.write(b"[\r\n2,\r3]\n")
    assert terminal.bytes.getvalue() == b"[1]\n[\n2,\n3]\n"


@given(st.text())
def test_lines_are_lines(text: str) -> None:
    """Text from outside is one harmless line, whatever it holds."""
    assert shown(text).isprintable()
    if text.isprintable() and len(text) <= 2_000:
        assert shown(text) == text


def test_escapes_are_readable() -> None:
    """What cannot be seen is shown as Python writes it; what is very long is cut."""
    assert shown("a\nb\x1b\u202e\udcff é") == "a\\nb\\x1b\\u202e\\udcff é"
    assert shown("x" * 3_000) == "x" * 2_000 + "… (1,000 characters more)"
    assert utf8("a\udcffb") == "a\\udcffb"


def test_words_are_in_the_encoding_of_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that cannot hold a character gets its escape, on both streams."""
    out, err = (Stream(terminal=False, encoding="latin-1") for _ in range(2))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    console = Console(json=False)
    console.say("é → ü")
    console.note("é → ü")
    assert out.bytes.getvalue() == err.bytes.getvalue() == "é \\u2192 ü\n".encode("latin-1")


def test_errors_as_json() -> None:
    """Each error says what it knows, and nothing else; nothing in it breaks JSON."""
    assert described(me.UsageError("no \udcff", hint="try it")) == {
        "message": "no \\udcff",
        "hint": "try it",
    }
    assert described(me.EnvelopeError("bad", pointer="", line=2, column=3)) == {
        "message": "bad",
        "code": "INVALID_ENVELOPE",
        "pointer": "",
        "line": 2,
        "column": 3,
        "problems": [],
    }
    problem = me.Problem("/a", "rule", "is wrong", "mend it")
    refused = me.ConversionError("not exact", lost=["/x"], filled=["/y"])
    assert described(refused)["lost"] == ["/x"]
    assert described(me.EnvelopeError("bad", problems=[problem]))["problems"] == [
        {
            "pointer": "/a",
            "rule": "rule",
            "message": "is wrong",
            "hint": "mend it",
            "severity": "error",
        }
    ]
    error = OSError(28, "No space left on device", "out/\udcff.json")
    assert described(error) == {"message": "out/\\udcff.json: No space left on device"}


def test_errors_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    """The first line says what, where and what to do; what it does not say follows, a line each."""
    problems = [me.Problem("/a", "r", "is wrong"), me.Problem("/b", "r", "too\nlong", "cut it")]
    console = Console(json=False)
    console.complain(me.EnvelopeError("a is wrong", pointer="/a", problems=problems, hint="mend"))
    console.complain(me.EnvelopeError("bad", problems=[me.Problem("", "r", "said so already")]))
    console.complain(me.ConversionError("not exact", lost=["", "/x"], filled=["/y"]))
    assert capsys.readouterr().err.splitlines() == [
        "mcp-envelope: a is wrong at /a; mend",
        "  /b: too\\nlong (cut it)",
        "mcp-envelope: bad",
        "mcp-envelope: not exact",
        "  lost: (whole document)",
        "  lost: /x",
        "  filled: /y",
    ]


def test_reading_a_terminal_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody at a keyboard is told that the program waits, and for what."""
    typed, err = Stream(terminal=True), Stream(terminal=True)
    typed.bytes.write(b"[1]")
    typed.bytes.seek(0)
    monkeypatch.setattr(sys, "stdin", typed)
    monkeypatch.setattr(sys, "stderr", err)
    assert Console(json=False).read("-") == b"[1]"
    assert err.bytes.getvalue() == b"reading standard input; Ctrl-D ends it\n"
