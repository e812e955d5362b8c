"""Where HTTP requests go, and how one is written: its first line, its headers, its body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final
from urllib.parse import quote, urlsplit

from mcp_envelope.core.errors import ConfigError, EnvelopeError

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9a-z]+")
_BREAK: Final = re.compile(r"[\r\n\0]")
_SAFE: Final = "/%:@!$&'()*+,;=~-._"

#: What concerns one connection only (RFC 9110, 7.6.1).
HOP_BY_HOP: Final = frozenset(
    [
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "http2-settings",
    ]
)
# What a client says to the gateway and to nobody behind it: who it is, how it came here, and
# how its message is framed.
_KEPT_BACK: Final = HOP_BY_HOP | frozenset(
    [
        "authorization",
        "cookie",
        "cookie2",
        "host",
        "origin",
        "referer",
        "content-length",
        "accept-encoding",
        "expect",
        "forwarded",
        "x-forwarded",
    ]
)
_KEPT_BACK_PREFIXES: Final = ("x-forwarded-", "proxy-", "sec-")
#: Names of headers in which people send what is for us alone.
_CREDENTIAL: Final = re.compile(
    r"api-?key|apikey|auth|token|secret|password|passwd|credential|signature|session-?key"
)
_FRAMING: Final = ("content-length", "transfer-encoding", "connection", "expect", "upgrade")


@dataclass(frozen=True, slots=True)
class Target:
    """An endpoint, with the headers of the gateway's own that go there with every request.

    ``shown`` is for people: without the query, in which there may be a token.
    """

    host: str
    port: int
    tls: bool
    shown: str
    own: frozenset[str]
    _middle: bytes = field(repr=False)

    def compose(self, method: bytes, lines: bytes, body: bytes | None = None) -> bytes:
        """The bytes of a request. ``lines`` are further headers, each with its line end."""
        if body is None:
            return b"%b%b%b\r\n" % (method, self._middle, lines)
        return b"%b%b%bcontent-length: %d\r\n\r\n%b" % (
            method,
            self._middle,
            lines,
            len(body),
            body,
        )

    def lines(self, head: Mapping[str, str]) -> bytes:
        """Headers of our own making as lines, but for those that the operator has set."""
        return _lines({name: text for name, text in head.items() if name not in self.own})

    def relayed(self, head: Mapping[str, str]) -> bytes:
        """Those headers of a client that go on to the upstream, as lines."""
        named = head.get("connection")
        kept = self.own if named is None else self.own | _names_in(named)
        return _joined(
            [
                f"{name}: {text}\r\n"
                for name, text in head.items()
                if _passes(name) and name not in kept
            ]
        )


def target_of(url: str, headers: Mapping[str, str]) -> Target:
    """Read an endpoint's URL and the operator's headers for it; ConfigError says what is wrong."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            "the url of an upstream has no host, or is not of HTTP",
            hint="write it like http://127.0.0.1:8000/mcp or https://example.org/mcp",
        )
    if parts.username is not None or parts.password is not None:
        raise ConfigError(
            "the url of an upstream holds a user name or password",
            hint="put credentials into its headers, for example as Authorization",
        )
    tls = parts.scheme == "https"
    try:
        port = parts.port or (443 if tls else 80)
        host = parts.hostname.encode("idna").decode("ascii")
    except ValueError:  # a port beyond 65,535, or a label that is no name
        raise ConfigError("the url of an upstream has a host or port that cannot be") from None
    bracketed = f"[{host}]" if ":" in host else host
    authority = bracketed if port == (443 if tls else 80) else f"{bracketed}:{port}"
    path = quote(parts.path, safe=_SAFE) or "/"
    query = f"?{quote(parts.query, safe=_SAFE + '?')}" if parts.query else ""
    own = _own(headers)
    fixed = {"host": authority, "accept-encoding": "identity"} | own
    middle = f" {path}{query} HTTP/1.1\r\n".encode("ascii") + _lines(fixed)
    shown = f"{parts.scheme}://{authority}{path}"
    return Target(host, port, tls, shown, frozenset(own), middle)


def _own(headers: Mapping[str, str]) -> dict[str, str]:
    own: dict[str, str] = {}
    for name, text in headers.items():
        key = name.lower()
        if _TOKEN.fullmatch(key) is None or key in _FRAMING:
            raise ConfigError(
                f"an upstream's header cannot be called {name!r}",
                hint="leave out what belongs to one connection or message",
            )
        if _BREAK.search(text) is not None or not text.isascii():
            # The value itself may be a secret, and stays out of the message.
            raise ConfigError(
                f"the value of an upstream's header {name!r} holds a line break, NUL or non-ASCII",
                hint="a stray line end at the end of a secret's file is the usual cause",
            )
        own[key] = text
    return own


@lru_cache(maxsize=1024)
def _passes(name: str) -> bool:
    """Whether a client's header goes on; what is no name of a header does not."""
    if name in _KEPT_BACK or name.startswith(_KEPT_BACK_PREFIXES):
        return False
    if _CREDENTIAL.search(name) is not None and not name.startswith("mcp-param-"):
        return False
    return _TOKEN.fullmatch(name) is not None


def _names_in(value: str) -> frozenset[str]:
    return frozenset(word.strip().lower() for word in value.split(","))


def _lines(head: Mapping[str, str]) -> bytes:
    return _joined([f"{name}: {value}\r\n" for name, value in head.items()])


def _joined(lines: list[str]) -> bytes:
    """Headers as bytes, or INVALID_ENVELOPE: a value must not be able to make further lines."""
    text = "".join(lines)
    if text.count("\n") == text.count("\r") == len(lines) and "\0" not in text:
        try:
            return text.encode("latin-1")
        except UnicodeEncodeError:
            pass
    bad = next((line for line in lines if not _is_line(line)), "")
    raise EnvelopeError(
        f"the header {bad.partition(':')[0]!r} holds a line break, NUL or non-Latin character",
        hint="send it on one line, in ASCII",
    )


def _is_line(line: str) -> bool:
    return _BREAK.search(line[:-2]) is None and all(ord(character) < 256 for character in line)


def passed_back(head: Mapping[str, str]) -> dict[str, str]:
    """Those headers of an upstream's answer that go on to the client."""
    named = head.get("connection")
    kept = _KEPT_FROM_ANSWERS if named is None else _KEPT_FROM_ANSWERS | _names_in(named)
    return {name: text for name, text in head.items() if name not in kept}


_KEPT_FROM_ANSWERS: Final = HOP_BY_HOP | frozenset(
    ("content-length", "set-cookie", "set-cookie2", "server", "date", "alt-svc")
)
