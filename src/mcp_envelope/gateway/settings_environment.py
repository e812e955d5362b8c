"""Settings from the environment: ``MCP_ENVELOPE_HTTP__PORT=9000`` is ``http.port``.

``__`` stands between the names, case does not matter, and an empty value is none. Values are
read as the schema wants them: numbers and true or false plainly, arrays and tables as JSON,
arrays of plain texts also with commas between.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from . import settings_schema
from .settings_mistakes import KeyPath, Mistake
from .settings_tree import Origin, Tree

PREFIX: Final = "MCP_ENVELOPE_"
CONFIG: Final = "MCP_ENVELOPE_CONFIG"
_WORDS: Final = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


def overlay(tree: Tree, environment: Mapping[str, str], folder: Path) -> dict[KeyPath, str]:
    """Put what the environment says over a tree; mistakes are noted there.

    What it returns is what was set, and by which variable.
    """
    found: dict[KeyPath, str] = {}
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name == CONFIG or not environment[name]:
            continue
        path = _path_of(tree, name)
        if path is None:
            continue
        origin = Origin(name, None, folder)
        part = settings_schema.part_for(path) or {}
        try:
            value = _value_of(environment[name], part)
        except ValueError:
            tree.mistakes.append(Mistake(name, "is not the JSON that it begins as", "mend it"))
        else:
            tree.put(path, value, origin)
            tree.clean(path)
            found[path] = name
    return found


def variable_for(path: tuple[str, ...]) -> str:
    """The variable that sets a key."""
    return PREFIX + "__".join(re.sub(r"[^A-Za-z0-9<>]", "_", step).upper() for step in path)


def _path_of(tree: Tree, name: str) -> KeyPath | None:
    path: tuple[str, ...] = ()
    part: Mapping[str, Any] = settings_schema.document().value
    for segment in name.removeprefix(PREFIX).split("__"):
        known = part.get("properties", {})
        if segment.lower() in known:
            step = segment.lower()
        elif segment and isinstance(part.get("additionalProperties"), dict):
            step = _own_name(tree, path, segment)
        else:
            _complain(tree, name, path, segment, list(known))
            return None
        inner = settings_schema.below(part, step)
        path, part = (*path, step), inner if inner is not None else {}
    if part.get("additionalProperties") and path[-1] == "upstreams":
        _complain(tree, name, path, "", [])
        return None
    return path


def _own_name(tree: Tree, path: tuple[str, ...], segment: str) -> str:
    """A name of the operator's: one that is there already, else as such names are written."""
    here = tree.get(path)
    for name in here if isinstance(here, dict) else ():
        if _folded(name) == _folded(segment):
            return str(name)
    if path[-1] == "env":
        return segment
    return segment.lower().replace("_", "-") if path[-1] == "headers" else segment.lower()


def _folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "_", name.casefold())


def _complain(
    tree: Tree, name: str, above: tuple[str, ...], segment: str, known: list[str]
) -> None:
    near = difflib.get_close_matches(segment.lower(), known, n=1, cutoff=0.5)
    if near:
        hint = f"did you mean {variable_for((*above, near[0]))}?"
    elif above == ("upstreams",):
        hint = f"name the server and the key: {variable_for(('upstreams', '<name>', 'command'))}"
    else:
        hint = "unset it; docs/settings.md lists the variables"
    tree.mistakes.append(Mistake(name, "names no setting", hint))


def _value_of(text: str, part: Mapping[str, Any]) -> Any:
    """The value, as near to what the schema wants as the text allows; the check comes later."""
    types = part.get("type", "string")
    wanted = {types} if isinstance(types, str) else set(types)
    stripped = text.strip()
    if "enum" in part:
        return stripped
    if wanted & {"array", "object"} and stripped[:1] in ("[", "{"):
        return json.loads(stripped, parse_constant=_no_number)
    if wanted == {"array"}:
        return [item.strip() for item in stripped.split(",") if item.strip()]
    if wanted == {"boolean"}:
        return _WORDS.get(stripped.lower(), text)
    if wanted == {"integer"} and re.fullmatch(r"-?[0-9]{1,18}", stripped):
        return int(stripped)
    return stripped if "number" in wanted else text


def _no_number(text: str) -> Any:
    raise ValueError(text)
