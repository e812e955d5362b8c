"""Server-sent events: the same events come out, in whatever pieces a stream comes in."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.sse import Event, EventReader, event_of, read_event

BOM = b"\xef\xbb\xbf"
PIECES = [
    b"\n", b"\r", b"\r\n", b"\n\n", b"\r\n\r\n", b":", b": ", b"data", b"data:", b"data: ", b"id: ",
    b"event: message", b"retry: 5", b"x", b" ", BOM, BOM[:1], b"\xff", b"\0", b'{"a":1}',
]  # fmt: skip
STREAMS = st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join)


def read(*parts: bytes, limit: int = 10_000) -> list[Event]:
    """The events of a stream that comes in these parts, and then ends."""
    reader = EventReader(limit)
    return [event for part in parts for event in reader.feed(part)] + reader.finish()


def slow_events(stream: bytes) -> list[tuple[bytes | None, ...]]:
    """Data, id, name and retry of each event, read line by line as WHATWG HTML 9.2.6 has it."""
    found = []
    fields: dict[bytes, bytes] = {}
    lines = re.split(rb"\r\n|\r|\n", stream.removeprefix(BOM))
    for line in lines[:-1]:
        if line:
            name, _, value = line.partition(b":")
            value = value[1:] if value[:1] == b" " else value
            if name == b"data" and name in fields:
                value = fields[name] + b"\n" + value
            fields[name] = value
        elif fields:
            found.append(tuple(fields.get(name) for name in (b"data", b"id", b"event", b"retry")))
            fields = {}
    return found


@given(stream=STREAMS, cuts=st.lists(st.integers(0, 100), max_size=10))
@example(stream=b"\n\n" + BOM + b"data: x\n\n", cuts=[2])
@example(stream=BOM + b"data: x\r\r", cuts=[1, 2, 3])
@example(stream=b"data: x\r\n\r\ndata: y\r\n\r\n", cuts=[8, 9, 10, 11])
def test_any_chunking_gives_the_same_events(stream: bytes, cuts: list[int]) -> None:
    """Whole, cut anywhere, or byte for byte: the same events with the same bytes."""
    whole = read(stream)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    assert read(*(stream[a:b] for a, b in pairwise(edges))) == whole
    assert read(*(stream[i : i + 1] for i in range(len(stream)))) == whole


@given(stream=STREAMS)
def test_the_events_are_those_that_a_slow_reader_finds(stream: bytes) -> None:
    """Fields as WHATWG HTML 9.2.6 reads them; blocks of comments come beside the events."""
    found = [(e.data, e.id, e.name, e.retry) for e in read(stream) if e.raw.strip(b"\r\n")]
    assert found == slow_events(stream)


@given(stream=STREAMS)
def test_no_byte_is_lost_but_those_of_an_event_without_end(stream: bytes) -> None:
    """The events' own bytes, one after the other, are the stream."""
    assert stream.removeprefix(BOM).startswith(b"".join(event.raw for event in read(stream)))


@pytest.mark.parametrize(
    "raw,expected",
    [
        (b"data: a\ndata:b\ndata\n\n", Event(b"", b"a\nb\n")),
        (b": keep alive\n\n", Event(b"")),
        (b"id: 7\ndata:\n\n", Event(b"", b"", b"7")),
        (b"event: x\rretry: 10\rdata:  two\r\r", Event(b"", b" two", None, b"x", b"10")),
        (b"database: x\nDATA: y\n\n", Event(b"")),
        (b"id\ndata: :\n\n", Event(b"", b":", b"")),
    ],
)
def test_fields_are_read(raw: bytes, expected: Event) -> None:
    """One space after the colon is not part of a value; lines of data are joined."""
    (event,) = read(raw)
    assert event.raw == raw
    assert event == Event(raw, expected.data, expected.id, expected.name, expected.retry)


@given(data=st.binary(max_size=50), id=st.none() | st.just(b"7/3"))
def test_what_is_written_is_read_again(data: bytes, id: bytes | None) -> None:
    """An event of ours has the data, but for line ends, which become one kind."""
    event = event_of(data, id=id)
    assert read(event.raw) == [event.with_data(data)] or b"\r" in data
    (again,) = read(event.raw)
    assert again.data == re.sub(rb"\r\n|\r", b"\n", data)
    assert (again.id, again.name) == (id, b"message")


def test_other_data_keeps_the_fields() -> None:
    """Replacing the data keeps id, name and retry."""
    event = read_event(b"id: 1\nevent: message\nretry: 3\ndata: old\n\n").with_data(b"new")
    assert (event.data, event.id, event.name, event.retry) == (b"new", b"1", b"message", b"3")
    assert read(event.raw) == [event]


def test_an_event_has_a_largest_size() -> None:
    """What passes the limit without an end is refused, however it comes."""
    reader = EventReader(100)
    assert len(reader.feed(b"data: x\n\n" * 1_000)) == 1_000
    for _ in range(5):
        assert reader.feed(b"data: 1234567890\n") == []
    with pytest.raises(EnvelopeError, match="100 bytes") as caught:
        reader.feed(b"data: 1234567890\n")
    assert caught.value.code == "TOO_LARGE"


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"])
def test_a_long_event_is_read_in_time_proportional_to_its_length(end: bytes) -> None:
    """Twenty megabytes in small pieces are searched once."""
    reader = EventReader(1 << 30)
    piece = b"x" * 1_000
    assert reader.feed(b"data: ") == []
    for _ in range(20_000):
        assert reader.feed(piece) == []
    (event,) = reader.feed(end)
    assert event.data is not None
    assert len(event.data) == 20_000_000
