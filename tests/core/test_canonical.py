"""The canonical forms: RFC 8785 to the byte, the old rule beside it, and no guess outside."""

from __future__ import annotations

import copy
import hashlib
import json
import subprocess
import sys
from enum import Enum
from math import inf, nan
from pathlib import Path
from typing import Any

import blake3
import pytest
import rfc8785
from hypothesis import example, given
from tests.core.texts import json_texts, json_values

import mcp_envelope.core.canonical as module
from mcp_envelope.core.canonical import Digest, OutOfDomainError, canonical, digest
from mcp_envelope.core.document import Document, dump, parse
from mcp_envelope.core.errors import EnvelopeError, UsageError
from mcp_envelope.core.plain import same_value

NAMES = ("arrays", "french", "structures", "unicode", "values", "weird")
MOST = 2**53 - 1


class Level(Enum):
    """Enum members are written as their values."""

    HIGH = 1.0


# -- published vectors -------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_published_jcs_vectors_come_out_to_the_byte(vectors: Path, name: str) -> None:
    """RFC 8785's own inputs give its own outputs, from the text, the value and the output."""
    text = (vectors / "jcs" / "input" / f"{name}.json").read_bytes()
    expected = (vectors / "jcs" / "output" / f"{name}.json").read_bytes()
    assert canonical(parse(text)) == expected
    assert canonical(json.loads(text)) == expected
    assert canonical(parse(expected)) == expected


def test_every_published_jcs_vector_is_tried(vectors: Path) -> None:
    """The list of names above is complete."""
    assert sorted(NAMES) == sorted(p.stem for p in (vectors / "jcs" / "input").iterdir())


@pytest.mark.parametrize("form", ["rfc8785", "prov-6.2"])
def test_the_published_digest_of_the_provenance_specification_comes_out(
    vectors: Path, form: str
) -> None:
    """integrity.digest.sha256: canonical text and digest are the published ones in both forms."""
    folder = vectors / "provenance" / "integrity.digest.sha256"
    expected = json.loads((folder / "expected.json").read_bytes())
    found = digest(parse((folder / "input.json").read_bytes()), form=form)
    assert found.canonical_form.decode() == expected["canonical_form"]
    assert found.as_dict() == expected["digest"]


# -- RFC 8785 ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text,expected",
    [
        ('{"\\ue000":1,"\\ud83d\\ude02":2}', '{"😂":2,"\ue000":1}'),
        ('[{"\uffff":{"\ufb33":1,"\\ud800\\udc00":2},"\\udbff\\udfff":0,"z":1}]',
         '[{"z":1,"\U0010ffff":0,"\uffff":{"\U00010000":2,"\ufb33":1}}]'),
        ('{"\uff0c":"😂","b":["\ue000"]}', '{"b":["\ue000"],"\uff0c":"😂"}'),
        ('{"a😂":1,"a\ue000":{"n":1.0},"a":-0}', '{"a":0,"a😂":1,"a\ue000":{"n":1}}'),
        ('{"é":1,"e":2,"\\u0065\\u0301":3}', '{"e":2,"e\u0301":3,"é":1}'),
        ('"\\u0000\\u001f\\u007f\\u0080\\b\\t\\n\\f\\r\\"\\\\\\/"',
         '"\\u0000\\u001f\x7f\x80\\b\\t\\n\\f\\r\\"\\\\/"'),
        ("[ ]", "[]"),
        ("true", "true"),
    ],
)  # fmt: skip
def test_keys_are_sorted_by_utf16_code_units(text: str, expected: str) -> None:
    """RFC 8785, 3.2.3: characters beyond the BMP come before those from U+E000 on."""
    raw = text.encode()
    assert canonical(parse(raw)).decode() == expected
    assert canonical(json.loads(raw)).decode() == expected


@pytest.mark.parametrize(
    "text,expected",
    [
        ("-0", "0"),
        ("-0.0", "0"),
        ("[-0.0,0.0,-0,-10.0,10.0]", "[0,0,0,-10,10]"),
        ("1.0", "1"),
        ("1e2", "100"),
        ("333333333.33333329", "333333333.3333333"),
        ("1E30", "1e+30"),
        ("0.000001", "0.000001"),
        ("[1e-6,1.5E-6,-1e-6,1e-7,1e-5]", "[0.000001,0.0000015,-0.000001,1e-7,0.00001]"),
        ("[1e16,123456789012345680000.0,1e20,1e21,-1.5e21]",
         "[10000000000000000,123456789012345680000,100000000000000000000,1e+21,-1.5e+21]"),
        ("[9007199254740992.0,9007199254740993.5]", "[9007199254740992,9007199254740994]"),
        ("5e-324", "5e-324"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("1e-400", "0"),
        ('["1.0,",1.0,"e-6]",1e-6,"e+16,",1e16,"\\",1.0,",1.0]',
         '["1.0,",1,"e-6]",0.000001,"e+16,",10000000000000000,"\\",1.0,",1]'),
        ('{"\\\\":1.0,"\\\\\\"":1e20}', '{"\\\\":1,"\\\\\\"":100000000000000000000}'),
        ('{"a,1.0,":[1.0,{"b:1.0}":1.0}]}', '{"a,1.0,":[1,{"b:1.0}":1}]}'),
        ('["v1.0, \\"x\\"",2.0,1e20,"e+20,"]', '["v1.0, \\"x\\"",2,100000000000000000000,"e+20,"]'),
    ],
)  # fmt: skip
def test_numbers_are_written_as_ecmascript_writes_them(text: str, expected: str) -> None:
    """RFC 8785, 3.2.2.3, also beside strings that look like numbers."""
    assert canonical(parse(text.encode())).decode() == expected
    assert canonical(json.loads(text)).decode() == expected


@pytest.mark.parametrize("literal", [MOST, -MOST])
def test_integers_up_to_two_to_the_53_less_one_are_inside(literal: int) -> None:
    """The largest integers that every reader holds exactly have a canonical form."""
    assert canonical(literal) == canonical(parse(b"%d" % literal)) == b"%d" % literal
    assert canonical([literal]) == b"[%d]" % literal


@pytest.mark.parametrize("literal", [MOST + 1, -MOST - 1, 2**63, -(2**63) - 1, 2**64, 10**400])
def test_integers_beyond_are_outside_the_domain(literal: int) -> None:
    """An integer literal beyond ±(2^53-1) gets no digest, but a reason and a place."""
    nested = {"a": [0, {"b/c": literal}]}
    text = json.dumps(nested).encode()
    for value in (nested, parse(text), parse(text.replace(b" ", b"")), {"a": parse(text)["a"]}):
        with pytest.raises(OutOfDomainError, match="2\\^53-1") as caught:
            digest(value)
        assert caught.value.pointer == "/a/1/b~1c"
        assert "integer" in caught.value.reason
        assert [p.rule for p in caught.value.problems] == ["canonical/out-of-domain"]


def test_doubles_beyond_are_inside_the_domain() -> None:
    """The same size written with a point or an exponent is a double, and doubles are inside."""
    assert canonical(parse(b"9007199254740993.0")) == b"9007199254740992"
    assert canonical(parse(b"1e22")) == canonical(1e22) == b"1e+22"
    assert canonical(float(2**53)) == b"9007199254740992"


@pytest.mark.parametrize("form", ["rfc8785", "prov-6.2"])
@pytest.mark.parametrize(
    "value,pointer,reason",
    [
        (nan, "", "not finite"),
        ({"a": [None, inf]}, "/a/1", "not finite"),
        (["\ud800"], "/0", "surrogate"),
        ({"a": {"\udc00": 1}}, "/a", "key .* surrogate"),
        ({"a": parse(b"[1.0]"), "b": -inf}, "/b", "not finite"),
    ],
)
def test_what_json_cannot_hold_is_outside_the_domain(
    form: str, value: object, pointer: str, reason: str
) -> None:
    """NaN, infinities and half surrogate pairs in plain values are refused with their place."""
    with pytest.raises(OutOfDomainError, match=reason) as caught:
        canonical(value, form)
    assert caught.value.pointer == pointer


@pytest.mark.parametrize("form", ["rfc8785", "prov-6.2"])
@pytest.mark.parametrize("value", [{1: 2}, {None: 1}, {True: 1}, b"x", [object()], {1, 2}])
def test_what_is_no_json_is_not_turned_into_text(form: str, value: object) -> None:
    """Keys that are no strings and foreign objects are refused as dump refuses them."""
    with pytest.raises(EnvelopeError, match="cannot be written as JSON") as caught:
        canonical(value, form)
    with pytest.raises(EnvelopeError) as dumped:
        dump(value)
    assert caught.value.message == dumped.value.message


def test_plain_values_may_hold_documents_and_subclasses() -> None:
    """A document anywhere inside counts as its value, an enum member or subclass as its base."""

    class Name(str):
        __slots__ = ()

    part = parse(b'{ "b":1.0, "a":-0 }')
    assert canonical({"z": [part, (part["b"],)], "y": Level.HIGH}) == (
        b'{"y":1,"z":[{"a":0,"b":1},[1]]}'
    )
    assert canonical({Name("k"): Name("v"), "n": [2.5, part]}) == (
        b'{"k":"v","n":[2.5,{"a":0,"b":1}]}'
    )
    assert (canonical(Level.HIGH), canonical(Name("1.0"))) == (b"1", b'"1.0"')


def test_depth_is_limited_as_everywhere() -> None:
    """Two hundred levels have a canonical form, one more has none, also with documents inside."""
    deep = parse(b"[" * 200 + b"]" * 200)
    assert canonical(deep) == canonical(deep.value) == deep.raw
    assert canonical([deep[0]]) == deep.raw
    own: list[object] = []
    own.append(own)
    for value in ([deep], [deep.value], own):
        for form in ("rfc8785", "prov-6.2"):
            with pytest.raises(EnvelopeError, match="deeper than 200"):
                canonical(value, form)


@given(value=json_values())
@example(value={"\ue000": [1.0, "\\"], "\U00010000": 1e20})
@example(value={"é": None, "\ufb33": -0.0})
def test_the_rfc8785_package_agrees(value: Any) -> None:
    """An independent implementation gives the same bytes for any value of the domain."""
    expected = rfc8785.dumps(value)
    before = copy.deepcopy(value)
    assert canonical(value) == expected
    assert canonical(Document.of(value)) == expected
    assert canonical(parse(json.dumps(value, indent=1).encode())) == expected
    assert canonical([Document.of(value)]) == b"[" + expected + b"]"
    assert repr(value) == repr(before)


@given(value=json_values())
def test_a_canonical_text_is_its_own_canonical_form(value: Any) -> None:
    """Twice is as good as once, but for doubles that turned into integers beyond 2^53-1."""
    text = canonical(value)
    again = parse(text)
    try:
        rfc8785.dumps(json.loads(text))
    except rfc8785.IntegerDomainError:
        with pytest.raises(OutOfDomainError, match="integer"):
            canonical(again)
    else:
        assert canonical(again) == text
        assert same_value(again.value, value)


@given(raw=json_texts())
def test_a_document_has_a_form_exactly_if_its_integers_fit(raw: bytes) -> None:
    """Every strict document either has the oracle's form or is refused for an integer."""
    value = json.loads(raw)
    try:
        expected = rfc8785.dumps(value)
    except rfc8785.IntegerDomainError:
        with pytest.raises(OutOfDomainError, match="integer"):
            canonical(parse(raw))
    else:
        assert canonical(parse(raw)) == canonical(value) == expected


# -- prov-6.2 ----------------------------------------------------------------------------------


def old_rule(text: bytes) -> bytes:
    """What the provenance specification's sample code does with a text."""
    value = json.loads(text)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


@given(raw=json_texts())
@example(raw=b"[1.0,1e2,-0.0,-0,1e16,1e-7,9007199254740993,10000000000000000000001]")
def test_the_old_rule_is_what_python_does(raw: bytes) -> None:
    """prov-6.2 is json.dumps with sorted keys on the values as json.loads reads them."""
    assert canonical(parse(raw), "prov-6.2") == old_rule(raw)
    assert canonical(json.loads(raw), form="prov-6.2") == old_rule(raw)


def test_both_forms_differ_where_the_contract_says() -> None:
    """Floats and keys beyond the BMP differ, the rest does not."""
    text = parse('{"\ue000":1,"😂":[1.0,1e2,-0.0,1e16,1e-7]}'.encode())
    assert canonical(text).decode() == '{"😂":[1,100,0,10000000000000000,1e-7],"\ue000":1}'
    assert canonical(text, "prov-6.2").decode() == (
        '{"\ue000":1,"😂":[1.0,100.0,-0.0,1e+16,1e-07]}'
    )


# -- digests -----------------------------------------------------------------------------------


@pytest.mark.parametrize("alg,length", [("sha256", 64), ("sha512", 128), ("blake3", 64)])
def test_digests_are_lowercase_hex_over_the_canonical_bytes(alg: str, length: int) -> None:
    """sha256, sha512 and blake3 as their own implementations compute them."""
    found = digest(parse(b'{ "b":1.0, "a":"secret" }'), alg)
    text = b'{"a":"secret","b":1}'
    independent = blake3.blake3(text) if alg == "blake3" else hashlib.new(alg, text)
    assert found == Digest(alg, independent.hexdigest(), text)
    assert found.as_dict() == {"alg": alg, "value": independent.hexdigest()}
    assert found.canonical_form == text
    assert len(found.value) == length
    assert "secret" not in repr(found)


def test_unknown_names_are_the_callers_mistake() -> None:
    """An unknown algorithm or form is a UsageError that names the known ones."""
    with pytest.raises(UsageError, match="sha256, sha512, blake3"):
        digest({}, "md5")
    with pytest.raises(UsageError, match=r"rfc8785, prov-6\.2"):
        digest({}, form="jcs")
    with pytest.raises(UsageError, match="rfc8785"):
        canonical({}, "RFC8785")


def test_no_algorithm_is_loaded_before_it_is_asked_for() -> None:
    """Importing the module brings neither hashlib nor blake3."""
    code = "import sys, mcp_envelope.core.canonical; print(*{'hashlib', 'blake3'} & {*sys.modules})"
    src = Path(module.__file__).parents[2]
    ran = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(src)}, capture_output=True, check=True
    )
    assert ran.stdout.strip() == b""
