"""Redaction: what goes, what stays as it is, and what it costs."""

from __future__ import annotations

import copy
import json
from base64 import b64decode, b64encode
from time import perf_counter
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from mcp_envelope.core.canonical import canonical
from mcp_envelope.core.document import parse
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.pointer import pointer_of
from mcp_envelope.core.redaction import REDACTED, Redacted, Redactor

USUAL = Redactor()
CANARY = "zq8canary7xw"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.c2lnbmF0dXJlLWNhbmFyeQ"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\nMIIE{CANARY}\n-----END RSA PRIVATE KEY-----"


def redacted(value: Any, side: Any = "input", rules: Redactor = USUAL) -> Redacted | None:
    """What is left of a value."""
    before = copy.deepcopy(value)
    found = rules.redacted(value, side, canonical(value))
    assert value == before
    return found


def left(value: Any, side: Any = "input", rules: Redactor = USUAL) -> Any:
    """The value itself where nothing was found."""
    found = redacted(value, side, rules)
    return value if found is None else found.value


def test_values_go_by_the_names_of_their_members() -> None:
    """Wherever these stand, whole objects and lists too; the places are named."""
    found = redacted(
        {
            "user": "a",
            "password": "x",
            "deep": [{"X-Api-Key": 7, "n": 1}, {"credentials": {"a": "b"}}],
            "has_secret": True,
            "token": None,
            "cookie": "",
        }
    )
    assert found is not None
    assert found.value == {
        "user": "a",
        "password": REDACTED,
        "deep": [{"X-Api-Key": REDACTED, "n": 1}, {"credentials": REDACTED}],
        "has_secret": True,
        "token": None,
        "cookie": "",
    }
    assert list(found.value) == ["user", "password", "deep", "has_secret", "token", "cookie"]
    assert str(found) == "/password, /deep/0/X-Api-Key, /deep/1/credentials"


@pytest.mark.parametrize(
    "value,kept",
    [
        ({"pin": 13}, {"pin": 13}),
        ({"pin": "1234"}, {"pin": REDACTED}),
        ({"pin": 1234}, {"pin": REDACTED}),
        ({"pass": 7, "fail": 0}, {"pass": 7, "fail": 0}),
        ({"user": "u", "pass": "x"}, {"user": "u", "pass": REDACTED}),
        ([{"name": "DB_PASSWORD", "value": "x"}], [{"name": "DB_PASSWORD", "value": REDACTED}]),
        ([{"name": "LANG", "value": "x"}], [{"name": "LANG", "value": "x"}]),
        (["--token", "x", "-v"], ["--token", REDACTED, "-v"]),
        (["--token=x", "-v"], [f"--token={REDACTED}", "-v"]),
        (["token", "x"], ["token", "x"]),
        (["-p", "hunter2"], ["-p", REDACTED]),
        (["-p", "80:80", "-p", "src", "-p", "1/a2"], ["-p", "80:80", "-p", "src", "-p", "1/a2"]),
        (["mkdir", "-p", "hunter2"], ["mkdir", "-p", "hunter2"]),
        (["mysql", "-phunter2"], ["mysql", f"-p{REDACTED}"]),
        (["docker", "login", "-p", "X"], ["docker", "login", "-p", REDACTED]),
        (["curl", "-u", "a:b"], ["curl", "-u", f"a:{REDACTED}"]),
        ({"pw": "x"}, {"pw": REDACTED}),
        ({"id": "password", "value": "x"}, {"id": "password", "value": REDACTED}),
        ({"label": "Password", "input": "x"}, {"label": "Password", "input": REDACTED}),
        (
            {"id": "f1", "label": "Password", "value": "x"},
            {"id": "f1", "label": "Password", "value": REDACTED},
        ),
        ({"name": "get_token", "input": {"a": 1}}, {"name": "get_token", "input": {"a": 1}}),
        (
            {"apiVersion": "v1", "kind": "Secret", "data": {"a": "b"}},
            {"apiVersion": "v1", "kind": "Secret", "data": REDACTED},
        ),
        ({"mnemonic": "able acid " * 6}, {"mnemonic": REDACTED}),
        ({"mnemonic": "mov"}, {"mnemonic": "mov"}),
        ({"auth": "none", "token": "Required"}, {"auth": "none", "token": "Required"}),
        ({"input_token": "hello"}, {"input_token": "hello"}),
    ],
)
def test_names_that_stand_elsewhere(value: Any, kept: Any) -> None:
    """In lists of variables and headers, and in the words of a command."""
    assert left(value) == kept


def test_names_of_members_are_texts_too() -> None:
    """A credential may be one; members that would then be one and the same stay apart."""
    key = "ghp_" + "a1" * 18
    other = "ghp_" + "b2" * 18
    found = redacted({key: 1, other: 2, "x": {key: {"password": "p"}}})
    assert found is not None
    assert found.value["x"] == {REDACTED: {"password": REDACTED}}
    assert len(found.value) == 3
    assert key not in str(found) + repr(found.value)


def test_an_operators_keys_and_places() -> None:
    """Keys in any spelling, places for one side, text blocks that repeat them too."""
    rules = Redactor(
        credentials=False,
        keys=("customer ssn",),
        pointers=(
            *("/output/structuredContent/rows/*/email", "/input/a/0", "/input/b/*"),
            *("/output/structuredContent/x~1y", "/input/p~0q"),
        ),
    )
    assert left({"customerSSN": 5, "password": "p"}, rules=rules) == {
        "customerSSN": REDACTED,
        "password": "p",
    }
    given = {"a": ["s", "t"], "b": {"x": 1, "y": [2]}, "p~q": "s", "rows": [{"email": "e"}]}
    assert left(given, rules=rules) == {
        "a": [REDACTED, "t"],
        "b": {"x": REDACTED, "y": REDACTED},
        "p~q": REDACTED,
        "rows": [{"email": "e"}],
    }
    content = {"rows": [{"email": "e", "n": 1}, {"n": 2}], "x/y": [1]}
    text = {"type": "text", "text": json.dumps(content, indent=2)}
    found = redacted({"content": [text], "structuredContent": content}, "output", rules)
    assert found is not None
    kept = {"rows": [{"email": REDACTED, "n": 1}, {"n": 2}], "x/y": REDACTED}
    assert found.value["structuredContent"] == json.loads(found.value["content"][0]["text"]) == kept
    assert redacted({"rows": [{"email": "e"}]}, "output", rules) is None
    whole = Redactor(pointers=("/input",))
    told = redacted({"x": 1}, "input", whole)
    assert (left({"x": 1}, "input", whole), str(told)) == (REDACTED, "the whole")


def test_what_was_taken_out_is_taken_out_of_other_texts_too() -> None:
    """As it is, and as JSON and URLs write it; what is short or a plain word stays."""
    secret = 'p"ä s/1'
    value = {
        "password": secret,
        "token": ["include", 123456, "n1"],
        "said": [
            secret,
            f"x{secret}y",
            json.dumps(secret, ensure_ascii=False),
            "?q=p%22%C3%A4%20s%2F1",
        ],
        "else": ["include", "123456 n1"],
    }
    assert left(value) == {
        "password": REDACTED,
        "token": REDACTED,
        "said": [REDACTED, f"x{REDACTED}y", f'"{REDACTED}"', f"?q={REDACTED}"],
        "else": ["include", f"{REDACTED} n1"],
    }


def test_what_was_taken_out_of_the_input_is_taken_out_of_the_output() -> None:
    """Tools repeat what they were given."""
    asked = redacted({"password": "hunter2"})
    assert asked is not None
    assert "hunter2" not in repr(asked)
    result = {"text": "welcome, hunter2"}
    assert redacted(result, "output") is None
    found = USUAL.redacted(result, "output", canonical(result), asked.secrets)
    assert found is not None
    assert (found.value, found.places) == ({"text": f"welcome, {REDACTED}"}, ("/text",))
    assert USUAL.redacted({"a": 1}, "output", b'{"a":1}', asked.secrets) is None


def test_what_is_encoded_is_left_alone() -> None:
    """Pictures and the like, in which something looks like a secret by chance."""
    data = b64encode(b"x" * 600 + b64decode("pwd/AKIAIOSFODNN7EXAMPLE/cvv")).decode()
    assert "/AKIAIOSFODNN7EXAMPLE/" in data
    assert redacted({"content": [{"type": "image", "data": data}]}, "output") is None
    assert left({"password": data}) == {"password": REDACTED}


def test_few_places_are_named() -> None:
    """The rest is counted."""
    found = redacted([{"password": str(number)} for number in range(50)])
    assert found is not None
    assert (len(found.places), found.more) == (20, 30)
    assert str(found).endswith("/19/password and 30 more")


def test_places_are_told_without_what_is_below_them() -> None:
    """Names of members below a redacted place may be secrets."""
    rules = Redactor(pointers=("/input/people/*",))
    assert rules.place("input", ["people", "0", "ann"]) == "/people/0"
    assert rules.place("input", ["a", "password", "b"]) == "/a/password"
    assert rules.place("input", ["a", "b"]) == "/a/b"
    assert rules.place("output", ["ghp_" + "a1" * 18, "b"]) == f"/{REDACTED}/b"


def test_schemas_are_left_alone() -> None:
    """Except for what they give as values, and what only looks like one."""
    schema = {"type": "string", "description": "of the user", "minLength": 8}
    assert redacted({"properties": {"password": {"type": "string"}, "token": schema}}) is None
    assert redacted({"text": json.dumps({"$defs": {"secret": {"anyOf": [schema]}}})}) is None
    inner = {"type": "object", "properties": {"user": {"type": "string", "default": "d"}}}
    assert left({"properties": {"credentials": inner, "user": inner}}) == {
        "properties": {
            "credentials": {
                "type": "object",
                "properties": {"user": {"type": "string", "default": REDACTED}},
            },
            "user": inner,
        }
    }
    for value in ("x", {"type": "x"}, {"type": "string", "value": "x"}, {"a": 1}, [schema]):
        assert left({"properties": {"password": value}}) == {"properties": {"password": REDACTED}}
    assert left({"password": schema}) == {"password": REDACTED}


def test_words_are_not_taken_for_what_was_said_again() -> None:
    """However a value was taken out: sentences keep their words."""
    for value in ("required", "mandatory", "Basic", "see our docs", "OPTIONAL"):
        asked = redacted({"token": [value], "user_secret": {"a": value}})
        assert asked is not None
        assert asked.secrets == ()
    asked = redacted({"auth": "required"})
    assert asked is None


def test_what_an_operator_names_is_looked_for_from_four_characters_on() -> None:
    """Words and short texts too: who names a place knows what stands there."""
    rules = Redactor(keys=("nick",), pointers=("/input/code",))
    asked = redacted({"nick": "anna", "code": "x7q!", "other": "anna x7q!"}, rules=rules)
    assert asked is not None
    assert asked.value["other"] == f"{REDACTED} {REDACTED}"
    result = {"text": "welcome, anna"}
    found = rules.redacted(result, "output", canonical(result), asked.secrets)
    assert found is not None
    assert found.value == {"text": f"welcome, {REDACTED}"}
    assert left({"nick": "ann", "x": "ann"}, rules=rules) == {"nick": REDACTED, "x": "ann"}


def test_an_operators_keys_may_be_decomposed() -> None:
    """é as one character and as two (NFC, NFD) is the same, in settings and in values."""
    for name in ("cl\u00e9", "cle\u0301"):
        rules = Redactor(credentials=False, keys=(name,))
        for key in ("cl\u00e9", "cle\u0301", "CL\u00c9", "CLE\u0301", "c-l-e\u0301"):
            assert left({key: "x"}, rules=rules) == {key: REDACTED}
        assert redacted({"cle": "x"}, rules=rules) is None


SPELLINGS = st.sampled_from(
    *[
        [
            "password",
            "PASSWORD",
            "db_password",
            "apiKey",
            "X-API-Key",
            "api key",
            "clientSecret",
            "auth_token",
        ]
    ]
)
PLAIN_KEYS = st.sampled_from(
    ["a", "b", "rows", "text", "name", "cursor", "max_tokens", "next_page_token"]
)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-1000, 1000), st.text(alphabet="abc xyz.,:/", max_size=20)
)


def trees(keys: st.SearchStrategy[str], leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Values of any shape."""
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
        max_leaves=12,
    )


def with_canaries() -> st.SearchStrategy[Any]:
    """Values with canaries under credentials' names, and in texts that say what they are."""
    secret = st.sampled_from([CANARY, f"{CANARY} and more", f'"{CANARY}\\'])
    hidden = st.builds(lambda name, value: {name: value}, SPELLINGS, trees(PLAIN_KEYS, secret))
    said = st.sampled_from(
        [
            *(
                f"password={CANARY}",
                f"Authorization: Bearer {CANARY}",
                f"see https://u:{CANARY}@h/",
            ),
            *(f"x\napi_key: {CANARY}\ny", PEM, f'{{"token": "{CANARY}"', f"--secret {CANARY}"),
            *(f"?a=1&access_token={CANARY}", f"<password>{CANARY}</password>"),
        ]
    )
    inside = hidden.map(json.dumps) | hidden.map(lambda value: json.dumps(json.dumps(value)))
    return trees(PLAIN_KEYS, SCALARS | hidden | said | inside)


@given(with_canaries())
def test_no_canary_is_left(value: Any) -> None:
    """Wherever it stands, under any spelling, in texts and in JSON in texts."""
    kept = left(value)
    assert CANARY not in json.dumps(kept)
    assert redacted(kept) is None
    if CANARY not in json.dumps(value):
        assert kept is value or REDACTED in json.dumps(kept)


@given(trees(st.text(max_size=8), SCALARS | st.text(max_size=30) | st.floats(allow_nan=False)))
@example({"": [{}, []]})
def test_what_is_left_is_left_alone(value: Any) -> None:
    """Redacting twice is redacting once, whatever the value."""
    try:
        kept = left(value)
    except EnvelopeError:
        assume(False)
    assert redacted(kept) is None


@given(trees(PLAIN_KEYS, SCALARS), st.data())
def test_no_place_of_an_operators_is_left(value: Any, data: st.DataObject) -> None:
    """A pointer to any part takes that part, with stars in it too."""
    path: list[str] = []
    here = value
    while isinstance(here, (dict, list)) and here:
        step = data.draw(
            st.sampled_from(sorted(here) if isinstance(here, dict) else list(range(len(here))))
        )
        here = here[step]
        path.append(data.draw(st.sampled_from([str(step), "*"])) if path else str(step))
    rules = Redactor(pointers=("/input" + pointer_of(path),))
    kept = left(value, rules=rules)
    for step in path:
        if step == "*":
            return  # what is below differs from item to item
        kept = kept[int(step)] if isinstance(kept, list) else kept[step]
    assert kept == REDACTED or here is None or isinstance(here, bool) or here in ("", [], {})


HOSTILE = [
    *(
        *("token=a(" * 120_000, "token: str | str | " * 50_000, "login a password " * 60_000),
        *("mysql -p' curl -u '" * 50_000, "https://a" * 110_000, "&key=a" * 150_000),
        *("password\n" * 110_000, "token=\n" * 130_000, "token=" + "a." * 500_000),
        *('"password": {"type": "string", ' * 32_000, "curl " + "-u " * 330_000),
        *("curl \\" * 170_000, "://" * 340_000 + "?key=1" * 100, "kind:Secret\ndata:" * 50_000),
    ),
    *("password:" * 100_000, "password=" * 100_000, '"password":"' * 80_000, "://a:" * 200_000),
    *(
        "eyJ" * 300_000,
        "-----BEGIN PRIVATE KEY-----" * 30_000,
        "Bearer " * 130_000,
        "<password>" * 90_000,
    ),
    *("token\\" * 150_000, "api " * 200_000 + "key: x", "--token " * 110_000, "?token=&" * 110_000),
    *(
        "credentials:\n " * 60_000,
        "a" * 900_000 + "token=x",
        "[" * 900_000 + "token",
        "\\u0070" * 150_000,
    ),
    *(
        "'''password='''" * 60_000,
        "password\\\\\\\\" * 80_000,
        "ghp_" * 220_000,
        "Basic " + "a" * 900_000,
    ),
    *(
        '{"password":' * 80_000,
        "xox" * 300_000,
        "password: |\n  x\n" * 60_000,
        "-" * 900_000 + "secret",
    ),
]


@pytest.mark.parametrize("text", HOSTILE, ids=[text[:20] for text in HOSTILE])
def test_it_takes_bounded_time(text: str) -> None:
    """A megabyte of any text takes at most about a second, on a slow machine a few."""
    began = perf_counter()
    redacted({"a": text[: 1024 * 1024 - 100]})
    assert perf_counter() - began < 5


def test_deep_and_wide_values_take_bounded_time() -> None:
    """As deep as a document may be, and with as many members as fit."""
    deep: Any = {"password": CANARY}
    for _ in range(198):
        deep = [deep]
    assert CANARY not in json.dumps(left(deep))
    for _ in range(4):
        inner: Any = [json.dumps(deep), {"password": CANARY}]
        for _ in range(190):
            inner = {"a": inner}
        deep = inner
        assert CANARY not in json.dumps(left(deep))
    began = perf_counter()
    wide = {f"password{number}": CANARY for number in range(30_000)}
    assert CANARY not in json.dumps(left(wide))
    assert perf_counter() - began < 5
    huge = {"password": CANARY, "rest": "x" * (1024 * 1024)}
    assert left(huge) == REDACTED


def test_nothing_costs_next_to_nothing() -> None:
    """One search over the canonical form: some 15 µs of 10 KB."""
    rows = [{"id": n, "name": f"person {n}", "at": "2026-01-01T00:00:00Z"} for n in range(170)]
    form = parse(json.dumps(rows).encode())
    text = canonical(form)
    best = min(_timed(rows, text) for _ in range(20))
    assert best < 0.000_5


def _timed(value: Any, form: bytes) -> float:
    began = perf_counter()
    assert USUAL.redacted(value, "output", form) is None
    return perf_counter() - began


def test_halves_of_surrogate_pairs_do_no_harm() -> None:
    """Texts of lines may hold them, and JSON texts in texts."""
    torn = (
        '{"password":"long \\ud800 enough","a\\ud800":["\\ud800",123456789012345678901234567890]}'
    )
    found = redacted({"a": torn})
    assert found is not None
    assert canonical(found.value)
    assert json.loads(found.value["a"])["password"] == REDACTED
    assert USUAL.line("a\ud800 password=x") == f"a\ufffd password={REDACTED}"


def test_an_operator_may_name_many_keys() -> None:
    """As many as settings take, as long as they may be."""
    names = tuple(f"field {number} {'x' * 80}" for number in range(1000))
    rules = Redactor(keys=names)
    assert left({names[999].upper(): 1, "field": 2}, rules=rules) == {
        names[999].upper(): REDACTED,
        "field": 2,
    }
    assert redacted({"field": 2}, rules=rules) is None


@given(
    trees(
        st.sampled_from(["token", "a", "value", "name"])
        | st.text(st.characters(codec=None), max_size=4),
        st.text(st.characters(codec=None), max_size=20)
        | st.integers()
        | st.floats()
        | st.sampled_from(["password=x", "Bearer abc123", CANARY]),
    )
)
def test_any_json_text_in_a_text_can_be_redacted(value: Any) -> None:
    """Whatever Python's reader makes of it: halves of pairs, NaN, integers of any length."""
    text = json.dumps({"token": CANARY, "b": value})
    found = redacted({"a": text, "b": [text[:-1]]})
    assert found is not None
    assert canonical(found.value)
    assert redacted(found.value) is None
