"""Parts of a graph that lead to one another: where a schema recurses (Tarjan, 1972)."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def circles(
    starts: Iterable[int], neighbours: Callable[[int], Iterable[int]]
) -> list[tuple[int, ...]]:
    """What is reached from ``starts``, grouped; each group after those that it leads to.

    A group of one may still lead to itself.
    """
    order: dict[int, int] = {}
    lowest: dict[int, int] = {}
    closed: set[int] = set()
    waiting: list[int] = []
    found: list[tuple[int, ...]] = []
    for start in starts:
        path = [] if start in order else [(start, iter(neighbours(start)))]
        while path:
            here, targets = path[-1]
            if here not in order:
                order[here] = lowest[here] = len(order)
                waiting.append(here)
            for target in targets:
                if target not in order:
                    path.append((target, iter(neighbours(target))))
                    break
                if target not in closed:
                    lowest[here] = min(lowest[here], order[target])
            else:
                path.pop()
                if path:
                    above = path[-1][0]
                    lowest[above] = min(lowest[above], lowest[here])
                if lowest[here] == order[here]:
                    group = _close(here, waiting)
                    closed.update(group)
                    found.append(group)
    return found


def _close(root: int, waiting: list[int]) -> tuple[int, ...]:
    place = len(waiting) - 1
    while waiting[place] != root:
        place -= 1
    group = tuple(waiting[place:])
    del waiting[place:]
    return group
