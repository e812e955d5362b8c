"""Schemas of the envelope and of tools, from a folder or from memory, compiled when needed.

A folder is looked at anew at each call: a changed file counts at once, without a restart. Equal
schemas are compiled once, however many tools have them.
"""

from __future__ import annotations

import difflib
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias
from weakref import WeakValueDictionary

from mcp_envelope import dialects
from mcp_envelope.core.errors import ConfigError, EnvelopeError
from mcp_envelope.core.schema import SchemaCheck, SchemaLimits, compile_schema, fingerprint

from .files import Stamp, inside, read_schema, stamp_of
from .tool_io import Member, ToolIO, ToolSide

__all__ = ["SchemaRegistry", "ToolIO", "ToolSide"]

Schemas: TypeAlias = Mapping[str, tuple[object, object | None]]

_ENVELOPE: Final = "envelope.schema.json"
_TOOL_IO: Final = "tool_io.schema.json"
_OURS: Final = Path(dialects.__file__).parent / "schemas" / "jsonrpc-2.0" / _ENVELOPE
_NAMES: Final = {_OURS: f"jsonrpc-2.0/{_ENVELOPE}"}
_LIMITS: Final = SchemaLimits()
# File systems tell time in steps, of up to two seconds: so long after a change, another one may
# leave the same stamp, and the file is read again to be sure.
_SETTLED_NS: Final = 2_000_000_000


@dataclass(frozen=True, slots=True)
class _Read:
    """A compiled file, the stamp that it had, and whether that was old when it was read."""

    stamp: Stamp
    fingerprint: str
    check: SchemaCheck
    settled: bool


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A tool's checks, and the files that they were made from."""

    found: ToolIO
    paths: tuple[Path, ...] = ()
    stamps: tuple[Stamp, ...] = ()
    settled: bool = True


class SchemaRegistry:
    """Compiled schemas by what they are for.

    ``schema_root`` is a folder that may hold ``envelope.schema.json`` (else ours serves),
    ``tools/<tool id>.input.schema.json``, ``tools/<tool id>.output.schema.json`` (``:`` in an id
    is ``_`` in the name, ``/`` a folder) and ``tool_io.schema.json`` for tools without their own.

    A file that cannot be used raises ConfigError, naming file and place, at each load until it
    is mended; checks that were handed out before stay as they are. With ``on_broken`` the
    error goes there instead, once for each change of the file, and as long as a file was good
    before, that one goes on to serve: for a gateway that must not stop for half a saved file.
    """

    def __init__(
        self,
        schema_root: str | os.PathLike[str] | None = None,
        *,
        limits: SchemaLimits = _LIMITS,
        on_broken: Callable[[ConfigError], None] | None = None,
    ) -> None:
        self._root = Path(schema_root) if schema_root is not None else None
        if self._root is not None and not self._root.is_dir():
            raise ConfigError(f"schema_root {self._root} is no folder", hint="create it")
        self._limits = limits
        self._on_broken = on_broken
        self._lock = threading.RLock()
        self._compiled: WeakValueDictionary[str, SchemaCheck] = WeakValueDictionary()
        self._files: dict[tuple[Path, str], _Read] = {}
        self._broken: dict[Path, Stamp] = {}
        self._tools: dict[str, _Loaded] = {}
        self._given: Schemas = {}

    @classmethod
    def from_tools(cls, tools: Schemas, *, limits: SchemaLimits = _LIMITS) -> SchemaRegistry:
        """A registry of tools in memory: input schema, and output schema or None, by tool id.

        A schema is compiled when its tool is first loaded, and raises ConfigError then.
        """
        registry = cls(limits=limits)
        registry._given = dict(tools)
        return registry

    def load_envelope(self) -> SchemaCheck:
        """The check of request envelopes."""
        own = self._root / _ENVELOPE if self._root is not None else None
        with self._lock:
            if own is not None and (read := self._load(own)) is not None:
                return read.check
            ours = self._load(_OURS)
        if ours is None:
            raise ConfigError(f"{_OURS} is missing", hint="install mcp-envelope anew")
        return ours.check

    def load_tool_io(self, tool_id: str) -> ToolIO:
        """The checks of a tool's calls. KeyError for a tool without schemas.

        The same object until a file changes.
        """
        if self._root is None:
            return self._load_given(tool_id)
        known = self._tools.get(_id(tool_id))
        if known is not None:
            stamps = tuple(stamp_of(path) for path in known.paths)
            if known.settled and known.stamps == stamps:
                return known.found
        with self._lock:
            return self._load_files(self._root, tool_id)

    # -- in memory -----------------------------------------------------------------------

    def _load_given(self, tool_id: str) -> ToolIO:
        known = self._tools.get(_id(tool_id))
        if known is not None:
            return known.found
        if tool_id not in self._given:
            near = difflib.get_close_matches(tool_id[:200], self._given, n=1)
            suggestion = f"; did you mean {near[0]!r}?" if near else ""
            raise KeyError(f"no tool {_cut(tool_id)}{suggestion}")
        with self._lock:
            sides = [
                self._given_side(tool_id, member, schema)
                for member, schema in zip(_MEMBERS, self._given[tool_id], strict=True)
            ]
            found = self._tools[tool_id] = _Loaded(_together(tool_id, *sides))
            return found.found

    def _given_side(self, tool_id: str, member: Member, schema: object) -> ToolSide:
        name = f"{tool_id}.{member}"
        if schema is None:
            return ToolSide(tool_id, member, None, name)
        try:
            mark = fingerprint(schema)
        except EnvelopeError as error:
            raise ConfigError(f"schema {name} cannot be read: {error}") from None
        return ToolSide(tool_id, member, self._compile(schema, mark, name), name, mark)

    # -- in a folder ---------------------------------------------------------------------

    def _load_files(self, root: Path, tool_id: str) -> ToolIO:
        try:
            paths = _paths_of(root, tool_id)
            stamps = tuple(stamp_of(path) for path in paths)
            settled = _is_settled(*stamps)
            if not any(stamps):
                names = ", ".join(path.name[:100] for path in paths)
                raise KeyError(f"no tool {_cut(tool_id)}: there is none of {names}")
        except KeyError:
            self._tools.pop(tool_id, None)
            raise
        *own, shared = paths
        sides = [
            self._side(tool_id, member, path, shared)
            for member, path in zip(_MEMBERS, own, strict=True)
        ]
        found, known = _together(tool_id, *sides), self._tools.get(tool_id)
        if known is not None and known.found == found:
            found = known.found
        self._tools[tool_id] = _Loaded(found, paths, stamps, settled)
        return found

    def _side(self, tool_id: str, member: Member, own: Path, shared: Path) -> ToolSide:
        read = self._load(own)
        if read is not None:
            return ToolSide(tool_id, member, read.check, own.name, read.fingerprint)
        read = self._load(shared, member)
        if read is not None:
            return ToolSide(tool_id, member, read.check, shared.name, read.fingerprint, whole=True)
        return ToolSide(tool_id, member, None, own.name)

    def _load(self, path: Path, member: str = "") -> _Read | None:
        """The compiled schema of a file, None if there is none.

        With a member, the file describes whole calls, and is wanted for this side of them.
        """
        stamp, known = stamp_of(path), self._files.get((path, member))
        if stamp is None:
            self._files.pop((path, member), None)
            return None
        if known is not None and known.settled and known.stamp == stamp:
            return known
        settled = _is_settled(stamp)
        try:
            schema, stamp = read_schema(path, self._limits.size)
            schema = _one_side(schema, member) if member else schema
            mark = fingerprint(schema)
            check = self._compile(schema, mark, _NAMES.get(path, path.name), f"in {path}: ")
        except ConfigError as error:
            if self._on_broken is None or known is None:
                raise
            if self._broken.get(path) != stamp:
                self._broken[path] = stamp
                self._on_broken(error)
            return known
        self._broken.pop(path, None)
        found = self._files[path, member] = _Read(stamp, mark, check, settled)
        return found

    def _compile(self, schema: object, mark: str, name: str, where: str = "") -> SchemaCheck:
        found = self._compiled.get(mark)
        if found is None:
            try:
                found = compile_schema(schema, name=name, limits=self._limits)
            except ConfigError as error:
                raise ConfigError(f"{where}{error.message}", hint=error.hint) from None
            self._compiled[mark] = found
        return found


def _paths_of(root: Path, tool_id: str) -> tuple[Path, ...]:
    name = tool_id.replace(":", "_")
    found = [inside(root / "tools", f"{name}.{member}.schema.json") for member in _MEMBERS]
    paths = [path for path in found if path is not None]
    if len(paths) < len(found) or not tool_id:
        raise KeyError(f"no tool {_cut(tool_id)}: this id names no file in the schema folder")
    return (*paths, root / _TOOL_IO)


def _together(tool_id: str, given: ToolSide, returned: ToolSide) -> ToolIO:
    mark = fingerprint([given.fingerprint, returned.fingerprint])
    return ToolIO(tool_id, given, returned, mark)


def _is_settled(*stamps: Stamp) -> bool:
    now = time.time_ns()
    return all(stamp is None or now - stamp[0] > _SETTLED_NS for stamp in stamps)


def _id(tool_id: object) -> str:
    if not isinstance(tool_id, str):
        raise KeyError(f"no tool {_cut(tool_id)}: a tool's id is a string")
    return tool_id


_MEMBERS: Final[tuple[Member, Member]] = ("input", "output")


def _one_side(schema: Any, member: str) -> Any:
    """A schema of whole calls that neither requires nor looks at the other side."""
    if not isinstance(schema, dict):
        return schema
    other = "output" if member == "input" else "input"
    changed = dict(schema)
    if isinstance(schema.get("required"), list):
        changed["required"] = [name for name in schema["required"] if name != other]
    if isinstance(schema.get("properties"), dict) and other in schema["properties"]:
        changed["properties"] = {**schema["properties"], other: True}
    return changed


def _cut(name: object) -> str:
    return repr(name)[:100]
