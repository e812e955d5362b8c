"""Where requests go and what stands in them: nothing of the client's own, and nothing smuggled."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_envelope.core.errors import ConfigError, EnvelopeError
from mcp_envelope.upstreams.http_target import passed_back, target_of


@pytest.mark.parametrize(
    "url,first,shown",
    [
        ("http://h/mcp", "/mcp HTTP/1.1|host: h", "http://h/mcp"),
        ("http://H:8080", "/ HTTP/1.1|host: h:8080", "http://h:8080/"),
        ("https://h:443/a?b=c&d=%20", "/a?b=c&d=%20 HTTP/1.1|host: h", "https://h/a"),
        ("http://[::1]:80/ü x#f", "/%C3%BC%20x HTTP/1.1|host: [::1]", "http://[::1]/%C3%BC%20x"),
        ("https://bücher.example/", "/ HTTP/1.1|host: xn--bcher-kva.example", None),
    ],
)
def test_an_url_becomes_the_first_lines(url: str, first: str, shown: str | None) -> None:
    """Path and query are kept, default ports left out, other characters escaped."""
    target = target_of(url, {})
    head = target.compose(b"POST", b"", b"{}").decode()
    line, host, identity, length, empty, body = head.split("\r\n")
    assert f"{line}|{host}" == f"POST {first}"
    assert (identity, length, empty, body) == (
        "accept-encoding: identity",
        "content-length: 2",
        "",
        "{}",
    )
    assert shown is None or target.shown == shown
    assert target.compose(b"GET", b"a: b\r\n").endswith(b"identity\r\na: b\r\n\r\n")


@pytest.mark.parametrize(
    "url,headers,match",
    [
        ("ftp://h/", {}, "not of HTTP"),
        ("mcp", {}, "has no host"),
        ("http:///x", {}, "has no host"),
        ("http://u:s3cret@h/", {}, "user name or password"),
        ("http://h:99999/", {}, "host or port"),
        ("http://a..b/", {}, "host or port"),
        ("http://h/", {"Content-Length": "1"}, "cannot be called"),
        ("http://h/", {"a b": "1"}, "cannot be called"),
        ("http://h/", {"Authorization": "s3cret\n"}, "'Authorization' holds a line break"),
        ("http://h/", {"x": "s3cret\r\ny: z"}, "line break"),
        ("http://h/", {"x": "ü"}, "non-ASCII"),
    ],
)
def test_settings_that_cannot_be_are_refused(url: str, headers: dict[str, str], match: str) -> None:
    """Each says what is wrong, and shows no secret."""
    with pytest.raises(ConfigError, match=match) as caught:
        target_of(url, headers)
    assert "s3cret" not in str(caught.value)


def lines(head: dict[str, str], own: dict[str, str] | None = None) -> set[str]:
    """The names that are passed on."""
    raw = target_of("http://h/", own or {}).relayed(head)
    return {line.partition(b":")[0].decode() for line in raw.split(b"\r\n") if line}


GOES_ON = {
    "accept", "content-type", "mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name",
    "mcp-param-region", "last-event-id", "user-agent", "traceparent", "x-whatever",
}  # fmt: skip
STAYS = {
    "authorization", "cookie", "host", "origin", "referer", "content-length", "transfer-encoding",
    "connection", "keep-alive", "te", "trailer", "upgrade", "forwarded", "x-forwarded-for",
    "x-forwarded-host", "proxy-authorization", "proxy-connection", "accept-encoding",
    "sec-fetch-site", "sec-websocket-key", "expect", "not a name", "",
}  # fmt: skip


def test_what_concerns_the_client_or_the_connection_stays_behind() -> None:
    """Credentials, cookies, framing and hop-by-hop headers do not pass; everything else does."""
    assert lines(dict.fromkeys(GOES_ON | STAYS, "v")) == GOES_ON
    assert lines({"connection": "X-Hop, close", "x-hop": "1", "x-stays": "2"}) == {"x-stays"}


def test_the_operators_headers_win() -> None:
    """What is set for the upstream is sent, whatever a client says, and not twice."""
    target = target_of("http://h/", {"Authorization": "Bearer s3cret", "X-Key": "k", "Host": "v"})
    head = {"authorization": "Bearer client", "x-key": "client", "accept": "a"}
    message = target.compose(b"POST", target.relayed(head), b"").decode()
    assert "authorization: Bearer s3cret\r\n" in message
    assert "host: v\r\n" in message
    assert "host: h\r\n" not in message
    assert "client" not in message
    assert target.lines({"x-key": "own", "b": "c"}) == b"b: c\r\n"
    assert "s3cret" not in repr(target)


@pytest.mark.parametrize("value", ["a\r\nevil: 1", "a\nevil: 1", "a\r", "a\0b", "\n", "a\u0100"])
def test_a_value_cannot_make_another_header(value: str) -> None:
    """Line breaks and NUL are refused, with the name of the header but not its value."""
    target = target_of("http://h/", {})
    for make in (target.relayed, target.lines):
        with pytest.raises(EnvelopeError, match="'x-a' holds a line break") as caught:
            make({"b": "c", "x-a": value, "d": "e"})
        assert caught.value.code == "INVALID_ENVELOPE"


@given(head=st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=4))
def test_there_are_never_more_lines_than_headers(head: dict[str, str]) -> None:
    """Whatever names and values are: refused, or one line each."""
    try:
        raw = target_of("http://h/", {}).relayed(head)
    except EnvelopeError:
        return
    assert raw.count(b"\r\n") == raw.count(b"\n") == raw.count(b"\r") <= len(head)
    assert b"\r\n\r\n" not in raw


def test_an_answers_own_connection_stays_behind() -> None:
    """Framing, cookies and what names the server do not go to the client."""
    head = dict.fromkeys(
        ["content-length", "transfer-encoding", "connection", "keep-alive", "set-cookie", "server",
         "date", "content-type", "mcp-session-id", "www-authenticate", "cache-control", "x-a"], "v"
    )  # fmt: skip
    kept = {"content-type", "mcp-session-id", "www-authenticate", "cache-control", "x-a"}
    assert set(passed_back(head)) == kept
    assert set(passed_back(head | {"connection": "X-A"})) == kept - {"x-a"}
