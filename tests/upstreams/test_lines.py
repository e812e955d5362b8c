"""Lines are cut and read for what they are, however they come."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_envelope.core.frame import Frame
from mcp_envelope.core.lines import LineCutter
from mcp_envelope.core.strict import Limits
from mcp_envelope.upstreams.backoff import Backoff
from mcp_envelope.upstreams.lines import Flaw, one_line, read_line

_LIMITS = Limits()


@pytest.mark.parametrize("line", [b"", b"\r", b"  ", b"\t\r"])
def test_blank_lines_are_nothing(line: bytes) -> None:
    """Blank lines are no messages and no mistakes."""
    assert read_line(line, _LIMITS) is None


def test_a_carriage_return_is_no_part_of_a_message() -> None:
    """A line may end in CR LF."""
    found = read_line(b'{"jsonrpc":"2.0","id":1.0,"result":{}}\r', _LIMITS)
    assert isinstance(found, Frame)
    assert found.raw == b'{"jsonrpc":"2.0","id":1.0,"result":{}}'


_ANSWER = b'{"jsonrpc":"2.0","id":7,"result":{}}'


@pytest.mark.parametrize(
    "line,id",
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"x":NaN}}', 7),
        (b'{"jsonrpc":"2.0","id":"7","result":{},"result":{}}', "7"),
        (b'{"id":7,"result":{}}', 7),
        (b'{"jsonrpc":"2.0","id":7,"result":{},"error":{}}', 7),
        (b"\xef\xbb\xbf" + _ANSWER, 7),
        (b'{"jsonrpc":"2.0","id":7,"result":{"text":"\xff"}}', 7),
        (b'{"jsonrpc":"2.0","id":7,"result":{"cut', 7),
        (b'{"jsonrpc":"2.0","result":{"a":tru},"id":7}', 7),
        (b'{"result":{"a":tru},"id":"7","jsonrpc":"2.0"} ', "7"),
        (b'{"id":true,"result":{"x":NaN}}', None),
        (b'{"id":NaN,"result":{}}', None),
        (b'{"id":7,"method":"m","params":NaN}', None),
        (b'{"id":7,"method":"m","params":{"cut', None),
        (b'{"id":7,"method":"m","params":{"result":1,"cut', None),
        (b'{"jsonrpc":"2.0","id":7', None),
        (b"[" + _ANSWER + b"]", None),
        (b"Server listening on id 7", None),
        (b"[" * 100_000, None),
        (b'{"id":' + b"9" * 5_000 + b',"result":{"x":tru}}', None),
        (b"\x00\xff\xfe", None),
    ],
)
def test_whose_answer_a_spoilt_line_is(line: bytes, id: object) -> None:
    """A line that is no message still tells which request it answers, if it answers one."""
    found = read_line(line, _LIMITS)
    assert isinstance(found, Flaw)
    assert found.id == id
    assert type(found.id) is type(id)


@pytest.mark.parametrize(
    "line,id",
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"x":"%s"}}', 7),
        (b'{"jsonrpc":"2.0","result":{"x":"%s"},"id":"a\\"b"}', 'a"b'),
        (b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"x":"%s"}}', None),
        (b'{"jsonrpc":"2.0","method":"x","params":{"x":"%s"},"id":7}', None),
        (b'{"jsonrpc":"2.0","result":{"x":"%s","id":7}}', None),
    ],
)
def test_whose_answer_a_long_line_is(line: bytes, id: object) -> None:
    """The same for a line that is too long to be kept."""
    cutter = LineCutter(1_000)
    (long,) = cutter.feed(line % (b"x" * 200_000) + b"\n")
    found = read_line(long, _LIMITS)
    assert isinstance(found, Flaw)
    assert found.id == id
    assert found.why.code == "TOO_LARGE"


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.none())))
def test_a_message_is_one_line(value: dict[str, object]) -> None:
    """White space is all that is changed to make a message one line."""
    raw = json.dumps(value, indent=1).replace("\n", "\r\n").encode()
    line = one_line(raw)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert b"\r" not in line
    assert json.loads(line) == value
    assert len(line) == len(raw) + 1


def test_delays_grow_and_are_forgotten() -> None:
    """0, 0.25, 0.5 … 30 seconds between starts; a life of more than a minute wipes it out."""
    backoff = Backoff()
    waits, now = [], 100.0
    for _ in range(12):
        now += 0.01 + backoff.wait(now)
        backoff.start(now)
        backoff.failed(now, now)
        waits.append(round(backoff.wait(now), 3))
    assert waits == [0, 0.25, 0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30]
    backoff.start(now + 60)
    backoff.failed(now + 60, now + 121)
    assert backoff.wait(now + 121) == 0


def test_failures_side_by_side_count_once() -> None:
    """Ten children that were started together and fail together are one failure."""
    backoff = Backoff()
    backoff.start(1.0)
    for number in range(10):
        backoff.failed(1.0, 2.0 + number)
    assert backoff.wait(2.0) == 0
