"""A tree against the published schema: what is wrong, in the words of whoever wrote it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any, Final

from mcp_envelope.core.errors import Problem
from mcp_envelope.core.pointer import is_index, steps_of
from mcp_envelope.core.schema_words import kind, nearest, quoted

from . import settings_schema
from .settings_mistakes import KeyPath, dotted
from .settings_tree import Tree

_MOST: Final = 200
_ROUNDS: Final = 4
#: Ledgers that are to come.
_LATER: Final = frozenset({"postgres", "postgresql"})
#: Below these, values may be secret.
#: What can be nothing but the name of a file, and so no secret.
_FILE: Final = re.compile(r"[^:@?]*\.(db|sqlite3?|jsonl)")
_SECRET: Final = frozenset({"env", "headers", "command", "publish_command", "url", "ledger"})


def check(tree: Tree) -> set[KeyPath]:
    """Note what the schema refuses, and take it out of the tree, so that more can be looked at.

    The places that were taken out are returned.
    """
    dropped: set[KeyPath] = set()
    for _ in range(_ROUNDS):
        found = settings_schema.compiled().problems(tree.value, limit=_MOST)
        # Of a command and a url there is exactly one: said later, in better words.
        found = [problem for problem in found if "/oneOf" not in problem.rule]
        places = [_path_of(tree, problem.pointer) for problem in found]
        seen: set[KeyPath] = set()
        for problem, path in zip(found, places, strict=True):
            # What is wrong with a value first is enough to begin with, and what is wrong
            # because a part of it was taken out is no news.
            if path not in seen and not any(gone[: len(path)] == path for gone in dropped):
                _complain(tree, problem, path)
            seen.add(path)
        dropped |= {tree.drop(path) for path in sorted(places, key=len, reverse=True)}
        if not found:
            return dropped
    tree.stop_if_wrong()
    return dropped


def _path_of(tree: Tree, pointer: str) -> KeyPath:
    path: KeyPath = ()
    for step in steps_of(pointer):
        number = isinstance(tree.get(path), list) and is_index(step)
        path = (*path, int(step) if number else step)
    return path


def _complain(tree: Tree, problem: Problem, path: KeyPath) -> None:
    keyword = problem.rule.rpartition("/")[2]
    if problem.message.startswith("unexpected member"):
        _unknown(tree, path)
        return
    part: Mapping[str, Any] = settings_schema.part_for(path) or {}
    if problem.message.startswith("the member's name"):
        holder = settings_schema.part_for(path[:-1]) or {}
        title = holder.get("propertyNames", {}).get("title", "a name")
        tree.complain(path, "the name is not usable", f"it must be {title}")
        return
    value, title = tree.get(path), part.get("title")
    secret = any(step in _SECRET for step in path)
    if path == ("ledger",) and str(value).partition(":")[0].lower() in _LATER:
        what = f"this version cannot keep the record in {str(value).partition(':')[0].lower()}: yet"
        tree.complain(path, what, f"write {title}")
    elif title and keyword in ("minProperties", "maxProperties"):
        tree.complain(path, "must hold one of env and file", f"write {title}")
    elif title and keyword in ("pattern", "type"):
        given = _kind(value) if secret or not isinstance(value, str) else quoted(value)
        what = "is not usable" if given == "a string" else f"must not be {given}"
        tree.complain(path, _tomlish(what), _meant(path, value) or f"write {title}")
    elif secret and keyword not in ("minItems", "minLength", "type"):
        tree.complain(path, "has no usable value", problem.hint)
    else:
        message = problem.message
        if keyword == "type" and secret:
            message = f"{message.partition(', not ')[0]}, not {_kind(value)}"
        tree.complain(path, _tomlish(message), _tomlish(_hint(problem, keyword, part, value)))


def _meant(path: KeyPath, value: Any) -> str:
    """What somebody meant who named the ledger's file; no other text is ever repeated."""
    found = _FILE.fullmatch(value) if path == ("ledger",) and isinstance(value, str) else None
    if found is None:
        return ""
    return f"did you mean {'jsonl' if found[1] == 'jsonl' else 'sqlite'}:{value}?"


def _kind(value: Any) -> str:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return "a number" if number else kind(value)


def _hint(problem: Problem, keyword: str, part: Mapping[str, Any], value: Any) -> str:
    """What to do: the schema's purpose of a key is good to know, but no fix by itself."""
    if keyword == "enum":
        near = nearest(value, part.get("enum", ()))
        return f"did you mean {quoted(near)}?" if near else "write one of them"
    if keyword in ("minimum", "maximum"):
        least, most = part.get("minimum"), part.get("maximum")
        return f"write {least} to {most}" if most is not None else f"write {least} or more"
    if problem.hint == "write it without quotes":
        return problem.hint
    if keyword == "type":
        wanted = part.get("type", "value")
        return _EXAMPLES.get(wanted if isinstance(wanted, str) else wanted[0], "mend it")
    return "fill it, or leave it out"


_EXAMPLES: Final = {
    "array": 'write ["…", "…"]',
    "boolean": "write true or false",
    "integer": "write a whole number",
    "number": 'write seconds, or a text such as "30s"',
    "object": "make it a table",
    "string": 'put it in quotes: "…"',
}


def _tomlish(text: str) -> str:
    for json_word, toml_word in (("an object", "a table"), ("a string", "a text")):
        text = text.replace(json_word, toml_word)
    return text


def _unknown(tree: Tree, path: KeyPath) -> None:
    name, above = str(path[-1]), path[:-1]
    known = list((settings_schema.part_for(above) or {}).get("properties", {}))
    near = nearest(name, known)
    close = [near] if near else difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    if close:
        hint = f"did you mean {close[0]}?"
    else:
        elsewhere = [key.path for key in settings_schema.every_key() if key.path[-1] == name]
        hint = f"did you mean {dotted(elsewhere[0])}?" if elsewhere else _listed(known)
    tree.complain(path, "unknown key", hint)


def _listed(known: list[str]) -> str:
    return f"leave it out; known here: {', '.join(known)}" if known else "leave it out"
