"""The rules of strict documents: what is refused, where, and in how little time."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from time import thread_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.texts import json_texts

from mcp_envelope.core.document import DEFAULT_LIMITS, Document, Limits, build, dump, parse
from mcp_envelope.core.errors import EnvelopeError, UsageError

ARRAYS = (b"[", b"", b"]")
OBJECTS = (b'{"a":', b"{}", b"}")


def nested(depth: int, pair: tuple[bytes, bytes, bytes]) -> bytes:
    """A text of so many levels, the innermost of them empty."""
    opening, innermost, closing = pair
    levels = depth - 1 if innermost else depth
    return opening * levels + innermost + closing * levels


def mixed(depth: int) -> bytes:
    """Arrays and objects in turn, a scalar innermost."""
    return b'[{"a":' * (depth // 2) + b"0" + b"}]" * (depth // 2)


def refusal(data: bytes, **options: Any) -> EnvelopeError:
    """The error with which the text is refused."""
    with pytest.raises(EnvelopeError) as caught:
        parse(data, **options)
    return caught.value


def rule_of(data: bytes, **options: Any) -> str:
    """The rule that the text breaks."""
    (problem,) = refusal(data, **options).problems
    return problem.rule


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":1,"a":1}',
        b'{"a":1,"a":2}',
        b'{"name":1,"\\u006eame":2}',
        b'{"":null, "":null}',
        b'[0,{"x":{"y":[{"k":1,"j":2,"k":3}]}}]',
        '{"é":1,"\\u00e9":2}'.encode(),
        '{"😂":1,"\\ud83d\\ude02":2}'.encode(),
        b'{"surrogate":1,"surrogate":2}',
        b'{"a\\n at line 7 column 7":1,"a\\n at line 7 column 7":2}',
    ],
)
def test_duplicate_keys_are_refused_wherever_they_stand(text: bytes) -> None:
    """The same key twice in one object is refused at any depth and however it is spelled."""
    error = refusal(text)
    assert [p.rule for p in error.problems] == ["document/duplicate-key"]
    assert error.line == 1
    assert error.column is not None


def test_the_same_key_may_stand_in_different_objects() -> None:
    """A key is a duplicate only within one object; case and normalisation make a difference."""
    assert parse(b'{"a":{"a":[{"a":1},{"a":2}]},"A":1}').value["a"]["a"][1] == {"a": 2}
    assert len(parse('{"é":1,"e\u0301":2}'.encode())) == 2


@pytest.mark.parametrize("number", [b"1e400", b"-1e400", b"1E+309", b"9" * 30 + b"e290"])
@pytest.mark.parametrize(
    "frame", [b"%s", b"[%s]", b'{"a":[null,"null",%s]}', b' [ "\\nnull", %s ]']
)
def test_numbers_beyond_a_double_are_refused(number: bytes, frame: bytes) -> None:
    """1e400 is no infinity: it is refused, with a pointer to it."""
    text = frame % number
    error = refusal(text)
    assert [p.rule for p in error.problems] == ["document/number-range"]
    pointer = {b"%s": "", b"[%s]": "/0", b'{"a":[null,"null",%s]}': "/a/2"}.get(frame, "/1")
    assert error.pointer == pointer


@pytest.mark.parametrize(
    "word", [b"NaN", b"Infinity", b"-Infinity", b"nan", b"+1", b".5", b"01", b"1.", b"0x1"]
)
def test_words_that_json_does_not_know_are_refused(word: bytes) -> None:
    """NaN, Infinity and the numbers of other languages are syntax errors with a place."""
    error = refusal(b'{"a":\n [' + word + b"]}")
    assert [p.rule for p in error.problems] == ["document/syntax"]
    assert error.line == 2


@pytest.mark.parametrize(
    "text,rule",
    [
        (b'"\\ud800"', "surrogate"),
        (b'"\\udc00"', "surrogate"),
        (b'{"\\udfff":1}', "surrogate"),
        (b'"\\ud800\\u0041"', "surrogate"),
        (b'["\\ud83d", "\\ude02"]', "surrogate"),
        (b'"\xed\xa0\x80"', "encoding"),
        (b'"\xff"', "encoding"),
        (b'"\xc0\x80"', "encoding"),
        (b'"\xf4\x90\x80\x80"', "encoding"),
        (b'"caf\xe9"', "encoding"),
        (b"\xef\xbb\xbf{}", "encoding"),
        ("{}".encode("utf-16"), "encoding"),
        ("{}".encode("utf-16-le"), "encoding"),
        ("{}".encode("utf-16-be"), "encoding"),
        ("{}".encode("utf-32"), "encoding"),
        ("{}".encode("utf-32-be"), "encoding"),
    ],
)
def test_text_that_is_not_utf8_or_holds_half_pairs_is_refused(text: bytes, rule: str) -> None:
    """UTF-8 only, without a byte order mark, and no lone surrogates, escaped or raw."""
    assert rule_of(text) == f"document/{rule}"


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b" ", b"{", b'{"a":1,}', b"[1,]", b"{a:1}", b"{'a':1}", b"[1 2]", b"{}{}"),
        *(b"tru", b'"\n"', b'"\\x"', b"// no\n1", b"\xc2\xa01", b"[\x0c1]", b"-", b'"abc'),
        *(b"{}\x00", b"\x00"),
    ],
)
def test_what_is_not_json_is_refused_with_its_place(text: bytes) -> None:
    """Every syntax error says at which line and column."""
    error = refusal(text)
    assert [p.rule for p in error.problems] in (["document/syntax"], ["document/encoding"])
    assert error.line is not None
    assert error.column is not None
    assert error.column >= 1


@pytest.mark.parametrize(
    "text,line,column",
    [
        (b"[1,\n 2,\n x]", 3, 2),
        (b"[{},\r\n\r\n\ttru]", 3, 5),
        (b'["a",\n "b\xff"]', 2, 4),
        (b'{\n "a" 1}', 2, 6),
        (b"[" + b"1" * 1001 + b"]", 1, 2),
        (b'{"a":"x",\n "b":[2,' + b"1" * 1001 + b"]}", 2, 9),
    ],
)
def test_line_and_column_point_at_the_fault(text: bytes, line: int, column: int) -> None:
    """Lines and columns count from 1, columns in bytes; both stand in the message too."""
    error = refusal(text)
    assert (error.line, error.column) == (line, column)
    assert f"at line {line}, column {column}" in str(error)


# -- limits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [b"", b" "])
@pytest.mark.parametrize("before", [b"[]", b'{"b":[[]]}'])
def test_two_hundred_levels_are_accepted_and_one_more_is_not(space: bytes, before: bytes) -> None:
    """Arrays, objects and both mixed may be 200 deep, an innermost empty one counted."""
    for pair in (ARRAYS, OBJECTS):
        assert parse(space + nested(200, pair)).raw == space + nested(200, pair)
        assert rule_of(space + nested(201, pair)) == "document/too-deep"
        assert parse(space + b"[" + before + b"," + nested(199, pair) + b"]")
        assert (
            rule_of(space + b"[" + before + b"," + nested(200, pair) + b"]") == "document/too-deep"
        )
    assert parse(space + mixed(200))
    assert rule_of(space + b"[" + mixed(200) + b"]") == "document/too-deep"


def test_brackets_in_strings_are_no_levels() -> None:
    """Only arrays and objects count, however many there are side by side."""
    text = b'["' + b"[{" * 5000 + b'",' + b",".join([b"[{}]"] * 5000) + b"]"
    assert len(parse(text)) == 5001


@pytest.mark.parametrize("space", [b"", b" "])
@pytest.mark.parametrize("head", [b"", b"-", b"0.", b"1e", b"1E-", b"0e", b"-0.0e+"])
@pytest.mark.parametrize("frame", [b"%s", b"[%s]", b'{"a":"' + b"7" * 1200 + b'","b":%s}'])
def test_numbers_may_have_a_thousand_characters(space: bytes, head: bytes, frame: bytes) -> None:
    """A thousand characters are accepted and one more is not, whatever they are spent on."""
    digit = b"0" if b"1" in head else b"1"
    digit = digit if head not in (b"", b"-") else b"9"
    if head == b"0e" or head == b"-0.0e+":
        digit = b"0"
    fits = frame % (head + digit * (1000 - len(head)))
    assert parse(space + fits).raw == space + fits
    assert rule_of(space + frame % (head + digit * (1001 - len(head)))) == "document/number-length"


def test_digits_in_strings_are_no_numbers() -> None:
    """A string may hold as many digits as it likes."""
    for text in (b'["' + b"1" * 50_000 + b'"]', b' {"\\"' + b"1" * 50_000 + b'":1.0}'):
        assert parse(text).raw == text


@pytest.mark.parametrize("most", [1, 2, 7, 8, 9, 10, 11, 23, 24, 25, 99, 100, 999])
def test_limits_can_be_lowered(most: int) -> None:
    """Depth and number length hold exactly where a lower limit is set."""
    limits = Limits(number=most)
    for number in (b"1" * most, b"[" + b"1" * most + b"]"):
        assert parse(number, limits=limits).raw == number
    assert rule_of(b"1" * (most + 1), limits=limits) == "document/number-length"
    assert rule_of(b"[ 1" + b"1" * most + b"]", limits=limits) == "document/number-length"
    depth = min(most, 199)
    assert parse(nested(depth, ARRAYS), limits=Limits(depth=depth))
    assert rule_of(nested(depth + 1, OBJECTS), limits=Limits(depth=depth)) == "document/too-deep"


@pytest.mark.parametrize("setting", [{"depth": 201}, {"depth": 0}, {"number": 1001}, {"number": 0}])
def test_depth_and_number_length_cannot_be_raised(setting: dict[str, int]) -> None:
    """200 levels and 1,000 characters are the most, one is the least."""
    with pytest.raises(UsageError):
        Limits(**setting)
    with pytest.raises(UsageError):
        Limits(request=0)


def test_sizes_are_bounded_and_can_be_set_either_way() -> None:
    """Results may have 64 MiB and requests 4 MiB; a caller says which, or another size."""
    mib = 1024 * 1024
    assert (DEFAULT_LIMITS.request, DEFAULT_LIMITS.result) == (4 * mib, 64 * mib)
    exact = b'"' + b"a" * (4 * mib - 2) + b'"'
    assert parse(exact, size=DEFAULT_LIMITS.request)
    error = refusal(exact + b" ", size=DEFAULT_LIMITS.request)
    assert (error.code, error.problems[0].rule) == ("TOO_LARGE", "document/size")
    assert rule_of(b" " * (64 * mib + 1)) == "document/size"
    assert rule_of(b"[1]", limits=Limits(result=2)) == "document/size"
    assert parse(exact, limits=Limits(result=128 * mib))
    assert parse(exact, size=5 * mib, limits=Limits(request=5 * mib))


# -- hostile input -----------------------------------------------------------------------------


def seconds(action: Callable[[], object]) -> float:
    """The CPU time of the best of three runs, which other processes hardly change."""
    taken = []
    for _ in range(3):
        start = thread_time()
        action()
        taken.append(thread_time() - start)
    return min(taken)


MIB = 1024 * 1024
TEN_MB = 10_000_000
HOSTILE: dict[str, tuple[bytes, str]] = {
    "100,000 open arrays": (b"[" * 100_000, "document/too-deep"),
    "100,000 open objects": (b'{"a":' * 100_000, "document/too-deep"),
    "100,000 open of both": (b'[{"a":' * 100_000, "document/too-deep"),
    "100,000 arrays, closed": (b"[" * 100_000 + b"]" * 100_000, "document/too-deep"),
    "1,000 arrays, closed": (b"[" * 1_000 + b"]" * 1_000, "document/too-deep"),
    "a 1 MiB integer": (b"1" * MIB, "document/number-length"),
    "a 1 MiB negative": (b"[-" + b"9" * MIB + b"]", "document/number-length"),
    "a 1 MiB fraction": (b"0." + b"1" * MIB, "document/number-length"),
    "a 1 MiB exponent": (b"1e" + b"0" * MIB + b"1", "document/number-length"),
    "1,000 long numbers": (
        b"[" + b",".join([b"1" * 1001] * 1_000) + b"]",
        "document/number-length",
    ),
    "a 10 MB string": (b'"' + b"a" * TEN_MB + b'"', ""),
    "a 10 MB string, spaced": (b' "' + b"a" * TEN_MB + b'"', ""),
    "a 10 MB string of digits": (b'["' + b"1" * TEN_MB + b'"]', ""),
    "a 10 MB string, cut off": (b'"' + b"a" * TEN_MB, "document/syntax"),
    "10,000 duplicate keys": (
        b"{" + b",".join([b'"a":1'] * 10_000) + b"}",
        "document/duplicate-key",
    ),
    "one duplicate of 10,000": (
        b"{" + b",".join(b'"k%d":1' % (i % 9_999) for i in range(10_000)) + b"}",
        "document/duplicate-key",
    ),
    "a duplicate key of 1 MiB": (
        b'{"%b":1,"%b":2}' % ((b"k" * MIB,) * 2),
        "document/duplicate-key",
    ),
    "10,000 half surrogates": (b'["' + b"\\ud800" * 10_000 + b'"]', "document/surrogate"),
    "1e400 among 10,000 nulls": (b"[" + b"null," * 10_000 + b"1e400]", "document/number-range"),
    "more than a result may have": (b"[" + b" " * (64 * MIB) + b"]", "document/size"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input_is_answered_in_a_tenth_of_a_second(name: str) -> None:
    """Whatever is thrown at it: a document or a clear error in bounded time, no RecursionError."""
    text, expected = HOSTILE[name]

    def answer() -> EnvelopeError | None:
        try:
            parse(text)
        except EnvelopeError as error:
            return error
        return None

    found = answer()
    assert (found.problems[0].rule if found else "") == expected
    if found is not None:
        assert len(str(found)) < 300, "an attacker must not write our logs"
        placed = found.line is not None or found.pointer is not None
        assert placed or expected in ("document/size", "document/too-deep")
    assert seconds(answer) < 0.1


def test_the_request_limit_refuses_long_strings_at_once() -> None:
    """A request of ten megabytes is refused before anybody reads it."""
    text = b'"' + b"a" * TEN_MB + b'"'
    assert rule_of(text, size=DEFAULT_LIMITS.request) == "document/size"
    assert seconds(lambda: refusal(text, size=DEFAULT_LIMITS.request)) < 0.01


def test_no_depth_of_python_frames_makes_parsing_fail() -> None:
    """Parsing, cutting and printing need no stack, however little of it is left."""
    text = nested(200, OBJECTS)

    def descend(levels: int) -> int:
        if levels:
            return descend(levels - 1)
        document = parse(b" " + text)
        part: Document | None = document
        for _ in range(100):
            part = part["a"] if part is not None else None
        assert part is not None
        return len(dump(build({"x": part, "y": [2**70]}).value))

    # Fifty frames are left, a quarter of the document's depth.
    assert descend(sys.getrecursionlimit() - len(inspect.stack(0)) - 50) > 0


# -- arbitrary bytes ---------------------------------------------------------------------------


def check_answer(data: bytes) -> None:
    """The bytes are a document or refused, with an error that says what is wrong."""
    try:
        document = parse(data)
    except EnvelopeError as refused:
        error = refused
    else:
        assert document.raw == data
        assert parse(dump(document.value)) == document
        return
    assert error.problems
    assert all(problem.rule.startswith("document/") for problem in error.problems)


@given(data=st.binary(max_size=60))
def test_only_envelope_errors_escape_on_arbitrary_bytes(data: bytes) -> None:
    """Bytes are a document or an EnvelopeError, and nothing else."""
    check_answer(data)


@given(data=st.data(), text=json_texts())
def test_only_envelope_errors_escape_on_damaged_json(data: st.DataObject, text: bytes) -> None:
    """JSON with bytes dropped, doubled, changed or moved is a document or an EnvelopeError."""
    broken = bytearray(text)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(broken)))
        until = data.draw(st.integers(at, min(at + 6, len(broken))))
        pieces = [b"", b'"', b"\\", b"{", b"]", b",", b"1e999", b"\xff", b"\\ud8", b"null"]
        twice = st.just(bytes(broken[at:until]) * 2)
        broken[at:until] = data.draw(st.sampled_from(pieces) | twice)
    check_answer(bytes(broken))
