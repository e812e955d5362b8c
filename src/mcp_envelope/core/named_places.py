"""The places that an operator names, as a tree of steps."""

from __future__ import annotations

from typing import Any

from .pointer import steps_of

#: Steps of an operator's pointers, below which others stand; None ends one.
Node = dict[str | None, Any]
Nodes = tuple[Node, ...]


def trie_of(pointers: tuple[str, ...]) -> dict[str, Node]:
    """The trees, by the side that they are about."""
    root: Node = {}
    for pointer in pointers:
        here = root
        for step in steps_of(pointer):
            here = here.setdefault(step, {})
        here[None] = True
    return {side: node for side, node in root.items() if side is not None}


def below(nodes: Nodes, step: str) -> Nodes:
    """What is below one step."""
    return tuple(node[one] for node in nodes for one in (step, "*") if one in node)


def ends(nodes: Nodes) -> bool:
    """Whether a pointer ends here."""
    return any(None in node for node in nodes)
