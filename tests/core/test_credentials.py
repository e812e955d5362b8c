"""Names of credentials, and names that only look like them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_envelope.core.credentials import SIGNS, secrecy_of
from mcp_envelope.core.schema_engine import search_for


def _words(text: str) -> list[str]:
    return text.split()


CREDENTIALS = _words(
    "password passwd pwd passphrase secret client_secret token access_token refresh_token "
    "id_token auth_token api_key apikey x-api-key X-API-KEY apiKey APIKey authorization "
    "proxy-authorization Proxy-Authorization cookie set-cookie Set-Cookie cookies private_key "
    "privateKey signing_key access_key secret_key session_token credential credentials "
    "connection_string connectionString otp totp ToKeN PaSsWoRd password1 password2 "
    "new_password passwordConfirm userPassword DB_PASSWORD AWS_SECRET_ACCESS_KEY "
    "OPENAI_API_KEY githubToken GITHUB_TOKEN admin_token backend_token csrfToken accessTokens "
    "api_tokens secrets secret_id token_value mfa_code client-secret clientsecret db.password "
    "jwt bearer auth X-Auth-Token pass_word OAuthToken token2 apiKeys recovery_codes pin_code "
    "pincode pw db_pw authorization_code 2fa_code encryptionKey password_hash smtp-password"
)
OTHERS = _words(
    "max_tokens maxTokens token_count tokenCount next_page_token nextPageToken pageToken "
    "progressToken cursor secretary secretariat key name author authority authored keyboard "
    "monkey primary_key public_key passenger bypass compass tokens input_tokens total_tokens "
    "tokenizer tokenize token_type token_id secret_name password_policy passwordLength "
    "cookie_consent nextToken NextToken continuationToken syncToken pagination_token max_token "
    "pinned spin pinterest credit accreditation description authors hotpot oauth "
    "private_key_path tokens_used usage.total_tokens auth_type cookiePolicy keys sort_key "
    "token_url completion_tokens input_token output_token keyword hash id passive"
)
_FINDS = search_for(f"(?i){SIGNS}")


@pytest.mark.parametrize("name", CREDENTIALS)
def test_names_of_credentials(name: str) -> None:
    """In each of the spellings that are about, and the quick search finds them all."""
    assert secrecy_of(name) == "any"
    assert _FINDS(f'{{"{name}":"x"}}')


@pytest.mark.parametrize("name", OTHERS)
def test_names_of_other_things(name: str) -> None:
    """What counts tokens, turns pages or tells of a credential is none."""
    assert secrecy_of(name) is None


def test_names_that_say_little() -> None:
    """Of a `pin` only digits are a secret, of `pass` only texts."""
    assert (secrecy_of("pin"), secrecy_of("user_pin")) == ("digits", "digits")
    assert secrecy_of("walletMnemonic") == "phrase"
    assert (secrecy_of("pass"), secrecy_of("dbPass")) == ("text", "text")


@given(
    st.sampled_from(
        [each for each in CREDENTIALS if each not in ("ToKeN", "PaSsWoRd", "2fa_code")]
    ),
    st.data(),
)
def test_case_and_what_stands_between_words_make_no_difference(
    name: str, data: st.DataObject
) -> None:
    """`API-Key`, `api key` and `apiKey` are one name."""
    words = re.findall("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)
    gap = data.draw(st.sampled_from(["_", "-", ".", " ", "__"]))
    spelled = gap.join(data.draw(st.sampled_from([w.lower(), w.upper(), w.title()])) for w in words)
    assert secrecy_of(spelled) == "any"
    assert _FINDS(f'"{spelled}":')


@given(st.text())
def test_any_name_has_a_verdict(name: str) -> None:
    """And what is a credential's name to the one is found by the other, for ASCII."""
    verdict = secrecy_of(name)
    assert verdict in (None, "any", "text", "digits", "phrase")
