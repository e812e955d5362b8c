"""Doubles as ECMAScript prints them, against Node.js itself."""

from __future__ import annotations

import math
import random
import struct
import subprocess
from collections.abc import Iterator

import pytest

from mcp_envelope.core import numbers
from mcp_envelope.core.canonical import canonical
from mcp_envelope.core.document import parse
from mcp_envelope.core.numbers import ecmascript

# Reads doubles from standard input as they lie in memory, prints String() of each on a line.
PROGRAM = """
const bytes = require("fs").readFileSync(0);
const lines = [];
for (let at = 0; at < bytes.length; at += 8) lines.push(String(bytes.readDoubleLE(at)));
process.stdout.write(lines.join("\\n"));
"""


def printed_by(node: str, values: list[float]) -> list[str]:
    """What Node.js prints for each value; one process for all."""
    packed = struct.pack(f"<{len(values)}d", *values)
    ran = subprocess.run([node, "-e", PROGRAM], input=packed, capture_output=True, check=True)
    return ran.stdout.decode().split("\n")


def neighbours(value: float, reach: int = 3) -> Iterator[float]:
    """The value with the doubles just below and above it, and all of these negative."""
    below = above = value
    yield from (value, -value)
    for _ in range(reach):
        below, above = math.nextafter(below, -math.inf), math.nextafter(above, math.inf)
        yield from (below, -below, above, -above)


def edge_cases() -> Iterator[float]:
    """Where printing changes its ways: zeros, subnormals, powers of ten and two, 2^53."""
    tiny = 5e-324
    for value in (0.0, tiny, tiny * 2, tiny * 3, 2.2250738585072014e-308, 1.7976931348623157e308):
        yield from (v for v in neighbours(value) if math.isfinite(v))
    for exponent in range(-25, 26):
        yield from neighbours(float(f"1e{exponent}"))
        yield from neighbours(float(f"9.999999999999999e{exponent}"), 1)
    for exponent in (*range(-80, 81), *range(-1074, 1024, 37)):
        yield from neighbours(math.ldexp(1.0, exponent), 1)
    yield from neighbours(2.0**53, 8)
    yield from neighbours(333333333.33333329)


def random_doubles(count: int, seed: int) -> Iterator[float]:
    """Random 64-bit patterns, and as many random decimals of everyday size."""
    rng = random.Random(seed)
    while count > 0:
        (value,) = struct.unpack("<d", rng.randbytes(8))
        if math.isfinite(value):
            yield value
            yield round(rng.uniform(-1e6, 1e6), rng.randrange(7))
            yield rng.uniform(-10, 10) * 10.0 ** rng.randrange(-12, 26)
            count -= 3


def check(node: str, values: list[float]) -> None:
    """Node.js, ecmascript() and canonical() print every one of the values alike."""
    expected = printed_by(node, values)
    wrong = [
        (value.hex(), ours, theirs)
        for value, theirs in zip(values, expected, strict=True)
        if (ours := ecmascript(value)) != theirs
    ]
    assert not wrong, f"{len(wrong)} wrong, among them {wrong[:5]}"
    text = f"[{','.join(expected)}]".encode()
    assert canonical(values) == text
    assert canonical(parse(f"[{', '.join(map(repr, values))}]".encode())) == text
    in_objects = [{"a,1.0,": value, 'b\\"e-6}': "\\"} for value in values[:2000]]
    assert canonical(in_objects) == b"[%s]" % b",".join(
        b'{"a,1.0,":%s,"b\\\\\\"e-6}":"\\\\"}' % one.encode() for one in expected[:2000]
    )


@pytest.mark.requires("node")
def test_ten_thousand_doubles_are_printed_as_node_prints_them(node: str) -> None:
    """Edge cases and ten thousand random doubles, none wrong."""
    values = [*edge_cases(), *random_doubles(10_000, seed=8785)]
    assert len(values) > 11_000
    check(node, values)


@pytest.mark.slow
@pytest.mark.requires("node")
def test_a_million_doubles_are_printed_as_node_prints_them(node: str) -> None:
    """One million random doubles, none wrong."""
    check(node, list(random_doubles(1_000_000, seed=20200627)))


@pytest.mark.parametrize(
    "bits,expected",
    [
        (0x0000000000000000, "0"),
        (0x8000000000000000, "0"),
        (0x0000000000000001, "5e-324"),
        (0x8000000000000001, "-5e-324"),
        (0x7FEFFFFFFFFFFFFF, "1.7976931348623157e+308"),
        (0xFFEFFFFFFFFFFFFF, "-1.7976931348623157e+308"),
        (0x4340000000000000, "9007199254740992"),
        (0xC340000000000000, "-9007199254740992"),
        (0x4430000000000000, "295147905179352830000"),
        (0x44B52D02C7E14AF5, "9.999999999999997e+22"),
        (0x44B52D02C7E14AF6, "1e+23"),
        (0x44B52D02C7E14AF7, "1.0000000000000001e+23"),
        (0x444B1AE4D6E2EF4E, "999999999999999700000"),
        (0x444B1AE4D6E2EF4F, "999999999999999900000"),
        (0x444B1AE4D6E2EF50, "1e+21"),
        (0x3EB0C6F7A0B5ED8C, "9.999999999999997e-7"),
        (0x3EB0C6F7A0B5ED8D, "0.000001"),
        (0x41B3DE4355555553, "333333333.3333332"),
        (0x41B3DE4355555557, "333333333.33333343"),
        (0xBECBF647612F3696, "-0.0000033333333333333333"),
        (0x43143FF3C1CB0959, "1424953923781206.2"),
    ],
)
def test_the_samples_of_the_rfc_come_out(bits: int, expected: str) -> None:
    """RFC 8785, appendix B, row by row."""
    (value,) = struct.unpack(">d", bits.to_bytes(8, "big"))
    assert ecmascript(value) == expected
    assert canonical([value]) == f"[{expected}]".encode()


def test_the_spelling_of_the_installed_orjson_is_known() -> None:
    """Without that, canonical forms stay right but are made the slow way."""
    assert numbers.KNOWN


def test_an_unknown_spelling_takes_the_slow_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Should a future orjson spell floats otherwise, the forms stay what they are."""
    values = [*edge_cases()]
    expected = canonical(values)
    monkeypatch.setattr(numbers, "KNOWN", False)
    assert numbers.respelled(b"[1e2,1.50,-0.0,10000000.0]") == b"[100,1.5,0,10000000]"
    assert canonical(values) == expected
