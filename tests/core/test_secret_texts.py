"""Secrets in texts: the rules and the quick search for what they may change agree."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from mcp_envelope.core.canonical import canonical
from mcp_envelope.core.credentials import secrecy_of
from mcp_envelope.core.redaction import Redactor
from mcp_envelope.core.schema_engine import search_for
from mcp_envelope.core.secret_texts import REDACTED, SIGNS, without_known, without_named

USUAL = Redactor()
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
