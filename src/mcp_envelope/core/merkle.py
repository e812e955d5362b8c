"""Merkle trees over the lines of a ledger, as RFC 6962 (section 2.1) defines them.

Nothing here reads lines: whoever holds them hands over their leaf hashes, or a function that
gives the hash of a complete subtree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final

#: The root of the tree without leaves.
EMPTY: Final = sha256(b"").digest()
#: The hash of the complete subtree ``(level, index)``: of the leaves from ``index << level`` on,
#: ``1 << level`` of them.
Subtree = Callable[[int, int], bytes]


def leaf_hash(data: bytes) -> bytes:
    """The hash of a leaf."""
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of a node above two others."""
    return sha256(b"\x01" + left + right).digest()


class Frontier:
    """The least that has to be kept of a tree in order to add leaves and to know its root.

    ``nodes`` are the hashes of the complete subtrees that the tree consists of, largest first:
    one for each bit that is set in ``size``.
    """

    __slots__ = ("nodes", "size")

    def __init__(self, size: int = 0, nodes: Iterable[bytes] = ()) -> None:
        self.size = size
        self.nodes = list(nodes)
        if size < 0 or len(self.nodes) != size.bit_count():
            raise ValueError("a frontier has one hash for each bit that is set in its size")

    def add(self, leaf: bytes) -> None:
        """Add a leaf by its hash."""
        nodes = self.nodes
        rest = self.size
        while rest & 1:
            leaf = sha256(b"\x01" + nodes.pop() + leaf).digest()
            rest >>= 1
        nodes.append(leaf)
        self.size += 1

    def root(self) -> bytes:
        """The root hash of the tree so far."""
        if not self.nodes:
            return EMPTY
        found = self.nodes[-1]
        for left in reversed(self.nodes[:-1]):
            found = node_hash(left, found)
        return found

    def copy(self) -> Frontier:
        """One that goes on separately."""
        return Frontier(self.size, self.nodes)


def subtrees(size: int) -> Iterator[tuple[int, int]]:
    """The complete subtrees ``(level, index)`` that a tree of ``size`` leaves consists of."""
    begin = 0
    for level in range(size.bit_length() - 1, -1, -1):
        if size >> level & 1:
            yield level, begin >> level
            begin += 1 << level


def complete_root(leaves: Sequence[bytes]) -> bytes:
    """The root over leaf hashes whose number is a power of two."""
    row: Sequence[bytes] = leaves
    while len(row) > 1:
        row = [node_hash(row[i], row[i + 1]) for i in range(0, len(row), 2)]
    return row[0]


def range_hash(begin: int, end: int, subtree: Subtree) -> bytes:
    """The hash of a node over the leaves from ``begin`` to before ``end``.

    ``begin`` has to be a place where such a node can begin, as it is in proofs.
    """
    width = end - begin
    if width & (width - 1) == 0:
        level = width.bit_length() - 1
        return subtree(level, begin >> level)
    cut = begin + (1 << (width.bit_length() - 1))
    return node_hash(range_hash(begin, cut, subtree), range_hash(cut, end, subtree))


def inclusion_proof(index: int, size: int, subtree: Subtree) -> list[bytes]:
    """What shows that a leaf is in the tree of ``size`` leaves (RFC 6962, section 2.1.1)."""
    if not 0 <= index < size:
        raise ValueError(f"a tree of {size} leaves has none with the number {index}")
    places: list[tuple[int, int]] = []
    begin, end = 0, size
    while end - begin > 1:
        cut = begin + _largest_power_below(end - begin)
        if index < cut:
            places.append((cut, end))
            end = cut
        else:
            places.append((begin, cut))
            begin = cut
    return [range_hash(*place, subtree) for place in reversed(places)]


def consistency_proof(old: int, new: int, subtree: Subtree) -> list[bytes]:
    """What shows that the tree of ``old`` leaves begins that of ``new`` (section 2.1.2)."""
    if not 0 < old <= new:
        raise ValueError(f"no tree of {old} leaves begins one of {new}")
    places: list[tuple[int, int]] = []
    begin, end, is_whole = 0, new, True
    while old != end:
        cut = begin + _largest_power_below(end - begin)
        if old <= cut:
            places.append((cut, end))
            end = cut
        else:
            places.append((begin, cut))
            begin, is_whole = cut, False
    if not is_whole:
        places.append((begin, end))
    return [range_hash(*place, subtree) for place in reversed(places)]


def verify_inclusion(
    leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes
) -> bool:
    """Whether a proof shows that this leaf hash is number ``index`` of the tree."""
    if not 0 <= index < size or len(leaf) != len(EMPTY):
        return False
    found, last = leaf, size - 1
    for other in proof:
        if last == 0 or len(other) != len(EMPTY):
            return False
        if index & 1 or index == last:
            found = node_hash(other, found)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            found = node_hash(found, other)
        index, last = index >> 1, last >> 1
    return last == 0 and found == root


def verify_consistency(
    old: int, new: int, proof: Sequence[bytes], old_root: bytes, new_root: bytes
) -> bool:
    """Whether a proof shows that the tree of ``old`` leaves begins that of ``new``."""
    if not 0 < old <= new or any(len(one) != len(EMPTY) for one in proof):
        return False
    if old == new:
        return not proof and old_root == new_root
    steps = list(proof)
    if old & (old - 1) == 0:
        steps.insert(0, old_root)
    if not steps:
        return False
    index, last = old - 1, new - 1
    while index & 1:
        index, last = index >> 1, last >> 1
    found_old = found_new = steps[0]
    for other in steps[1:]:
        if last == 0:
            return False
        if index & 1 or index == last:
            found_old = node_hash(other, found_old)
            found_new = node_hash(other, found_new)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            found_new = node_hash(found_new, other)
        index, last = index >> 1, last >> 1
    return last == 0 and found_old == old_root and found_new == new_root


def _largest_power_below(width: int) -> int:
    return 1 << ((width - 1).bit_length() - 1)
