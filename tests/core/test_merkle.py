"""Merkle trees: the published vectors, and what must hold of trees of every size."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_envelope.core.merkle import (
    EMPTY,
    Frontier,
    complete_root,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    range_hash,
    subtrees,
    verify_consistency,
    verify_inclusion,
)

MOST = 130
LEAVES = [leaf_hash(b"line %d" % number) for number in range(MOST)]


def subtree(level: int, index: int) -> bytes:
    """The hash of a complete subtree of these leaves."""
    return complete_root(LEAVES[index << level : (index + 1) << level])


def roots() -> list[bytes]:
    """The root after each leaf."""
    frontier = Frontier()
    found = [frontier.root()]
    for leaf in LEAVES:
        frontier.add(leaf)
        found.append(frontier.root())
    return found


ROOTS = roots()


def published(vectors: Path, name: str) -> list[dict[str, Any]]:
    """The vectors of that file."""
    found: list[dict[str, Any]] = json.loads((vectors / "merkle" / name).read_bytes())
    assert len(found) == 98
    return found


def decoded(text: str | None) -> bytes:
    """What base64 says."""
    return base64.b64decode(text or "")


def test_the_published_inclusion_proofs(vectors: Path) -> None:
    """Each of transparency-dev/merkle, right and wrong ones (RFC 6962, 2.1.1)."""
    for one in published(vectors, "inclusion.json"):
        proof = [decoded(text) for text in one["proof"] or ()]
        leaf, root = decoded(one["leafHash"]), decoded(one["root"])
        holds = verify_inclusion(leaf, one["leafIdx"], one["treeSize"], proof, root)
        assert holds is not one["wantErr"], one["name"]


def test_the_published_consistency_proofs(vectors: Path) -> None:
    """The same (RFC 6962, 2.1.2)."""
    for one in published(vectors, "consistency.json"):
        proof = [decoded(text) for text in one["proof"] or ()]
        old, new = decoded(one["root1"]), decoded(one["root2"])
        holds = verify_consistency(one["size1"], one["size2"], proof, old, new)
        assert holds is not one["wantErr"], one["name"]


def test_the_empty_tree_has_the_root_that_the_rfc_gives_it() -> None:
    """The hash of nothing (RFC 6962, 2.1)."""
    assert ROOTS[0] == EMPTY == Frontier().root()
    assert ROOTS[1] == LEAVES[0]


@given(size=st.integers(1, MOST))
def test_a_frontier_is_the_subtrees_of_its_size(size: int) -> None:
    """So it can be put together again from what was kept of them."""
    nodes = [subtree(*place) for place in subtrees(size)]
    assert Frontier(size, nodes).root() == ROOTS[size] == range_hash(0, size, subtree)


@given(st.data())
def test_every_line_can_be_proven_and_no_other(data: st.DataObject) -> None:
    """In a tree of every size; a proof changed anywhere proves nothing."""
    size = data.draw(st.integers(1, MOST))
    index = data.draw(st.integers(0, size - 1))
    proof = inclusion_proof(index, size, subtree)
    assert verify_inclusion(LEAVES[index], index, size, proof, ROOTS[size])
    other = data.draw(st.integers(0, MOST - 1).filter(lambda number: number != index))
    assert not verify_inclusion(LEAVES[other], index, size, proof, ROOTS[size])
    assert not verify_inclusion(LEAVES[index], index, size, [*proof, EMPTY], ROOTS[size])
    for place in range(len(proof)):
        forged = [*proof[:place], EMPTY, *proof[place + 1 :]]
        assert not verify_inclusion(LEAVES[index], index, size, forged, ROOTS[size])
        assert not verify_inclusion(LEAVES[index], index, size, proof[:place], ROOTS[size])


@given(st.data())
def test_every_tree_begins_the_later_ones(data: st.DataObject) -> None:
    """And a proof changed anywhere proves nothing."""
    new = data.draw(st.integers(1, MOST))
    old = data.draw(st.integers(1, new))
    proof = consistency_proof(old, new, subtree)
    assert verify_consistency(old, new, proof, ROOTS[old], ROOTS[new])
    if old < new:
        assert not verify_consistency(old, new, proof, ROOTS[old - 1], ROOTS[new])
    for place in range(len(proof)):
        forged = [*proof[:place], EMPTY, *proof[place + 1 :]]
        assert not verify_consistency(old, new, forged, ROOTS[old], ROOTS[new])


def test_what_cannot_be_proven_is_refused() -> None:
    """Rather than answered with a proof of something else."""
    with pytest.raises(ValueError, match="has none with the number 5"):
        inclusion_proof(5, 5, subtree)
    for old, new in ((0, 5), (6, 5)):
        with pytest.raises(ValueError, match=f"no tree of {old}"):
            consistency_proof(old, new, subtree)
        assert not verify_consistency(old, new, [], EMPTY, EMPTY)
    with pytest.raises(ValueError, match="one hash for each bit"):
        Frontier(3, [EMPTY])
