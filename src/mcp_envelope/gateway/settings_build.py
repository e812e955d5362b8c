"""From a tree that fits the schema to :class:`Settings`; what no schema can say is said here."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

from mcp_envelope.core.credentials import folded

from .settings import HttpSettings, RecordSettings, Rules, Settings, UpstreamSettings
from .settings_mistakes import KeyPath, dotted
from .settings_names import prefix_of
from .settings_tree import Tree
from .settings_values import (
    LOOPBACK,
    WrongValueError,
    ledger_of,
    loopback_of,
    path_of,
    seconds_of,
    url_of,
    words_of,
)

T = TypeVar("T")

_LONGEST_SECRET: Final = 65_536
_TOP: Final = (
    *("durability", "deterministic", "namespace", "log_level"),
    *("max_request_bytes", "max_result_bytes"),
)
_RECORD: Final = ("checkpoints", "checkpoint_lines", "index", "keep_days", "max_body_bytes")
_TIMES: Final = ("idle", "grace", "connect_timeout")
_COMMAND_ONLY: Final = ("env", "cwd", "processes", "idle", "grace")
_URL_ONLY: Final = ("headers",)
_LISTS: Final = ("redact_keys", "redact_pointers")
_RULES: Final = tuple(field.name for field in fields(Rules))
#: Headers that belong to the connection or the protocol.
_RESERVED: Final = frozenset(
    {
        *("accept", "content-length", "content-type", "host", "te", "trailer"),
        *("connection", "keep-alive", "transfer-encoding", "upgrade"),
        *("mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"),
    }
)


class Builder:
    """Builds settings from a tree. ``dropped`` are places whose mistakes are known already."""

    def __init__(self, tree: Tree, environment: Mapping[str, str], dropped: set[KeyPath]) -> None:
        self._tree = tree
        self._environment = environment
        self._dropped = dropped

    def build(self, path: str | None) -> Settings:
        """The settings; SettingsError with all mistakes."""
        tree, value = self._tree, self._tree.value
        given: dict[str, Any] = {name: value[name] for name in _TOP if name in value}
        rules = self._rules(("rules",), {})
        upstreams = [
            self._upstream(name, rules)
            for name, entry in value.get("upstreams", {}).items()
            if isinstance(entry, dict)
        ]
        self._check_names()
        http = self._http() if "http" in value else None
        ledger = self._try(("ledger",), ledger_of)
        record = self._record(ledger)
        if not upstreams and not tree.mistakes:
            hint = "add [upstreams.NAME] with a command or a url"
            tree.complain(("upstreams",), "there is no server to stand in front of", hint)
        tree.stop_if_wrong()
        return Settings(
            upstreams=tuple(upstreams), http=http, ledger=ledger, record=record, path=path, **given
        )

    def _record(self, ledger: str | None) -> RecordSettings:
        at: KeyPath = ("record",)
        entry = self._tree.get(at) or {}
        given: dict[str, Any] = {name: entry[name] for name in _RECORD if name in entry}
        if "checkpoint_time" in entry:
            read = self._try((*at, "checkpoint_time"), lambda value, _: seconds_of(value))
            given["checkpoint_time"] = read or 0.0
        for name in ("key", "publish_file", "archive"):
            path = self._try((*at, name), path_of)
            given[name] = str(path) if path is not None else None
        command = self._try((*at, "publish_command"), lambda value, _: words_of(value))
        found = RecordSettings(**given, publish_command=command or ())
        if found.keep_days and ledger is not None and not ledger.startswith("sqlite:"):
            hint = "keep the record in sqlite:PATH, or leave it out"
            self._tree.complain((*at, "keep_days"), "has no effect on this ledger", hint)
        if found.archive and not found.keep_days:
            hint = "add record.keep_days, or leave it out"
            self._tree.complain((*at, "archive"), "has no effect: nothing is removed", hint)
        return found

    def _try(self, path: KeyPath, read: Callable[[Any, Path], T]) -> T | None:
        """The value at a place as it is read, None if there is none or it is wrong."""
        value = self._tree.get(path)
        if value is None:
            return None
        try:
            return read(value, self._tree.origin(path).folder)
        except WrongValueError as error:
            self._tree.complain(path, error.message, error.hint)
            return None

    def _rules(self, path: KeyPath, inherited: Mapping[str, Any]) -> dict[str, Any]:
        found = {**inherited, **(self._tree.get(path) or {})}
        if self._tree.get((*path, "timeout")) is not None:
            seconds = self._try((*path, "timeout"), lambda value, _: seconds_of(value))
            found["timeout"] = seconds if seconds is not None else 0.0
        own = self._tree.get(path) or {}
        if own.get("digests") is False and own.get("bodies", "none") != "none":
            message = "has no effect without digests"
            self._tree.complain((*path, "bodies"), message, "leave one of them out")
        for name in _LISTS:
            found[name] = self._listed((*path, name), tuple(found.get(name, ())))
        return {name: found[name] for name in _RULES if name in found}

    def _listed(self, path: KeyPath, items: tuple[str, ...]) -> tuple[str, ...]:
        """Keys and pointers of what is redacted; what could never redact anything is a mistake."""
        for index, item in enumerate(self._tree.get(path) or ()):
            if path[-1] == "redact_keys" and not folded(item):
                hint = "name a member, such as ssn"
                self._tree.complain((*path, index), "has no letters or digits", hint)
        return items

    def _upstream(self, name: str, inherited: Mapping[str, Any]) -> UpstreamSettings:
        at: KeyPath = ("upstreams", name)
        entry = self._tree.get(at)
        self._check_kind(at, entry)
        given: dict[str, Any] = {}
        for key in _TIMES:
            if key in entry:
                given[key] = self._try((*at, key), lambda value, _: seconds_of(value)) or 0.0
        if "processes" in entry:
            given["processes"] = entry["processes"]
        rules = self._rules((*at, "rules"), inherited)
        # What bounds the upstream as a whole is no bound of each of its tools.
        for_tools = {name: value for name, value in rules.items() if name != "concurrency"}
        tools = {
            tool: Rules(**self._rules((*at, "tools", tool), for_tools))
            for tool in entry.get("tools", {})
        }
        cwd = self._try((*at, "cwd"), path_of)
        return UpstreamSettings(
            name=name,
            command=self._try((*at, "command"), lambda value, _: words_of(value)) or (),
            url=self._try((*at, "url"), lambda value, _: url_of(value)),
            env=self._secrets((*at, "env")),
            cwd=str(cwd) if cwd is not None else None,
            headers=self._secrets((*at, "headers")),
            rules=Rules(**rules),
            tools=MappingProxyType(tools),
            **given,
        )

    def _check_kind(self, at: KeyPath, entry: Mapping[str, Any]) -> None:
        if at in self._dropped or {(*at, "command"), (*at, "url")} & self._dropped:
            return
        if "command" in entry and "url" in entry:
            self._tree.complain(at, "has both a command and a url", "leave one of them out")
        elif "command" not in entry and "url" not in entry:
            self._tree.complain(at, "has neither a command nor a url", "add one of them")
        else:
            kind = "command" if "command" in entry else "url"
            for key in _URL_ONLY if kind == "command" else _COMMAND_ONLY:
                if key in entry:
                    other = "url" if kind == "command" else "command"
                    message = f"has no effect beside a {kind}"
                    self._tree.complain(
                        (*at, key), message, f"it goes with a {other}: leave it out"
                    )

    def _secrets(self, at: KeyPath) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for name in self._tree.get(at) or {}:
            value = self._try((*at, name), self._secret)
            if value is not None and at[-1] == "headers":
                self._check_header((*at, name), name, value)
                name = name.lower()  # noqa: PLW2901
            elif value is not None and "\0" in value:
                self._tree.complain((*at, name), "holds a NUL character", "leave it out")
            if name in found:
                self._tree.complain((*at, name), "is there twice", "leave one of them out")
            found[name] = value or ""
        return MappingProxyType(found)

    def _secret(self, value: str | dict[str, str], folder: Path) -> str:
        if isinstance(value, str):
            return value
        if "env" in value:
            found = self._environment.get(value["env"])
            if found is None:
                shown = value["env"] if value["env"].isprintable() else repr(value["env"])
                raise WrongValueError(f"the variable {shown[:100]} is not set", "set it")
            return found
        return _content(path_of(value["file"], folder)) if "file" in value else ""

    def _check_header(self, at: KeyPath, name: str, value: str) -> None:
        if name.lower() in _RESERVED:
            self._tree.complain(at, "is a header of the protocol's own", "leave it out")
        elif re.search(r"[\x00-\x08\x0a-\x1f\x7f]", value) or not value.isascii():
            self._tree.complain(at, "holds characters that no header may", "write plain ASCII")

    def _check_names(self) -> None:
        seen: dict[str, str] = {}
        for name in self._tree.value.get("upstreams", {}):
            prefix = prefix_of(name)
            at = ("upstreams", name)
            if not prefix:
                hint = "give it a name with letters or digits"
                self._tree.complain(at, "the name has nothing that tools' names may hold", hint)
            elif prefix.casefold() in seen:
                other = seen[prefix.casefold()]
                taken = dotted(("upstreams", other))
                message = f"is called {prefix}__… to clients, as {taken} is"
                self._tree.complain(at, message, "rename one of them")
            seen.setdefault(prefix.casefold(), name)

    def _http(self) -> HttpSettings:
        http = self._tree.get(("http",)) or {}
        host = self._try(("http", "host"), lambda value, _: loopback_of(value))
        return HttpSettings(
            host=host or LOOPBACK,
            port=http.get("port", HttpSettings().port),
            hosts=tuple(name.lower() for name in http.get("hosts", ())),
            origins=tuple(name.lower() for name in http.get("origins", ())),
        )


def _content(path: Path) -> str:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would keep us waiting
            raise WrongValueError("the file is no regular file", "name another")
        with path.open("rb") as file:
            raw = file.read(_LONGEST_SECRET + 1)
        text = raw.decode()
    except OSError as error:
        raise WrongValueError(
            f"the file cannot be read: {error.strerror}", "name another"
        ) from None
    except ValueError:
        raise WrongValueError("the file is not UTF-8", "name a text file") from None
    if len(raw) > _LONGEST_SECRET:
        raise WrongValueError(f"the file has more than {_LONGEST_SECRET} bytes", "name another")
    return text.removesuffix("\n").removesuffix("\r")
