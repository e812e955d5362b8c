"""Settings from all that an operator says: the file, the environment over it, flags over those.

The file is found because somebody names it, never by looking into the current folder. All
mistakes are said at once (:class:`SettingsError`), a line each.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from mcp_envelope.core.errors import ConfigError, UsageError

from . import settings_environment
from .clients import read_clients
from .settings import Settings
from .settings_build import Builder
from .settings_changes import Changes, adopt, changes
from .settings_check import check
from .settings_environment import CONFIG
from .settings_mistakes import KeyPath, Mistake, SettingsError
from .settings_names import name_of_command, name_of_url
from .settings_tree import Origin, Tree
from .settings_values import WrongValueError, address_of

__all__ = [
    "CONFIG",
    "Changes",
    "Flag",
    "Given",
    "Loaded",
    "SettingsError",
    "adopt",
    "changes",
    "load",
]

_LONGEST: Final = 4 * 1024 * 1024
_PLACE: Final = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|(end of document))\)", re.DOTALL)
_RULES: Final = "rules"
_SERVERS: Final = settings_environment.PREFIX + "UPSTREAMS__"


@dataclass(frozen=True, slots=True)
class Flag:
    """An option of the command line that sets a key."""

    name: str
    path: tuple[str, ...]
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What was said at the start, beside the files' contents; enough to read it all again.

    ``clients`` is the file of ``--from``, ``url`` that of ``--upstream``, ``command`` what
    stands behind ``--`` (None if there is no ``--``). ``stdio`` is true if that door was asked
    for, ``http`` the address if that one was.
    """

    config: str | None = None
    clients: str | None = None
    url: str | None = field(default=None, repr=False)
    command: tuple[str, ...] | None = field(default=None, repr=False)
    stdio: bool = False
    http: str | None = None
    flags: tuple[Flag, ...] = field(default=(), repr=False)
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    folder: Path = field(default_factory=Path.cwd)

    @property
    def config_file(self) -> str | None:
        """The file of settings, by the option or by the environment."""
        return self.config if self.config is not None else self.environment.get(CONFIG) or None

    @property
    def names_servers(self) -> bool:
        """Whether anything says where servers are."""
        said = (self.config_file, self.clients, self.url, self.command)
        return any(each is not None for each in said) or any(
            name.startswith(_SERVERS) for name in self.environment
        )


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and what there is to say about them that is no mistake."""

    settings: Settings
    notes: tuple[str, ...] = ()


def load(given: Given, read: Callable[[str], bytes] | None = None) -> Loaded:
    """Read the settings.

    ``read`` reads a file; by default one that is named, never standard input. SettingsError for
    mistakes in what the settings say, UsageError for what makes no sense together.
    """
    _check_sources(given)
    read = read or _read
    tree = Tree()
    config = given.config_file
    if config is not None:
        folder = Path(config).absolute().parent if config != "-" else given.folder
        shown = config if config != "-" else "standard input"
        tree.begin(_parse(shown, read(config)), Origin(shown, (), folder))
        _split_listen(tree)
    _add_source(tree, given, read)
    _overlay_environment(tree, given)
    _overlay_flags(tree, given)
    dropped = check(tree)
    settings = Builder(tree, given.environment, dropped).build(_path_of(given))
    return Loaded(settings, tuple(tree.notes))


def _check_sources(given: Given) -> None:
    sources = [
        name
        for name, value in (
            ("--from", given.clients),
            ("--upstream", given.url),
            ("a COMMAND", given.command),
        )
        if value is not None
    ]
    if len(sources) > 1:
        raise UsageError(
            f"{sources[0]} and {sources[1]} both name servers", hint="give one of them"
        )
    if given.stdio and given.http is not None:
        raise UsageError("--stdio and --http exclude each other", hint="give one of them")
    if not given.names_servers:
        raise UsageError(
            "there is no server to stand in front of",
            hint="give -- COMMAND, --upstream URL, --from FILE or --config FILE",
        )


def _read(name: str) -> bytes:
    if name == "-":
        raise ConfigError("standard input cannot be read twice", hint="name a file")
    try:
        with Path(name).open("rb") as file:
            return file.read(_LONGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        mistake = Mistake(name, f"cannot be read: {reason}", "name a file that can be")
        raise SettingsError([mistake]) from None


def _parse(name: str, raw: bytes) -> dict[str, Any]:
    """The file's content. TOML readers promise little about bad input, so all is caught here."""
    line, message, hint = "", "", "mend the TOML"
    try:
        if len(raw) > _LONGEST:
            raise SettingsError([Mistake(name, f"has more than {_LONGEST:,} bytes", "shorten it")])
        return tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line, message = str(raw.count(b"\n", 0, error.start) + 1), "is not UTF-8"
        hint = "save the file as UTF-8"
    except RecursionError:
        message = "is nested too deep"
    except ValueError as error:
        found = _PLACE.fullmatch(str(error))
        if found is None:
            message = "is no TOML: a number or date is out of range"
        else:
            message = found[1][:200]
            line = found[2] or str(raw.rstrip(b"\n").count(b"\n") + 1)
            message = message[0].lower() + message[1:]
    place = f"{name}: line {line}" if line else name
    raise SettingsError([Mistake(place, message, hint)])


def _add_source(tree: Tree, given: Given, read: Callable[[str], bytes]) -> None:
    if given.clients is None and given.url is None and given.command is None:
        return
    flag = "COMMAND" if given.command is not None else "--upstream" if given.url else "--from"
    if tree.value.get("upstreams"):
        where = tree.where(("upstreams",))
        tree.mistakes.append(Mistake(where, f"names servers, as {flag} does", "give one of them"))
    tree.value.pop("upstreams", None)
    origin = Origin(flag, None, given.folder)
    if given.command is not None:
        name = name_of_command(given.command)
        tree.put(("upstreams", name), {"command": list(given.command)}, origin)
    elif given.url is not None:
        tree.put(("upstreams", name_of_url(given.url)), {"url": given.url}, origin)
    elif given.clients is not None:
        shown = given.clients if given.clients != "-" else "standard input"
        read_clients(tree, shown, read(given.clients), given.environment)


def _overlay_environment(tree: Tree, given: Given) -> None:
    found = settings_environment.overlay(tree, given.environment, given.folder)
    if ("http", "listen") in found:
        _split_listen(tree, set(found))


def _overlay_flags(tree: Tree, given: Given) -> None:
    for flag in given.flags:
        origin = Origin(flag.name, None, given.folder)
        if flag.path[0] == _RULES:
            _forget_exceptions(tree, flag.path[-1])
        tree.put(flag.path, flag.value, origin)
    if given.stdio:
        tree.drop(("http",))
    if given.http is not None:
        origin = Origin("--http", None, given.folder)
        if not isinstance(tree.value.get("http"), dict):
            tree.drop(("http",))
        for key in ("host", "port"):
            tree.drop(("http", key))
        tree.put(("http", "listen"), given.http, origin)
        _split_listen(tree)


def _forget_exceptions(tree: Tree, rule: str) -> None:
    """An option holds for every call, whatever the file says of single servers and tools."""
    upstreams = tree.value.get("upstreams")
    for name, entry in upstreams.items() if isinstance(upstreams, dict) else ():
        tree.drop(("upstreams", name, _RULES, rule))
        tools = entry.get("tools") if isinstance(entry, dict) else None
        for tool in tools if isinstance(tools, dict) else ():
            tree.drop(("upstreams", name, "tools", tool, rule))


def _split_listen(tree: Tree, among: set[KeyPath] | None = None) -> None:
    """Replace ``http.listen`` by host and port, so that later layers may change one of them.

    ``among`` are the keys of the same layer, by default all.
    """
    at = ("http", "listen")
    value, origin = tree.get(at), tree.origin(at)
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        return
    beside = [
        key
        for key in ("host", "port")
        if (("http", key) in among if among is not None else tree.get(("http", key)) is not None)
    ]
    if beside:
        hint = "leave one of them out"
        tree.complain(at, f"says what http.{beside[0]} says too", hint)
        tree.drop(at)
        return
    try:
        host, port = address_of(value)
    except WrongValueError as error:
        tree.complain(at, error.message, error.hint)
        tree.drop(at)
        return
    label = Origin(tree.where(at), None, origin.folder)
    tree.drop(at)
    tree.put(("http", "port"), port, label)
    if host is not None:
        tree.put(("http", "host"), host, label)
    elif among is not None:
        tree.drop(("http", "host"))


def _path_of(given: Given) -> str | None:
    name = given.config_file or given.clients
    return name if name is not None and name != "-" and Path(name).is_file() else None
