"""What a schema consists of: its subschemas, where each applies, and what refers to what.

Made once when a schema is compiled, to bound it (:mod:`.schema_bounds`) and later to explain
refusals (:mod:`.schema_reasons`). It covers the union of all drafts: a keyword that a draft
does not know costs nothing more here than a little caution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .errors import ConfigError
from .pointer import pointer_of
from .schema_refs import NO_BASE, join, lookup, split

# Subschemas for the same value, for its members or elements, and for nobody until referred to.
_IN_PLACE: Final = frozenset({"not", "if", "then", "else"})
_IN_PLACE_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf"})
_IN_PLACE_MAPS: Final = frozenset({"dependentSchemas", "dependencies"})
_EVERY_MEMBER: Final = frozenset({"additionalProperties", "unevaluatedProperties"})
_EVERY_ITEM: Final = frozenset({"items", "additionalItems", "unevaluatedItems", "contains"})
_DEFINITIONS: Final = frozenset({"$defs", "definitions"})
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
#: What a reference may have beside it without being more than a reference.
BARE: Final = frozenset(
    {"$ref", "$id", "$schema", "$comment", "$defs", "definitions", "title", "description"}
    | {"default", "examples", "readOnly", "writeOnly", "deprecated"}
)
_BUILT_IN: Final = ("https://json-schema.org/draft/", "http://json-schema.org/draft")


@dataclass(slots=True, eq=False)
class Node:
    """A subschema that is an object, and which others apply to the same value or below it."""

    index: int
    schema: dict[str, Any]
    resource: str
    uri: str
    pointer: str
    base: str
    #: Whether the draft ignores what stands beside a ``$ref``.
    legacy: bool
    in_place: list[int] = field(default_factory=list)
    named: dict[str, list[int]] = field(default_factory=dict)
    every_member: list[int] = field(default_factory=list)
    indexed: dict[int, list[int]] = field(default_factory=dict)
    every_item: list[int] = field(default_factory=list)
    names: list[int] = field(default_factory=list)
    #: References by keyword; None is a schema that the engine has built in.
    targets: dict[str, list[int | bool | None]] = field(default_factory=dict)

    @property
    def unevaluated(self) -> bool:
        """Whether it asks what the rest of itself has looked at."""
        return "unevaluatedProperties" in self.schema or "unevaluatedItems" in self.schema


class SchemaMap:
    """The subschemas of a schema and of the resources that it may refer to.

    ``trees`` maps a resource's name (for messages) to its URI and value; the first is the
    schema itself, and of the others only those are walked that it leads to (``used``). Raises
    ConfigError for a reference that leads out of them.
    """

    def __init__(self, trees: Mapping[str, tuple[str, Any]], *, most: int) -> None:
        self.nodes: list[Node] = []
        self.patterns: dict[str, str] = {}
        self.key_patterns: set[str] = set()
        self.built_ins = False
        self._most = most
        self._known: dict[int, int] = {}
        self._roots: dict[str, tuple[str, str, str, Any]] = {}
        self._anchors: dict[tuple[str, str], int] = {}
        self._dynamic: dict[str, list[int]] = {}
        self.used: set[str] = set()
        self._waiting = {name: tree for name, (_, tree) in trees.items()}
        for name, (uri, tree) in trees.items():
            self._roots[uri] = (name, uri, "", tree)
        self._use(next(iter(trees)))
        linked = 0
        while linked < len(self.nodes):  # a reference may lead to places not walked before
            self._link(self.nodes[linked])
            linked += 1

    def node_of(self, schema: dict[str, Any]) -> Node | None:
        """The node of a subschema (the very object)."""
        index = self._known.get(id(schema))
        return None if index is None else self.nodes[index]

    def refuse(self, node: Node, keyword: str, what: str, hint: str) -> ConfigError:
        """The error for something wrong in a subschema."""
        place = node.pointer + pointer_of([keyword])
        return ConfigError(f"schema {node.resource}: {what}, at {place}", hint=hint)

    # -- walking -------------------------------------------------------------------------

    def _use(self, name: str) -> None:
        if name in self._waiting:
            self.used.add(name)
            tree = self._waiting.pop(name)
            uri = next(uri for uri, root in self._roots.items() if root[0] == name)
            self._walk((name, uri, "", is_legacy(tree)), uri, tree)

    def _walk(self, start: tuple[str, str, str, bool], base: str, tree: Any) -> None:
        resource, uri, pointer, legacy = start
        pending: list[tuple[str, str, Any]] = [(pointer, base, tree)]
        while pending:
            where, above, schema = pending.pop()
            if not isinstance(schema, dict) or id(schema) in self._known:
                continue
            if len(self.nodes) >= self._most:
                raise ConfigError(
                    f"schema {resource} has more than {self._most} subschemas",
                    hint="split it up, or raise the limit",
                )
            node = self._add(Node(len(self.nodes), schema, resource, uri, where, above, legacy))
            for steps, child in subschemas(schema):
                pending.append((where + pointer_of(steps), node.base, child))

    def _add(self, node: Node) -> Node:
        schema = node.schema
        own = id_of(schema)
        if own is not None and own.startswith("#"):
            self._anchors[node.base, own[1:]] = node.index
        elif own is not None and not (node.legacy and "$ref" in schema):
            node.base = join(node.base, split(own)[0])
            self._roots.setdefault(node.base, (node.resource, node.uri, node.pointer, schema))
        self.nodes.append(node)
        self._known[id(schema)] = node.index
        for keyword in ("$anchor", "$dynamicAnchor"):
            anchor = schema.get(keyword)
            if isinstance(anchor, str):
                self._anchors[node.base, anchor] = node.index
                if keyword == "$dynamicAnchor":
                    self._dynamic.setdefault(anchor, []).append(node.index)
        if schema.get("$recursiveAnchor") is True:
            self._dynamic.setdefault("", []).append(node.index)
        self._note_patterns(node)
        return node

    def _note_patterns(self, node: Node) -> None:
        pattern = node.schema.get("pattern")
        if isinstance(pattern, str):
            self.patterns.setdefault(pattern, f"{node.pointer}/pattern")
        keys = node.schema.get("patternProperties")
        for key in keys if isinstance(keys, dict) else ():
            self.patterns.setdefault(key, node.pointer + pointer_of(["patternProperties", key]))
            self.key_patterns.add(key)

    # -- linking -------------------------------------------------------------------------

    def _link(self, node: Node) -> None:
        for keyword in _REFERENCES:
            reference = node.schema.get(keyword)
            if isinstance(reference, str):
                targets = self._targets(node, keyword, reference)
                node.targets[keyword] = targets
                node.in_place += [t for t in targets if type(t) is int]
        for steps, child in subschemas(node.schema):
            index = self._known.get(id(child))
            if index is not None:
                _attach(node, steps, index)

    def _targets(self, node: Node, keyword: str, reference: str) -> list[int | bool | None]:
        relative, fragment = split(reference)
        uri = join(node.base, relative)
        found = self._find(node, keyword, reference, uri, fragment)
        if keyword == "$ref":
            return [found]
        others = self._dynamic.get(fragment if keyword == "$dynamicRef" else "", [])
        return [found, *(index for index in others if index != found)]

    def _find(
        self, node: Node, keyword: str, reference: str, uri: str, fragment: str
    ) -> int | bool | None:
        while uri not in self._roots and self._waiting:
            self._use(next(iter(self._waiting)))  # it may be the $id of a part of another
        root = self._roots.get(uri)
        if root is not None:
            self._use(root[0])
        elif uri.startswith(_BUILT_IN):
            self.built_ins = True
            return None
        else:
            raise self.refuse(
                node,
                keyword,
                f"{keyword} {reference[:200]!r} names nothing that is known here",
                "nothing is ever fetched, neither from the network nor from files: put what it "
                "names under $defs and refer to that",
            )
        if fragment and not fragment.startswith("/"):
            anchored = self._anchors.get((uri, fragment))
            if anchored is not None:
                return anchored
        else:
            target = self._at(root, fragment)
            if target is not None:
                return target
        raise self.refuse(
            node,
            keyword,
            f"{keyword} {reference[:200]!r} leads nowhere",
            "check the spelling of the pointer or anchor behind the '#'",
        )

    def _at(self, root: tuple[str, str, str, Any], pointer: str) -> int | bool | None:
        resource, uri, above, tree = root
        passed = lookup(tree, pointer)
        if passed is None or not isinstance(passed[-1], (dict, bool)):
            return None
        if isinstance(passed[-1], bool):
            return passed[-1]
        if id(passed[-1]) not in self._known:
            # Under a keyword that nobody knows. The nearest subschema above gives the base.
            above_it = [self._known[id(p)] for p in passed if id(p) in self._known]
            near = self.nodes[above_it[-1]] if above_it else None
            start = (resource, uri, above + pointer, near is not None and near.legacy)
            self._walk(start, near.base if near else uri, passed[-1])
        return self._known[id(passed[-1])]


def _attach(node: Node, steps: tuple[str | int, ...], index: int) -> None:
    keyword = str(steps[0])
    if keyword in _IN_PLACE | _IN_PLACE_LISTS | _IN_PLACE_MAPS:
        node.in_place.append(index)
    elif keyword == "properties":
        node.named.setdefault(str(steps[1]), []).append(index)
    elif keyword == "patternProperties" or keyword in _EVERY_MEMBER:
        node.every_member.append(index)
    elif keyword == "propertyNames":
        node.names.append(index)
    elif len(steps) == 2 and keyword not in _DEFINITIONS:
        node.indexed.setdefault(int(steps[1]), []).append(index)
    elif keyword in _EVERY_ITEM:
        node.every_item.append(index)


def subschemas(schema: dict[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The direct subschemas of a schema, each with the steps that lead to it."""
    for keyword, value in schema.items():
        if keyword in _IN_PLACE or keyword in _EVERY_MEMBER or keyword == "propertyNames":
            yield (keyword,), value
        elif keyword in _EVERY_ITEM or keyword in _IN_PLACE_LISTS or keyword == "prefixItems":
            if isinstance(value, list):
                for index, part in enumerate(value):
                    yield (keyword, index), part
            else:
                yield (keyword,), value
        elif isinstance(value, dict) and (
            keyword in ("properties", "patternProperties")
            or keyword in _IN_PLACE_MAPS
            or keyword in _DEFINITIONS
        ):
            for name, part in value.items():
                yield (keyword, name), part


def id_of(schema: Any) -> str | None:
    """The ``$id`` of a schema (draft 4: ``id``, known at the root only)."""
    own = schema.get("$id") if isinstance(schema, dict) else None
    if own is None and isinstance(schema, dict) and "draft-04" in str(schema.get("$schema", "")):
        own = schema.get("id")
    return own if isinstance(own, str) else None


def is_legacy(schema: Any) -> bool:
    """Whether a whole schema is of a draft before 2019-09."""
    declared = schema.get("$schema") if isinstance(schema, dict) else None
    return isinstance(declared, str) and "//json-schema.org/draft-0" in declared


def uri_of(tree: Any, fallback: str) -> str:
    """The URI under which a whole schema is registered."""
    own = id_of(tree)
    return fallback if own is None or own.startswith("#") else join(NO_BASE, split(own)[0])
