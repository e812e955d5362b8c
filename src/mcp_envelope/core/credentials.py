"""Names that say that what they name is a credential: ``db_password``, ``X-Api-Key``.

A name is taken as its words, so that case, ``_``, ``-``, ``.`` and camelCase make no difference:
``apiKey`` is ``API_KEY``. What only counts, pages or describes is none: ``max_tokens``,
``next_page_token``, ``secret_name``, ``password_policy``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, Literal
from unicodedata import normalize

#: What of a named value is a secret: anything, texts only, the digits of a PIN, many words.
Secrecy = Literal["any", "text", "digits", "phrase"]
NameRule = Callable[[str], Secrecy | None]

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MARKS: Final = re.compile(r"[\W_]")
_LONGEST: Final = 128


def words(text: str) -> frozenset[str]:
    """The words of a text, to look others up in."""
    return frozenset(text.split())


# What may follow a credential's name without making it another thing.
_TAILS: Final = words(
    "value text raw plain plaintext b64 base64 hex hash hashed encrypted old new current "
    "confirm confirmation again repeat repeated header"
)
# What a name that ends so is about: something said of a credential, and not the credential.
_ABOUT: Final = words(
    "age algorithm arn at banner budget class consent count created date description domain "
    "enabled endpoint error exp expires expiration expired expiry field file format hint id "
    "ids issuer label len length limit manager max message method min mode name names notice "
    "number path placeholder policy preferences prefix prompt provider ref reset rotation "
    "rules schema scope size source status store strength subject ttl type updated uri url "
    "usage used version visible"
)
_STEMS: Final = (
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "passwort",
    "kennwort",
    "credential",
)
_KEYS: Final = sorted(
    words(
        "access account admin aes api app auth authentication bot cipher client consumer crypto "
        "decryption deploy encryption functions hmac licence license master personal private "
        "recovery root rsa secret server service session shared signing subscription token "
        "webhook write"
    )
)
_ENDS: Final = (
    *(f"{one}key" for one in _KEYS),
    *("authorization", "authorizationcode", "authcode", "cookie", "pwd", "bearer", "jwt"),
    *("connectionstring", "connstr", "seedphrase", "recoveryphrase", "clientsecret", "appsecret"),
    *("apisecret", "consumersecret", "sharedsecret", "secretid"),
    *("mfacode", "2facode", "otpcode", "verificationcode", "securitycode", "onetimecode"),
    *("recoverycode", "backupcode", "pincode"),
)
_LAST: Final = words("auth cred creds otp totp hotp cvv cvc csc pw")
# Tokens that turn pages, report progress or count words.
_PAGING: Final = words(
    "change checkpoint completion continuation continue cursor delta end first input last list "
    "marker mask max min next nextpage nextsync num offset output pad page paging pagination per "
    "prev previous previouspage prevpage progress progression prompt resume scroll skip snapshot "
    "special start starting stop sync total unk bos eos watermark"
)
# Of many tokens only these are credentials: the rest are counts, and words of texts.
_MANY: Final = words(
    "access api auth bearer csrf device github gitlab id login oauth personal refresh secret "
    "session slack user xsrf"
)

_KEY_ALTERNATIVES: Final = "|".join(_KEYS)
# Short names stand in the middle of other words, and in what is no text, by chance.
_SHORT: Final = "pass|auth|cred|otp|csc|pwd|jwt|cvv|cvc|pw"
_TAIL_SIGNS: Final = "|".join(sorted((*_TAILS, "s[^a-z]")))
_GAP: Final = "[ _.-]{0,2}"
#: A search for what may be such a name, in any text. It finds too much, and never too little of
#: what :func:`secrecy_of` says of names whose words stand side by side or with ``_-. `` between.
SIGNS: Final = (
    rf"pass{_GAP}(?:wor|wd|phr|cod|key)|(?:{_SHORT})(?:[^a-z]|{_TAIL_SIGNS})|kennwort|secret|token|"
    rf"cred(?:s|ential)|(?:{_KEY_ALTERNATIVES}){_GAP}key|authoriz|auth{_GAP}(?:cod|head)|cookie|"
    rf"conn(?:ection)?{_GAP}str|bearer|"
    rf"(?:mfa|2{_GAP}fa|otp|verification|security|recovery|backup|pin|one{_GAP}time){_GAP}code|"
    rf"mnemonic|(?:seed|recovery){_GAP}phrase|pin[^a-z]{{1,12}}[0-9]{{4}}"
)


def secrecy_of(name: str) -> Secrecy | None:
    """What of a value under this name is a secret; None if it is no credential's name."""
    return _secrecy_of(name[-_LONGEST:])


@lru_cache(maxsize=4096)
def _secrecy_of(name: str) -> Secrecy | None:
    found = split(name)
    if not found:
        return None
    joined = "".join(found)
    if joined.endswith(("connectionstring", "secretid", "authorizationcode")):
        return "any"
    while len(found) > 1 and (found[-1] in _TAILS or found[-1].isdigit()):
        found.pop()
    last = found[-1]
    joined = "".join(found)
    if last in _ABOUT:
        return None
    if any(stem in joined for stem in _STEMS) or joined.endswith(_ENDS):
        return "any"
    if joined.endswith("s") and joined[:-1].endswith(_ENDS):
        return "any"
    if last in _LAST or _is_secret(found, joined) or _is_token(found, joined):
        return "any"
    if last == "mnemonic":
        return "phrase"
    if last == "pin":
        return "digits"
    return "text" if last == "pass" else None


def split(name: str) -> list[str]:
    """The words of a name, in lower case."""
    return [word.lower() for word in _WORDS.findall(name)]


def folded(name: str) -> str:
    """A name without what makes no difference: case, all but letters and digits, how é is made."""
    if not name.isascii():
        name = normalize("NFC", normalize("NFC", name).lower())
    return _MARKS.sub("", name).lower()


def signs_of(names: Iterable[str]) -> str:
    """What :data:`SIGNS` is for names of credentials, for these names."""
    return "|".join(_GAP.join(map(_sign_of, folded(name))) for name in names)


def _sign_of(letter: str) -> str:
    apart = normalize("NFD", letter)
    return letter if apart == letter else f"(?:{letter}|{apart})"


def _is_secret(parts: list[str], joined: str) -> bool:
    if "secret" in parts or "secrets" in parts:
        return True
    return joined in ("secret", "secrets") or parts[-1].endswith("secret")


def _is_token(parts: list[str], joined: str) -> bool:
    last = parts[-1]
    if last.endswith("tokens"):
        before = last[:-6] or (parts[-2] if len(parts) > 1 else "")
        return before in _MANY
    if last.endswith("token"):
        before = last[:-5] or (parts[-2] if len(parts) > 1 else "")
        return before not in _PAGING
    # A name whose case says nothing of its words, like ToKeN.
    return joined.endswith("token") and joined[:-5] not in _PAGING
