"""Secrets in texts: what goes and what stays, and that the quick search agrees with the rules."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_envelope.core.canonical import canonical
from mcp_envelope.core.credentials import secrecy_of
from mcp_envelope.core.redaction import Redacted, Redactor
from mcp_envelope.core.schema_engine import search_for
from mcp_envelope.core.secret_texts import REDACTED, SIGNS, without_known, without_named

USUAL = Redactor()
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.c2lnbmF0dXJlLWNhbmFyeQ"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEzq8\n-----END RSA PRIVATE KEY-----"
FINDS = search_for(f"(?i){SIGNS}")
A1 = "a1" * 20
NAMES = st.sampled_from(
    [
        *(
            "password",
            "PassWord",
            "db.passwd",
            "auth",
            "X-Auth",
            "cred",
            "creds",
            "otp",
            "csc",
            "cvv",
        ),
        *(
            "api key",
            "API_KEY",
            "secret",
            "token",
            "page_token",
            "pin",
            "pincode",
            "2fa_code",
            "jwt",
        ),
        *("sig", "key", "X-Amz-Signature", "x-goog-signature", "SAS", "user", "pass", "passphrase"),
        *(
            "recovery codes",
            "seed_phrase",
            "connection string",
            "connStr",
            "cookie",
            "Authorization",
        ),
    ]
)
GLUE = st.sampled_from(
    [
        *("=", ": ", ":", " = ", '": "', '\\": \\"', "=>", ":= ", "**: ", "?", "&", "#", " ", "--"),
        *("\n", "\r\n  ", "<", ">", "</", "'", '"', "://", "@", "/", "-----", "{", "[", "|", "\\n"),
    ]
)
VALUES = st.sampled_from(
    [
        *("x", "1234", "hunter2", "bearer abc123", "Basic dXNlcjpwYXNz", "null", REDACTED, "u:p@h"),
        *("ghp_" + A1, "sk-" + A1, "glpat-" + A1, "AKIA" + "Z" * 16, "AIza" + A1, "npm_" + A1),
        *(
            "eyJhbGciOiJI.eyJzdWIiOiIxIn0.x",
            "-----BEGIN PRIVATE KEY-----",
            "hf_" + A1,
            "ya29." + A1,
        ),
        *(
            "xox" + "b-" + A1,
            "SG." + A1 + "." + A1,
            "whsec_" + A1,
            "sk_" + "test_" + A1,
            "pypi-" + A1,
        ),
        *("https://hooks.slack.com/services/T/B/x", "PRIVATE+KEY+" + A1, "123456789:AA" + "x" * 33),
        *("dapi" + "a1" * 16, "shpat_" + "a1" * 16, "dop_v1_" + A1, "lin_api_" + A1, "glsa_" + A1),
        *(
            "figd_" + A1,
            "ATATT3" + A1,
            "AGE-SECRET-KEY-1" + "Q" * 30,
            "xapp-" + A1,
            "ASIA" + "Z" * 16,
        ),
    ]
)
TEXTS = st.lists(NAMES | GLUE | VALUES | st.text(max_size=3), max_size=9).map("".join)


def redacted(value: Any) -> Redacted | None:
    """What is left of a value."""
    return USUAL.redacted(value, "input", canonical(value))


EXAMPLES = [
    ("Authorization: Bearer abcdef123", f"Authorization: {REDACTED}"),
    ("use Bearer abcdef123 for it", f"use Bearer {REDACTED} for it"),
    ("basic dXNlcjpwYXNz", f"basic {REDACTED}"),
    ("curl -H 'Cookie: a=b; c=d' x", f"curl -H 'Cookie: {REDACTED}' x"),
    ("postgres://u:hunt@er2@h/db", f"postgres://u:{REDACTED}@h/db"),
    ("https://h/x?n=1&token=abc&m=2#f", f"https://h/x?n=1&token={REDACTED}&m=2#f"),
    ("https://h/#access_token=abc&m=2", f"https://h/#access_token={REDACTED}&m=2"),
    ("https://h/?key=abc", f"https://h/?key={REDACTED}"),
    (f"a {PEM} b", f"a {REDACTED} b"),
    (f"a {PEM[:60]}", f"a {REDACTED}"),
    (f"see {JWT}.", f"see {REDACTED}."),
    ("ghp_" + "a1" * 18, REDACTED),
    ("github_pat_" + "a1" * 18, REDACTED),
    ("glpat-" + "a1" * 10, REDACTED),
    ("sk-proj-" + "a1" * 10, REDACTED),
    ("sk_" + "live_" + "a1" * 10, REDACTED),
    ("xox" + "b-" + "1" * 12 + "-abc", REDACTED),
    ("AKIA" + "IOSFODNN7EXAMPLE", REDACTED),
    ("AIza" + "a1" * 18, REDACTED),
    ("npm_" + "a1" * 18, REDACTED),
    ("PRIVATE+KEY+x+12345678+AAAA", REDACTED),
    ("password: correct horse battery\nuser: me", f"password: {REDACTED}\nuser: me"),
    ("  - api_key: 'x y'", f"  - api_key: '{REDACTED}'"),
    ("PASSWORD=hunter2\nX=1", f"PASSWORD={REDACTED}\nX=1"),
    ("export API_KEY=hunter2 X=1", f"export API_KEY={REDACTED} X=1"),
    ("password = a'b\"c", f"password = {REDACTED}"),
    ("credentials:\n  user: a\n  x: y\nnext: 1", f"credentials:\n  {REDACTED}\nnext: 1"),
    ("my API key: abc def", f"my API key: {REDACTED} def"),
    ("**Password:** hunter2", f"**Password:** {REDACTED}"),
    ("run --password hunter2 now", f"run --password {REDACTED} now"),
    ("<db><password>hunter2</password></db>", f"<db><password>{REDACTED}</password></db>"),
    ('Said: {"password": "x \\" y", "b": 1}', f'Said: {{"password": "{REDACTED}", "b": 1}}'),
    ('Said: {"secrets": {"a": "b"}}', f'Said: {{"secrets": {REDACTED}'),
    ('\\"password\\":\\"x y\\"', f'\\"password\\":\\"{REDACTED}\\"'),
    ('{"password":"x","n":[1,2]}', f'{{"password":"{REDACTED}","n":[1,2]}}'),
    ('{"\\u0070assword":"x"}', f'{{"password":"{REDACTED}"}}'),
    ('{"password":"x","password":null}', f'{{"password":"{REDACTED}","password":null}}'),
    ("curl -u admin:s3cr3t http://h/", f"curl -u admin:{REDACTED} http://h/"),
    ("curl -sS --user 'admin:s3 cr3t' h", f"curl -sS --user 'admin:{REDACTED}' h"),
    ("mysql -uroot -phunter2 db", f"mysql -uroot -p{REDACTED} db"),
    ("docker login -u me -p X r.io", f"docker login -u me -p {REDACTED} r.io"),
    ("sshpass -p X ssh -p 22 h", f"sshpass -p {REDACTED} ssh -p {REDACTED} h"),
    ("machine h login me password hunter2", f"machine h login me password {REDACTED}"),
    (
        "machine h\n  login me\n  password hunter2\n",
        f"machine h\n  login me\n  password {REDACTED}\n",
    ),
    ("password hunter2", f"password {REDACTED}"),
    ("token=\nabc", f"token=\n{REDACTED}"),
    ("Password:\nhunter2\nX=1", f"Password:\n{REDACTED}\nX=1"),
    ("https://mytoken@github.com", f"https://{REDACTED}@github.com"),
    ("gsk_" + "a1" * 18, REDACTED),
    ("xai-" + "a1" * 18, REDACTED),
    ("mnemonic: " + "able acid " * 6, f"mnemonic: {REDACTED}"),
    (
        "apiVersion: v1\nkind: Secret\ndata:\n  a: aHVudGVyMg==\ntype: Opaque",
        f"apiVersion: v1\nkind: Secret\ndata:\n  {REDACTED}\ntype: Opaque",
    ),
    ('password: str = "hunter2"', f'password: str = "{REDACTED}"'),
    ('if password == "hunter2":', f'if password == "{REDACTED}":'),
    ('token = sign("hunter2")', f"token = {REDACTED}"),
    ("TOKEN: Final = 'hunter2'", f"TOKEN: Final = '{REDACTED}'"),
    ("password: the quick brown fox", f"password: {REDACTED}"),
    ("password = ('hunter2', 1)", f"password = {REDACTED}"),
    ("password: p(ss", f"password: {REDACTED}"),
    ("PASSWORD=text", f"PASSWORD={REDACTED}"),
    ("password=string1", f"password={REDACTED}"),
    ("?sv=1&sig=abc%2Bd1", f"?sv=1&sig={REDACTED}"),
    ("https://h/?topic=auth&key=abc", f"https://h/?topic=auth&key={REDACTED}"),
    (
        json.dumps({"a": json.dumps({"token": "x"})}),
        json.dumps({"a": json.dumps({"token": REDACTED}, separators=(",", ":"))}).replace(
            ": ", ":"
        ),
    ),
]


@pytest.mark.parametrize("text,kept", EXAMPLES, ids=[text[:30] for text, _ in EXAMPLES])
def test_texts(text: str, kept: str) -> None:
    """Only the secret in a text goes, and what is left stays as it is when it is seen again."""
    found = redacted({"a": [text]})
    assert found is not None
    assert found.value == {"a": [kept]}
    assert found.places == ("/a/0",)
    assert redacted(found.value) is None
    assert USUAL.line(text) == kept or text.startswith("{")


# What everyday source code, schemas and prose say of credentials.
HARMLESS = [
    "def f(token: str)",
    "def f(token: str | None = None, *, password: Optional[str] = None) -> str:",
    "token = next(it)",
    "const token = getToken();",
    "  password = await self.ask(user)",
    'key = os.environ["API_KEY"]\napi_key = os.environ["API_KEY"]',
    "api_key = os.environ.get('API_KEY')",
    "self.token = args.token\n",
    "f(token=token, n=1)",
    "password === ''",
    "if token == other:",
    'if token == "EOF":',
    "password: string;",
    "interface X { password: string; token?: string }",
    '{"password": {"type": "string", "description": "of the user"}, "n": 1',
    "properties:\n  password:\n    type: string\n    minLength: 8\n  n: 1",
    "Password: required",
    '"auth": "none"',
    "access token: see docs",
    "?topic=auth&key=intro",
    "a;key=1",
    "f(a;key=abc123)",
    "mailto://x:y@z",
    "The session key: C major",
    "TOKEN=\nNEXT=1",
    "mkdir -p a1/b2; ssh -p 22 h",
    "curl -fsSLo u http://h/",
    "password required",
    "https://git@github.com/x",
    "the mnemonic: mov",
    "_TOKEN: Final = re.compile('x+')",
    "def f(secrets: Iterable[str]) -> str:",
    "    secrets: tuple[str, ...] = ()",
    "it wants credentials: set them in the headers",
    "echo token: ${{ secrets.GITHUB_TOKEN }}",
    'f"private key: {made.path}"',
]


@pytest.mark.parametrize("text", HARMLESS, ids=[text[:30] for text in HARMLESS])
def test_texts_that_speak_of_credentials(text: str) -> None:
    """Source code and prose keep their digest."""
    assert redacted({"a": text}) is None


@pytest.mark.parametrize(
    "text",
    [
        *(
            "the token was refused",
            "basic information about bearer tokens",
            "a sketch of a risk-free",
        ),
        *(
            "http://h:8080/a@b",
            "ssh://git@h/x",
            "secret://vault/x",
            "max_tokens=5",
            "password=null",
        ),
        *(
            "mcp/request:tools/call:get_token",
            "INVALID_TOOL_INPUT: x#/required at /a/token",
            "12:30",
        ),
        *(
            "sk-learn is a library",
            "-----BEGIN PUBLIC KEY-----",
            "?page=2&cursor=abc",
            "tokenizer=x",
        ),
        *('{"max_tokens": 5}', "[redacted]", "Password:", "password: ", "use --token", "a key: b"),
    ],
)
def test_texts_that_hold_no_secret(text: str) -> None:
    """They stay the very same."""
    assert redacted({"a": text}) is None


def cleaned(text: str) -> str:
    """By all rules, once."""
    return without_named(without_known(text), secrecy_of)


@given(TEXTS)
@example("<auth>x</auth>")
@example("?X-Amz-Credential=x")
@example("pin = '4711'")
def test_the_quick_search_finds_what_the_rules_change(text: str) -> None:
    """In the text, and in the canonical form of a value that holds it."""
    if cleaned(text) != text:
        assert FINDS(text)
        assert FINDS(canonical({"a": [text]}).decode())


@given(TEXTS)
def test_what_was_cleaned_is_clean(text: str) -> None:
    """The rules have nothing to do twice."""
    once = USUAL.text(text)
    assert cleaned(once) == once


@given(st.text())
def test_any_text_can_be_cleaned(text: str) -> None:
    """Without an error, whatever it is."""
    assert isinstance(cleaned(text), str)


def test_the_table_of_the_page_is_true(root: Path) -> None:
    """What it says of calls and the record."""
    page = (root / "docs" / "redaction.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\{.*?\})` \| `(\{.*?\})` \|$", page, re.MULTILINE)
    assert len(rows) == 11
    for given_text, kept in rows:
        value = json.loads(given_text)
        found = redacted(value)
        assert (found.value if found else value) == json.loads(kept)
