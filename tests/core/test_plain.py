"""Plain Python values as JSON: what dump writes, and what it refuses with a pointer."""

from __future__ import annotations

from collections import OrderedDict
from datetime import date
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from math import inf, nan
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from mcp_envelope.core import plain
from mcp_envelope.core.document import Document, dump, parse
from mcp_envelope.core.errors import EnvelopeError


class Word(str):
    """A str that shows itself otherwise than it is."""

    __slots__ = ()

    def __str__(self) -> str:
        return "not me"


class Count(int):
    """An int of its own class."""


class Ratio(float):
    """A float of its own class, as those of numpy are."""


class Colour(Enum):
    """An enumeration that is neither str nor int."""

    RED = "red"
    ODD = nan


class Status(IntEnum):
    """An enumeration that is an int."""

    OK = 200


class Tag(StrEnum):
    """An enumeration that is a str."""

    A = "a"


class Pair(NamedTuple):
    """A tuple with names."""

    left: int
    right: int


ID = UUID("12345678-1234-5678-1234-567812345678")


@pytest.mark.parametrize(
    "value,expected",
    [
        (None, b"null"),
        ({"a": (1, [2.0, True])}, b'{"a":[1,[2.0,true]]}'),
        (
            [2**64, -(2**64), 10**999],
            b"[18446744073709551616,-18446744073709551616,1%s]" % (b"0" * 999),
        ),
        ([Count(3), Count(2**70), Ratio(1.5)], b"[3,1180591620717411303424,1.5]"),
        ({Word("k"): Word("v"), "n": 2**70}, b'{"k":"v","n":1180591620717411303424}'),
        ([Word("v")], b'["v"]'),
        (OrderedDict(a=OrderedDict()), b'{"a":{}}'),
        (Pair(1, 2), b"[1,2]"),
        ([Colour.RED, Status.OK, Tag.A], b'["red",200,"a"]'),
        (
            [2**70, {"x": Colour.RED, Tag.A: Status.OK}],
            b'[1180591620717411303424,{"x":"red","a":200}]',
        ),
        (["null", None, "nan", 0.5], b'["null",null,"nan",0.5]'),
        ([str(ID)], b'["12345678-1234-5678-1234-567812345678"]'),
        ("\u00e9\U0001f602\x00\x7f/", '"\u00e9\U0001f602\\u0000\x7f/"'.encode()),
    ],
)
def test_plain_values_are_written_as_what_they_stand_for(value: Any, expected: bytes) -> None:
    """Subclasses count as str, int, float, dict and list, enum members as their values."""
    assert dump(value) == expected
    assert parse(expected).raw == expected


@pytest.mark.parametrize(
    "value,pointer,reason",
    [
        (nan, "", "not finite"),
        ([None, inf, "null"], "/1", "not finite"),
        ({"a": {"b/c": [-inf]}}, "/a/b~1c/0", "not finite"),
        ([Ratio("nan")], "/0", "not finite"),
        ([2**70, nan], "/1", "not finite"),
        ([Colour.ODD], "/0", "not finite"),
        ({1: 2}, "", "key is int"),
        ({"a": {True: 1}}, "/a", "key is bool"),
        ({"a": [{None: 1}]}, "/a/0", "key is NoneType"),
        (["\ud800"], "/0", "surrogate"),
        ({"a": {"x\udfff": 1}}, "/a", "surrogate"),
        ([b"x"], "/0", "bytes"),
        ({"a": date(2020, 1, 1)}, "/a", "date"),
        ([Decimal(1)], "/0", "Decimal"),
        ([{1, 2}], "/0", "set"),
        ({"a": [object()]}, "/a/0", "object"),
        ({"a": [str(ID), {"id": ID}]}, "/a/1/id", "UUID"),
        ([2**70, ID], "/1", "UUID"),
        ([1, 10**1000], "/1", "1,000 characters"),
        ([-(10**999)], "/0", "1,000 characters"),
        ([10**100_000], "/0", "1,000 characters"),
    ],
)
def test_what_is_not_json_is_refused_with_a_pointer(value: Any, pointer: str, reason: str) -> None:
    """Nothing is written as null or as text that is neither: the place and the reason are told."""
    with pytest.raises(EnvelopeError, match=reason) as caught:
        dump(value)
    assert caught.value.pointer == pointer
    assert [p.rule for p in caught.value.problems] == ["document/not-json"]


def in_lists(levels: int, inner: object) -> object:
    """A value with so many lists around it."""
    for _ in range(levels):
        inner = [inner]
    return inner


@pytest.mark.parametrize("inner", [1, {}, 2**70, "x" * 500, None, parse(b"1.0"), parse(b"{}")])
def test_values_may_be_two_hundred_levels_deep(inner: object) -> None:
    """Two hundred levels are written; one more is refused, documents' own levels counted."""
    room = 200 - (inner == {})
    assert parse(dump(in_lists(room, inner)))
    for levels in (room + 1, 253, 254, 255, 256, 300, 5000):
        with pytest.raises(EnvelopeError, match="deeper than 200"):
            dump(in_lists(levels, inner))


def test_documents_within_values_count_with_their_depth() -> None:
    """A deep document in a shallow value is as deep as the two together."""
    deep = parse(b"[" * 150 + b"]" * 150)
    assert dump(in_lists(50, deep))
    for levels in (51, 120, 200, 250):
        for value in (in_lists(levels, deep), in_lists(levels, [deep, 2**70])):
            with pytest.raises(EnvelopeError, match="deeper than 200"):
                dump(value)


def test_values_that_hold_themselves_are_refused() -> None:
    """A list or dict inside itself is an error, not an endless loop."""
    own_list: list[object] = [1]
    own_list.append(own_list)
    own_dict: dict[str, object] = {}
    own_dict["a"] = [own_dict]
    for value in (own_list, own_dict):
        with pytest.raises(EnvelopeError, match="holds itself"):
            dump(value)


def test_dump_changes_nothing_that_it_is_given() -> None:
    """The caller's dicts and lists are as they were, also where a copy had to be made."""
    value = {"a": [2**70, Count(1)], "b": (Word("x"),)}
    before = {"a": list(value["a"]), "b": value["b"]}
    dump(value)
    assert value == before
    assert type(value["a"][1]) is Count
    assert type(value["b"]) is tuple


@pytest.mark.parametrize(
    "left,right,same",
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        ([1, {"a": 2}], (1.0, {"a": 2}), True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        ({"a": None}, {"b": None}, False),
        (None, False, False),
        ("1", 1, False),
        ({}, [], False),
    ],
)
def test_the_same_value_means_the_same_json(left: object, right: object, same: bool) -> None:
    """Numbers compare by value, booleans are no numbers, order counts in arrays alone."""
    assert plain.same_value(left, right) is same
    assert plain.same_value(right, left) is same
    assert (Document.of(left) == Document.of(right)) is same


def test_orjson_counts_levels_as_the_bound_supposes() -> None:
    """The installed orjson has a limit of its own, beyond ours, that bounded_text makes use of."""
    assert 0 < plain._SPARE < 100
    assert plain.bounded_text(in_lists(199, 1)) == b"[" * 199 + b"1" + b"]" * 199
    assert plain.bounded_text(in_lists(199, [])) == b"[" * 200 + b"]" * 200
    inner: object
    for inner in (1, [], {}):
        with pytest.raises(TypeError):
            plain.bounded_text(in_lists(201, inner))
    with pytest.raises(TypeError):
        plain.bounded_text(in_lists(200, {}))


def test_without_a_limit_of_orjson_levels_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Should orjson ever nest without bound, depth is still refused."""
    monkeypatch.setattr(plain, "_SPARE", 0)
    assert plain.bounded_text(in_lists(200, 1)) == b"[" * 200 + b"1" + b"]" * 200
    with pytest.raises(TypeError):
        plain.bounded_text(in_lists(201, 1))
    deep = parse(b"[" * 200 + b"]" * 200)
    for value in (in_lists(201, "x" * 200), [deep], [[deep], "x"]):
        with pytest.raises(EnvelopeError, match="deeper than 200"):
            dump(value)
