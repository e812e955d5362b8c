"""Single values of the settings: times, addresses, URLs. A wrong one raises WrongValueError."""

from __future__ import annotations

import ipaddress
import re
import shlex
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_TIME: Final = re.compile(r"([0-9.]+)(ms|s|m|h)?")
_YEAR: Final = 31_536_000.0
_HOST: Final = re.compile(
    r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?\.?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*"
)
LOOPBACK: Final = "127.0.0.1"
_ADDRESS: Final = "write HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080, or a port alone"


class WrongValueError(Exception):
    """A value that cannot be used; says why and what to do, without repeating secrets."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def seconds_of(value: float | str) -> float:
    """A time in seconds, from a number or a text like ``30s``."""
    if isinstance(value, str):
        found = _TIME.fullmatch(value)
        if found is None:
            raise WrongValueError("is no time", 'write seconds, or a text such as "30s"')
        value = float(found[1]) * _UNITS[found[2] or "s"]
    if value > _YEAR:
        raise WrongValueError("is longer than a year", "write 0 for no bound")
    return float(value)


def address_of(value: str | int) -> tuple[str | None, int]:
    """Host and port of HOST:PORT, [HOST]:PORT, :PORT or PORT; None where no host is named."""
    text = str(value)
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        if not host or not rest.startswith(":"):
            raise WrongValueError("is no address to listen on", _ADDRESS)
        port = rest[1:]
    else:
        host, colon, port = text.rpartition(":")
        if ":" in host:
            raise WrongValueError("has an IPv6 address without brackets", _ADDRESS)
        if not colon and not port.isdigit():
            raise WrongValueError("has no port", _ADDRESS)
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65_535):
        raise WrongValueError("has no port between 0 and 65535", _ADDRESS)
    return host or None, int(port)


def loopback_of(host: str) -> str:
    """The loopback address that a host is; anything else is refused."""
    if host.lower() == "localhost":
        return LOOPBACK
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        address = None
    if address is None or not address.is_loopback:
        raise WrongValueError(
            "is no loopback address, and without authentication nothing else is served",
            "listen on 127.0.0.1 or [::1]",
        )
    return str(address)


def url_of(value: str) -> str:
    """An http or https URL."""
    if re.search(r"[\s\x00-\x20\x7f]", value) or not value.isascii():
        raise WrongValueError("has characters that no URL has", "escape them with %")
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise WrongValueError("is no URL", "write http://HOST:PORT/PATH or https://…") from None
    if parts.scheme.lower() not in ("http", "https"):
        raise WrongValueError(
            "is no http:// or https:// URL",
            "name a Streamable HTTP endpoint, such as https://…/mcp",
        )
    if "@" in parts.netloc:
        raise WrongValueError(
            "has a user name or password in it", "put an authorization header into headers"
        )
    if not _HOST.fullmatch(host):
        raise WrongValueError("has no usable host", "write http://HOST:PORT/PATH or https://…")
    if parts.fragment:
        raise WrongValueError("has a fragment, which no server gets to see", "leave out the #…")
    return value


def words_of(value: str | list[str]) -> tuple[str, ...]:
    """A command as its words."""
    if isinstance(value, str):
        try:
            value = shlex.split(value)
        except ValueError as error:
            what = "ends inside quotes" if "quotation" in str(error) else "ends with a backslash"
            raise WrongValueError(what, "write the words as an array") from None
    if not value or not value[0].strip():
        raise WrongValueError("is empty", "name the program to start")
    if any("\0" in word for word in value):
        raise WrongValueError("holds a NUL character", "leave it out")
    return tuple(value)


def path_of(value: str, folder: Path) -> Path:
    """A path as it was meant: ``~`` is the home folder, and relative ones count from a folder."""
    if "\0" in value:
        raise WrongValueError("holds a NUL character", "leave it out")
    try:
        return folder / Path(value).expanduser()
    except RuntimeError:
        raise WrongValueError("names a home folder that is not known", "write the path") from None


def ledger_of(value: str, folder: Path) -> str:
    """A ledger URL whose path does not depend on the current folder."""
    scheme, _, rest = value.partition(":")
    return f"{scheme}:{path_of(rest, folder)}" if rest else value
