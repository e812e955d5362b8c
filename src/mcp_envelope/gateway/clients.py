"""What clients keep about their servers: ``mcp.json``, ``claude_desktop_config.json``.

``mcpServers`` (most clients) or ``servers`` (VS Code) map a name to a command with arguments
and variables, or to a URL with headers. What else clients write there is theirs, and ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from mcp_envelope.core.document import parse
from mcp_envelope.core.errors import EnvelopeError

from .settings_mistakes import KeyPath, Mistake, dotted
from .settings_tree import Origin, Tree

_TABLES: Final = ("mcpServers", "servers")
_URLS: Final = ("url", "serverUrl", "httpUrl")
_KNOWN: Final = {"command", "args", "env", "cwd", "headers", "type", "transport", "disabled"}
_QUIET: Final = {"enabled", "description", "name", *_KNOWN, *_URLS}
_VARIABLE: Final = re.compile(r"\$\{(?:env:)?([^}:]+)(?::-([^}]*))?\}")
_INPUT: Final = re.compile(r"\$\{input:([^}]*)\}")
_EVENTS: Final = "is of the type sse, a transport of 2024 that is not spoken here"


def read_clients(tree: Tree, name: str, raw: bytes, environment: Mapping[str, str]) -> None:
    """Put the servers of a client's file into a tree; mistakes and notes go there too."""
    try:
        value = parse(raw).value
    except EnvelopeError as error:
        place = f": line {error.line}" if error.line is not None else ""
        message = f"is not JSON: {error.message}" if not place else error.message
        tree.mistakes.append(Mistake(f"{name}{place}", message, error.hint or "mend the file"))
        return
    tables = [key for key in _TABLES if isinstance(value, dict) and key in value]
    if not tables:
        hint = "name a client's mcp.json, or the file of settings with --config"
        tree.mistakes.append(Mistake(name, "has no mcpServers", hint))
        return
    table = value[tables[0]]
    if not isinstance(table, dict) or not table:
        what = "must map names to servers" if not isinstance(table, dict) else "names no server"
        tree.mistakes.append(Mistake(f"{name}: {tables[0]}", what, "name at least one"))
        return
    for server, entry in table.items():
        _Entry(tree, name, (tables[0], server), environment).read(server, entry)
    if not tree.mistakes and not tree.value.get("upstreams"):
        hint = "enable one of them"
        tree.mistakes.append(Mistake(f"{name}: {tables[0]}", "has disabled servers only", hint))


class _Entry:
    """One server of a client's file."""

    def __init__(self, tree: Tree, file: str, key: KeyPath, env: Mapping[str, str]) -> None:
        self._tree = tree
        self._file = file
        self._key = key
        self._environment = env

    def read(self, server: str, entry: Any) -> None:
        if not isinstance(entry, dict):
            self._complain((), "must be an object", "give it a command or a url")
            return
        if entry.get("disabled") is True or entry.get("enabled") is False:
            self._note("is disabled, and left out")
            return
        kind = entry.get("type", entry.get("transport"))
        if isinstance(kind, str) and kind.lower() == "sse":
            self._complain((), _EVENTS, "name its Streamable HTTP endpoint, or disable it")
            return
        found = self._command(entry) if "command" in entry else self._url(entry)
        ignored = [name for name in entry if name not in _QUIET]
        if ignored:
            shown = ", ".join(dotted((name,)) for name in ignored[:8])
            self._note(f"these keys are the client's own, and ignored: {shown}")
        folder = Path(self._file).absolute().parent
        if found:
            self._tree.put(("upstreams", server), found, Origin(self._file, self._key, folder))

    def _command(self, entry: dict[str, Any]) -> dict[str, Any]:
        words = [self._text(("command",), entry["command"])]
        arguments = entry.get("args") or []
        if not isinstance(arguments, list):
            self._complain(("args",), "must be an array of texts", "put each argument into it")
            arguments = []
        words += [self._text(("args", i), word) for i, word in enumerate(arguments)]
        found: dict[str, Any] = {"command": words}
        if entry.get("env"):
            found["env"] = self._texts("env", entry["env"])
        if entry.get("cwd"):
            found["cwd"] = self._text(("cwd",), entry["cwd"])
        return found

    def _url(self, entry: dict[str, Any]) -> dict[str, Any]:
        key = next((name for name in _URLS if entry.get(name)), None)
        if key is None:
            self._complain((), "has neither a command nor a url", "add one of them")
            return {}
        found: dict[str, Any] = {"url": self._text((key,), entry[key])}
        if entry.get("headers"):
            found["headers"] = self._texts("headers", entry["headers"])
        return found

    def _texts(self, key: str, value: Any) -> dict[str, str]:
        if not isinstance(value, dict):
            self._complain((key,), "must be an object of texts", "map names to texts")
            return {}
        return {
            name: self._text((key, name), part) for name, part in value.items() if part is not None
        }

    def _text(self, key: KeyPath, value: Any) -> str:
        """A text, its variables replaced."""
        if isinstance(value, bool):
            value = "true" if value else "false"
        if isinstance(value, (int, float)):
            value = str(value)
        if not isinstance(value, str):
            self._complain(key, "must be a text", "put it in quotes")
            return "-"
        asked = _INPUT.search(value)
        if asked is not None:
            message = f"asks the client's user for {_cut(asked[1])}"
            self._complain(key, message, "use a variable instead: ${VAR}")
            return value
        return _VARIABLE.sub(self._replace(key), value)

    def _replace(self, key: KeyPath) -> Callable[[re.Match[str]], str]:
        def replace(found: re.Match[str]) -> str:
            value = self._environment.get(found[1]) or found[2]
            if value is None and found[1] == "userHome":
                value = str(Path.home())
            if value is None:
                message = f"the variable {_cut(found[1])} is not set"
                self._complain(key, message, "set it, or write ${NAME:-default}")
                return "-"
            return value

        return replace

    def _complain(self, key: KeyPath, message: str, hint: str) -> None:
        where = f"{self._file}: {dotted((*self._key, *key))}"
        self._tree.mistakes.append(Mistake(where, message, hint))

    def _note(self, what: str) -> None:
        self._tree.notes.append(f"{self._file}: {dotted(self._key)}: {what}")


def _cut(name: str) -> str:
    return repr(name)[1:-1][:64]
