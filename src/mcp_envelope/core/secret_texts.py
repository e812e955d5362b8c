"""Secrets inside texts: what they look like, and the text without them.

Every rule takes time that is linear in the text. :data:`SIGNS` is a search that finds at least
every text that the rules would change, and is much faster than they are.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from . import commands, credentials
from .commands import without_options
from .credentials import NameRule, Secrecy, words
from .harmless import (
    Sort,
    are_schema_lines,
    behind_type,
    is_harmless,
    is_phrase,
    is_schema,
    says_nothing,
)

#: What stands in the place of what was taken out.
REDACTED: Final = "[redacted]"

# (?<!…) keeps each run of characters from being tried from each of its places.
_BEGIN: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,60}-----")
_KNOWN: Final = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    r"eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{4,}+(?:\.[A-Za-z0-9_-]++){0,3}"
    r"|gh[pousr]_[A-Za-z0-9]{16,}+|github_pat_[A-Za-z0-9_]{16,}+"
    r"|gl(?:pat|ptt|dt|rt|cbt|ft|soat|agent|oas)-[A-Za-z0-9_.-]{16,}+"
    r"|sk-(?=[A-Za-z_-]*+[0-9])[A-Za-z0-9_-]{16,}+|[sr]k_(?:live|test)_[A-Za-z0-9]{10,}+"
    r"|whsec_[A-Za-z0-9+/=]{16,}+|xox[a-z]-[A-Za-z0-9-]{10,}+|xapp-[A-Za-z0-9-]{10,}+"
    r"|A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])|AIza[A-Za-z0-9_-]{30,}+|ya29\.[A-Za-z0-9_-]{16,}+"
    r"|npm_[A-Za-z0-9]{16,}+|pypi-[A-Za-z0-9_-]{32,}+|hf_[A-Za-z0-9]{16,}+"
    r"|SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+|do[opr]_v1_[a-f0-9]{32,}+"
    r"|shp(?:at|ss|ca|pa)_[a-fA-F0-9]{32}|dapi[a-f0-9]{32}|glsa_[A-Za-z0-9_]{20,}+"
    r"|lin_(?:api|oauth)_[A-Za-z0-9]{20,}+|figd_[A-Za-z0-9_-]{20,}+|ATATT3[A-Za-z0-9_=-]{20,}+"
    r"|AGE-SECRET-KEY-1[A-Z0-9]{20,}+|PRIVATE\+KEY\+[^\s\"'<>\\]++"
    r"|gsk_[A-Za-z0-9]{16,}+|xai-[A-Za-z0-9]{16,}+|pplx-[A-Za-z0-9]{16,}+|tvly-[A-Za-z0-9-]{16,}+"
    r"|nvapi-[A-Za-z0-9_-]{16,}+|dckr_pat_[A-Za-z0-9_-]{16,}+|hvs\.[A-Za-z0-9_-]{16,}+"
    r"|[0-9]{8,10}:AA[A-Za-z0-9_-]{33})"
)
_HOOK: Final = re.compile(
    r"(hooks\.slack\.com/(?:services|workflows)/|discord(?:app)?\.com/api/webhooks/)"
    r"[A-Za-z0-9_/-]++"
)
_SCHEME: Final = re.compile(
    r"(?<![A-Za-z0-9])(bearer|basic)([ \t]++)([A-Za-z0-9._~+/=-]{6,}+)", re.IGNORECASE
)
# Words that follow "bearer" where people write about it.
_PROSE: Final = words(
    "auth authentication authorization credential credentials format header headers method "
    "prefix realm scheme schemes security string token tokens type"
)
# In the authority of a URL, but not where a port is meant; a password may hold what it should
# not, as long as it is no slash.
_USER: Final = re.compile(r"(?<!mailto)(://[^\s/:@\"'<>\\]*+:)(?![0-9]{1,5}[/?#])([^\s/\"'<>\\]*)@")
# A token alone, but not the name of a user that everybody has.
_ALONE: Final = re.compile(
    r"http(s?://)(?!(?:git|user|username|anonymous|oauth2)@)([^\s/:?#@\"'<>\\(){}|$*]++)@"
)
_QUERY: Final = re.compile(r"([?&;#]([A-Za-z0-9_.~%\[\]-]{1,100}+)=)([^&#\s\"'<>\\]++)")
#: Parameters that are credentials in URLs, whatever they are elsewhere.
_IN_URLS: Final = frozenset(("key", "sig", "signature", "auth", "sharedaccesssignature", "sas"))
_NAME: Final = r"(?<![A-Za-z0-9_.$\[\]-])[A-Za-z0-9_.$\[\]-]++"
_PAIR: Final = re.compile(
    rf"({_NAME})(\\*+[\"'`]?+)[*_]{{0,3}}+[ \t]{{0,8}}+"
    r"(:=|=>|={1,3}+|:(?!//))[*_]{0,3}+[ \t]{0,8}+"
)
_FLAG: Final = re.compile(r"(?<![^\s\"'`(\[])--?([A-Za-z][A-Za-z0-9_-]{0,80}+)[ \t]++(?![-=:\s])")
_TAG: Final = re.compile(r"<([A-Za-z][A-Za-z0-9_.:-]{0,80}+)(?:\s[^<>]{0,200}+)?>([^<]++)<")
_QUOTE: Final = re.compile(r"(\\*+)(\"\"\"|'''|[\"'`])")
_PLAIN_END: Final = {one: re.compile(rf"(?:[^{one}\\]|\\.)*+", re.DOTALL) for one in "\"'`"}
_NOTHING: Final = re.compile(r"(?i:true|false|null|none|nil|undefined)(?![A-Za-z0-9_.-])")
_TOKEN: Final = re.compile(r"(?:[^\s\"'`<>\\]|\\(?![nrt\"'`\\])|[\"'`<>](?=[A-Za-z0-9]))++")
_REST: Final = re.compile(r"(?:(?!\\[nr])[^\r\n])*+")
_REST_UNQUOTED: Final = re.compile(r"(?:(?!\\[nr])[^\r\n\"'`<>])*+")
_BLOCK: Final = re.compile(r"[|>]?[+-]?[0-9]?[ \t]*+\r?\n")
_INDENTED: Final = re.compile(r"([ \t]++)[^\r\n]*+(?:\r?\n|\Z)")
_NEXT_LINE: Final = re.compile(
    r"\r?\n[ \t]{0,8}+([^\s=:(){}<>\"'`,;\[\]\\#-][^\s=:(){}<>\"'`,;\[\]\\]*+)[ \t]*+(?=\r|\n|\Z)"
)
_NETRC: Final = re.compile(r"password[ \t\r\n]{1,8}+([^\s:=\"'`<>]++)(?=\s|\Z)")
_MANIFEST: Final = re.compile(r"kind[\"']?[ \t]{0,4}:[ \t]{0,4}[\"']?Secret\b")
_PIN: Final = re.compile(r"[0-9]{4,12}(?![A-Za-z0-9])")
#: How far back a line is looked at to see whether a name begins it.
_MARGIN: Final = 40
_URL_MARGIN: Final = 1024
_NETRC_MARGIN: Final = 200
_NO_URL: Final = re.compile(r"[\s\"'<>]")

#: A search, case aside, for what any rule here may change.
SIGNS: Final = (
    rf"{credentials.SIGNS}|{commands.SIGNS}|private key|eyj[a-z0-9_-]{{8}}|gh[pousr]_|github_pat|"
    r"gl(?:pat|ptt|dt|rt|cbt|ft|soat|agent|oas)-|sk-[a-z0-9_-]{16}|[sr]k_(?:live|test)|whsec_|xox[a-z]-|xapp-|"
    r"a[ks]ia[a-z0-9]{8}|aiza|ya29|npm_|pypi-|hf_|sg\.[a-z0-9_-]{16}|do[opr]_v1|shp(?:at|ss|ca|pa)_|dapi[a-f0-9]{8}|"
    r"glsa_|lin_api|lin_oauth|figd_|atatt3|age-secret|private\+key|:aa[a-z0-9_-]{8}|"
    r"hooks\.slack|api/webhooks|basic[ \t]|://[^\s/\"'<>]+@|gsk_|xai-|pplx-|tvly-|nvapi-|dckr_pat|hvs\.|"
    r"[?&;#](?:key|sig|signature|auth|sas|sharedaccesssignature)=|x-(?:amz|goog)-(?:sig|cred|sec)|\\u00[2-7]"
)


def without_known(text: str) -> str:
    """The text without what looks like a credential by itself, :data:`REDACTED` in its place."""
    text = _without_keys(text)
    text = _KNOWN.sub(REDACTED, text)
    text = _HOOK.sub(rf"\1{REDACTED}", text)
    text = _SCHEME.sub(_scheme, text)
    if "://" in text:
        text = _USER.sub(rf"\1{REDACTED}@", text)
        text = _ALONE.sub(rf"http\1{REDACTED}@", text) if "@" in text else text
    return without_options(text, REDACTED)


def without_named(text: str, rule: NameRule) -> str:
    """The text without the values of what is named in it, in any of the usual notations.

    ``rule`` says which names are those of credentials.
    """
    text = _QUERY.sub(lambda found: _parameter(found, rule), text)
    if "<" in text:
        text = _TAG.sub(lambda found: _element(found, rule), text)
    if "-" in text:
        text = _flags(text, rule)
    if "password" in text:
        text = _NETRC.sub(_netrc, text)
    if "Secret" in text and _MANIFEST.search(text):
        return _pairs(text, lambda name: "any" if name in ("data", "stringData") else rule(name))
    return _pairs(text, rule)


def _without_keys(text: str) -> str:
    """Without PEM private keys, torn ones too."""
    parts: list[str] = []
    done = 0
    while found := _BEGIN.search(text, done):
        end = _END.search(text, found.end())
        parts += (text[done : found.start()], REDACTED)
        done = end.end() if end is not None else len(text)
    return "".join((*parts, text[done:])) if parts else text


def _scheme(found: re.Match[str]) -> str:
    scheme, gap, value = found.groups()
    if scheme.lower() == "basic":
        is_secret = _is_basic(value)
    else:
        is_secret = value.lower().rstrip(".") not in _PROSE
    return f"{scheme}{gap}{REDACTED}" if is_secret else found[0]


def _is_basic(value: str) -> bool:
    """Whether it is a user and a password, in base64: people also write of basic things."""
    stripped = value.rstrip("=")[:4096]
    try:
        return b":" in base64.b64decode(stripped + "=" * (-len(stripped) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


def _netrc(found: re.Match[str]) -> str:
    """In a file .netrc, or in a line of its own as there."""
    value = found[1]
    before = found.string[max(0, found.start() - _NETRC_MARGIN) : found.start()]
    said = before.split()
    is_entry = before[-1:].isspace() and said[-2:-1] in (["login"], ["account"])
    is_line = before.rpartition("\n")[2].strip(" \t") == ""
    is_secret = not value.isalpha() or "machine" in said
    if value == REDACTED or not (is_secret and (is_entry or is_line)):
        return found[0]
    return f"{found[0][: -len(value)]}{REDACTED}"


def _parameter(found: re.Match[str], rule: NameRule) -> str:
    name, value = found[2], found[3]
    if value == REDACTED or not (rule(name) or (_of_url(name) and _stands_in_url(found))):
        return found[0]
    return found[1] + REDACTED


def _of_url(name: str) -> bool:
    low = name.lower()
    return low in _IN_URLS or low.startswith(("x-amz-sig", "x-amz-cred", "x-amz-sec", "x-goog-sig"))


def _stands_in_url(found: re.Match[str]) -> bool:
    """Whether it is a parameter of a URL; without one before it only what looks random is."""
    before = found.string[max(0, found.start() - _URL_MARGIN) : found.start()].rpartition("://")
    if before[1] and not _NO_URL.search(before[2]):
        return True
    return found[1][0] in "?&" and not found[3].isalpha() and len(found[3]) > 5


def _element(found: re.Match[str], rule: NameRule) -> str:
    inner = found[2]
    if not inner.strip() or inner == REDACTED or not _is_secret(rule(found[1]), inner.strip()):
        return found[0]
    return f"{found[0][: -len(inner) - 1]}{REDACTED}<"


def _is_secret(secrecy: Secrecy | None, value: str) -> bool:
    if secrecy == "digits":
        return _PIN.match(value) is not None
    return secrecy == "any" or (secrecy == "phrase" and is_phrase(value))


def _flags(text: str, rule: NameRule) -> str:
    """Without what follows options of commands, like ``--password hunter2``."""
    parts: list[str] = []
    done = 0
    for found in _FLAG.finditer(text):
        if found.start() < done or rule(found[1]) != "any":
            continue
        extent = _extent(
            text, found.end(), quoted=False, begins=False, rest=False, sort=Sort(found[1], rule)
        )
        if extent is not None:
            parts += (text[done : extent[0]], REDACTED)
            done = extent[1]
    return "".join((*parts, text[done:])) if parts else text


def _pairs(text: str, rule: NameRule) -> str:
    """Without the values of ``key=value``, ``key: value`` and ``"key": "value"``."""
    parts: list[str] = []
    done = at = 0
    while found := _PAIR.search(text, at):
        at = found.end()
        name = found[1]
        secrecy = rule(name) or _of_two_words(text, found.start(), name, rule)
        if secrecy is None or secrecy == "text":
            continue
        begins = _begins_line(text, found.start())
        low = name.lower()
        extent = _extent(
            text,
            at,
            quoted=found[2] != "",
            begins=begins,
            rest=secrecy == "phrase" or low.endswith(("cookie", "authorization")),
            sort=Sort(name, rule, found[3]),
        )
        if extent is None or not _is_secret(
            secrecy, text[extent[0] : min(extent[1], extent[0] + 200)]
        ):
            continue
        if (
            extent[1] - extent[0] < 3
            and secrecy == "any"
            and rule(name) is None
            and text[extent[0] : extent[1]].isalpha()
        ):
            continue  # "session key: C major"
        parts += (text[done : extent[0]], REDACTED)
        done = at = extent[1]
    return "".join((*parts, text[done:])) if parts else text


def _of_two_words(text: str, start: int, name: str, rule: NameRule) -> Secrecy | None:
    """The same of ``API key``, ``connection string`` and the like."""
    if name.lower().rstrip("s") not in ("key", "string", "phrase", "code", "word"):
        return None
    before = re.search(r"[A-Za-z0-9]+[ \t]+\Z", text[max(0, start - _MARGIN) : start])
    return rule(before[0].strip() + " " + name) if before is not None else None


def _begins_line(text: str, start: int) -> bool:
    least = max(0, start - _MARGIN)
    line = max(text.rfind("\n", least, start), text.rfind("\r", least, start)) + 1
    if line == 0 and least > 0:
        return False
    return not any(one.isalnum() or one in "\"'`{[(<" for one in text[max(line, least) : start])


def _extent(
    text: str, start: int, *, quoted: bool, begins: bool, rest: bool, sort: Sort
) -> tuple[int, int] | None:
    """From where to where a value goes; None where there is none, or where it was taken out."""
    opening = _QUOTE.match(text, start)
    if opening is None and sort.sign:
        behind = behind_type(text, start) if sort.sign == ":" else start
        if behind is None or sort.sign.startswith("=="):
            return None
        if behind != start:
            start, sort = behind, sort._replace(sign="=")
        opening = _QUOTE.match(text, start)
    if text.startswith(REDACTED, start):
        return None
    if opening is not None:
        begin = opening.end()
        end = _end_of_quoted(text, begin, opening[1], opening[2])
        return (begin, end) if _is_value(text[begin:end], sort.sign) else None
    first = text[start : start + 1]
    if quoted and first and first in "{[":
        empty = re.compile(r"[{\[]\s{0,20}[}\]]").match(text, start)
        return (start, len(text)) if empty is None and not is_schema(text, start) else None
    block = _block(text, start) if begins else None
    if block is not None:
        inner = text[block[0] : block[1]]
        if inner.strip() in ("", REDACTED) or are_schema_lines(inner):
            return None
        begin = block[0] + len(inner) - len(inner.lstrip())
        return begin, block[1] - (1 if inner.endswith("\n") else 0)
    return _unquoted(text, start, begins=begins, rest=rest, sort=sort)


def _block(text: str, start: int) -> tuple[int, int] | None:
    """The lines below that are indented more than the one that ``start`` stands in, if any."""
    head = _BLOCK.match(text, start)
    if head is None:
        return None
    line = text[text.rfind("\n", max(0, start - _URL_MARGIN), start) + 1 : start]
    least = len(line) - len(line.lstrip(" \t"))
    end = head.end()
    while (found := _INDENTED.match(text, end)) is not None and len(found[1]) > least:
        end = found.end()
    return (head.end(), end) if end > head.end() else None


def _unquoted(
    text: str, start: int, *, begins: bool, rest: bool, sort: Sort
) -> tuple[int, int] | None:
    if _NOTHING.match(text, start):
        return None
    below = _NEXT_LINE.match(text, start) if sort.sign else None
    if below is not None:
        is_telling = "=" in sort.sign or not below[1].isalpha()
        return below.span(1) if is_telling else None
    if sort.sign and is_harmless(text, start, sort, begins=begins):
        return None
    how = _REST if begins else _REST_UNQUOTED if rest else _TOKEN
    found = how.match(text, start)
    if found is None or found[0].strip() in ("", REDACTED):
        return None
    return found.span()


def _is_value(value: str, sign: str) -> bool:
    """Whether what stands in quotes may be a secret; with ``==`` one compares with it."""
    if value in ("", REDACTED) or says_nothing(value):
        return False
    return not sign.startswith("==") or (len(value) > 5 and any(one.isdigit() for one in value))


def _end_of_quoted(text: str, begin: int, escape: str, quote: str) -> int:
    """Where a quoted value ends; at the end of the text where it is not closed."""
    if escape or len(quote) > 1:
        end = text.find(escape + quote, begin)
        # With more backslashes before it, it stands inside: rather too much than too little.
        while end > begin and text[end - 1] == "\\":
            end = text.find(escape + quote, end + 1)
        return end if end >= 0 else len(text)
    found = _PLAIN_END[quote].match(text, begin)
    return found.end() if found is not None else len(text)
