"""References at which a recursive schema is cut, so that nothing is matched twice.

The engine remembers its verdicts on recursive references, but only from the second turn of a
recursion on: alternatives that recurse through the same member, in a circle of sixteen
definitions, take it minutes on thirty brackets. Where a schema is like that, we follow its
recursive references ourselves, and match each part of a value once against each definition.
"""

from __future__ import annotations

from typing import Final

from .schema_circles import circles
from .schema_map import BARE, Node, SchemaMap

#: Stands in place of a ``$ref`` that was cut, with the index of the target, and the reference.
CUT: Final = "x-mcp-envelope-cut"
_DYNAMIC: Final = ("$dynamicRef", "$recursiveRef")


def find_cuts(schemas: SchemaMap) -> dict[int, int]:
    """The references that may be cut: the node of each, and that of its target."""
    if any(keyword in node.targets for node in schemas.nodes for keyword in _DYNAMIC):
        return {}  # what these mean depends on the way that led to them
    groups = circles(range(len(schemas.nodes)), lambda index: _neighbours(schemas.nodes[index]))
    circle_of = {index: number for number, group in enumerate(groups) for index in group}
    seen_from_above = _seen_by_unevaluated(schemas.nodes)
    cuts = {}
    for node in schemas.nodes:
        target = next((t for t in node.targets.get("$ref", ()) if type(t) is int), None)
        if target is None or circle_of[target] != circle_of[node.index]:
            continue
        if node.index in seen_from_above or (node.legacy and not BARE.issuperset(node.schema)):
            continue
        cuts[node.index] = target
    return cuts


def apply_cuts(schemas: SchemaMap, cuts: dict[int, int]) -> None:
    """Replace the references in the schemas themselves."""
    for index, target in cuts.items():
        schema = schemas.nodes[index].schema
        schema[CUT] = [target, schema.pop("$ref")]


def _seen_by_unevaluated(nodes: list[Node]) -> set[int]:
    """The nodes whose findings an ``unevaluatedProperties`` or ``…Items`` asks for."""
    pending = [node.index for node in nodes if node.unevaluated]
    found = set(pending)
    while pending:
        fresh = [t for t in nodes[pending.pop()].in_place if t not in found]
        found.update(fresh)
        pending += fresh
    return found


def _neighbours(node: Node) -> list[int]:
    groups = (*node.named.values(), *node.indexed.values())
    rest = (node.in_place, node.every_member, node.every_item, node.names)
    return [target for group in (*groups, *rest) for target in group]
