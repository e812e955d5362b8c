"""Bounds on schemas: on their size, and on the work that matching against them can take.

The engine checks quickly what it checks once; but a schema of a few lines can make it check
the same value a billion times (``allOf`` of two references to the same ``allOf``, thirty levels
deep), go round in circles, or exhaust the stack. All of that shows in the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from .errors import ConfigError
from .schema_circles import circles
from .schema_map import BARE, Node, SchemaMap

#: Work below which an instance's size needs no look: 4 MiB of values stay under a second.
LIGHT: Final = 48
#: Work above which it is worth while to cut recursive references.
LABORIOUS: Final = 5_000
_MOST: Final = 10**15
_STEPS: Final = 300_000
_BUILT_IN_WORK: Final = 150
_CUT_WORK: Final = 40
_REFERENCE: Final = BARE | {"$dynamicRef", "$recursiveRef"}
_NO_CUTS: Final[Mapping[int, int]] = MappingProxyType({})
# Measured (jsonschema-rs 0.60): a subschema takes about 10 ns. Options of an enum are hashed
# where they are all strings or all integers, and compared one by one otherwise.
_SLOW_OPTIONS: Final = {float: 170, dict: 15, list: 15}


@dataclass(frozen=True, slots=True)
class SchemaLimits:
    """What a schema may be at most.

    ``effort`` counts subschemas that may be applied to one and the same place in a value;
    ``matching`` is that number times the places a value has (its characters count too, 64 for
    one place). ``pattern_steps`` bounds one call's work on patterns that need backtracking:
    characters times backtracks. ``chain`` is how many references and combinators may follow one
    another for one value, ``path`` the same counted through members and elements.
    """

    size: int = 1024 * 1024
    depth: int = 150
    subschemas: int = 10_000
    patterns: int = 500
    pattern_length: int = 8_192
    effort: int = 100_000
    matching: int = 200_000_000
    pattern_steps: int = 200_000_000
    chain: int = 100
    path: int = 400


class TooMuchWorkError(ConfigError):
    """A schema against which matching could take too long."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What matching takes: the most work at one place, and whether the schema is recursive."""

    most: int
    recursive: bool
    by_node: dict[int, int]


def measure(schemas: SchemaMap, limits: SchemaLimits, cuts: Mapping[int, int] = _NO_CUTS) -> Effort:
    """Bound the work that matching takes. Raises ConfigError, naming the place.

    ``cuts`` are the references (by node, to node) that are followed by ourselves, once for each
    part of a value.
    """
    if not schemas.nodes:
        return Effort(1, recursive=False, by_node={})
    return _Measurement(schemas, limits, cuts).run()


@dataclass(slots=True)
class _Place:
    """What applies together at one place of a value, once one subschema does."""

    weight: int = 0
    named: dict[str, dict[int, int]] = field(default_factory=dict)
    every_member: dict[int, int] = field(default_factory=dict)
    indexed: dict[int, dict[int, int]] = field(default_factory=dict)
    every_item: dict[int, int] = field(default_factory=dict)
    names: dict[int, int] = field(default_factory=dict)

    def targets(self) -> dict[int, None]:
        """What applies directly below."""
        groups = (*self.named.values(), *self.indexed.values())
        rest = (self.every_member, self.every_item, self.names)
        return {target: None for group in (*groups, *rest) for target in group}

    def most(self, work: Callable[[int], int]) -> int:
        """The most work at this place, or at one place below."""
        return min(_MOST, max(self.weight, self._below(work)))

    def branches(self, circle: frozenset[int]) -> int:
        """How many of these may apply to one and the same part of the value below."""
        return self._below(lambda target: int(target in circle))

    def _below(self, work: Callable[[int], int]) -> int:
        def total(group: dict[int, int]) -> int:
            return sum(count * work(target) for target, count in group.items())

        members = max((total(group) for group in self.named.values()), default=0)
        items = max((total(group) for group in self.indexed.values()), default=0)
        members += total(self.every_member)
        items += total(self.every_item)
        return max(members, items, total(self.names))


class _Measurement:
    def __init__(self, schemas: SchemaMap, limits: SchemaLimits, cuts: Mapping[int, int]) -> None:
        self._schemas = schemas
        self._nodes = schemas.nodes
        self._limits = limits
        self._cuts = cuts
        self._steps = 0
        self._chains: list[int] = [0] * len(self._nodes)
        self._meant: list[int] = []
        self._places: dict[int, _Place] = {}

    def run(self) -> Effort:
        self._check_chains()
        self._meant = [_meant(self._schemas, node, self._cuts) for node in self._nodes]
        entries = list(dict.fromkeys(self._meant[e] for e in (0, *self._cuts.values())))
        self._check_paths(entries)
        work, recursive = self._work_from(entries)
        most = max(work[entries[0]], sum(work[entry] for entry in entries[1:]))
        recursive = recursive or bool(self._cuts) or self._schemas.built_ins
        by_node = {i: work[meant] for i, meant in enumerate(self._meant) if meant in work}
        return Effort(most, recursive=recursive, by_node=by_node)

    def _work_from(self, entries: list[int]) -> tuple[dict[int, int], bool]:
        """The work at and below each place, and whether any of them comes again below itself."""
        work: dict[int, int] = {}
        recursive = False
        for group in circles(entries, self._below):
            inside = frozenset(group)
            places = [self._places[place] for place in group]
            most = max(place.most(lambda t: work.get(t, 0)) for place in places)
            if not all(inside.isdisjoint(place.targets()) for place in places):
                recursive = True
                # What recurses meets at one part with what else its neighbours apply there.
                heaviest = max(place.weight for place in places)
                most = min(_MOST, self._turns(inside) * (heaviest + most))
            for index in group:
                work[index] = most
                self._check_work(index, most)
        return work, recursive

    def _turns(self, circle: frozenset[int]) -> int:
        """How often one place may be matched because of a recursion.

        Every place on the way round multiplies by the alternatives that it recurses through.
        The engine remembers its verdicts on a recursion, but from the second turn on only.
        """
        once = 1
        for place in circle:
            once = min(_MOST, once * max(1, self._places[place].branches(circle)))
        return min(_MOST, once * once)

    def _check_work(self, index: int, work: int) -> None:
        if work > self._limits.effort:
            node = self._nodes[index]
            place = f", at {node.pointer}" if node.pointer else ""
            raise TooMuchWorkError(
                f"schema {node.resource}: one value may have to be matched against {_about(work)} "
                f"subschemas{place}",
                hint=f"at most {self._limits.effort} are allowed; refer to a definition once "
                "instead of several times for the same value",
            )

    def _check_paths(self, entries: list[int]) -> None:
        """Refuse what goes too far down before anything comes again: the stack has an end."""
        paths: dict[int, int] = {}
        for entry in entries:
            stack = [(entry, iter(self._below(entry)))] if entry not in paths else []
            open_ = {entry}
            while stack:
                here, targets = stack[-1]
                target = next((t for t in targets if t not in paths and t not in open_), None)
                if target is not None:
                    stack.append((target, iter(self._below(target))))
                    open_.add(target)
                    continue
                longest = max((paths.get(t, 0) for t in self._below(here)), default=0)
                paths[here] = longest + 1 + self._chains[here]
                if paths[here] > self._limits.path:
                    raise _too_much(
                        self._nodes[here],
                        "references and subschemas follow one another too far",
                        "make it flatter",
                    )
                open_.discard(stack.pop()[0])

    def _check_chains(self) -> None:
        """Refuse what goes round in place, or on for too long."""
        done: set[int] = set()
        for start in range(len(self._nodes)):
            stack = [(start, iter(self._nodes[start].in_place))] if start not in done else []
            open_ = {start}
            while stack:
                here, targets = stack[-1]
                target = next((t for t in targets if t not in done), None)
                if target is None:
                    open_.discard(stack.pop()[0])
                    done.add(here)
                    self._measure_chain(here)
                elif target in open_:
                    raise self._endless(here, target)
                else:
                    stack.append((target, iter(self._nodes[target].in_place)))
                    open_.add(target)

    def _measure_chain(self, index: int) -> None:
        node = self._nodes[index]
        longest = 1 + max((self._chains[t] for t in node.in_place), default=-1)
        self._chains[index] = longest
        if longest > self._limits.chain:
            raise _too_much(
                node,
                f"more than {self._limits.chain} references and combinators follow one another",
                "make it flatter",
            )

    def _endless(self, index: int, target: int) -> ConfigError:
        node = self._nodes[index]
        keyword = next(
            (k for k, t in node.targets.items() if any(type(i) is int and i == target for i in t)),
            "",
        )
        reference = f" ({keyword} {node.schema[keyword][:100]!r})" if keyword else ""
        return _too_much(
            node,
            f"the schema refers to itself{reference} without going down into the value, so "
            "matching would never end",
            "refer to it from properties, items or the like, or leave the reference out",
        )

    def _below(self, start: int) -> dict[int, None]:
        """What applies one level below, having found what applies at the place itself."""
        if start not in self._places:
            self._places[start] = self._gather(start)
        return self._places[start].targets()

    def _gather(self, start: int) -> _Place:
        counts = {start: 1}
        place = _Place()
        for index in self._reached(start):
            node, count = self._nodes[index], counts[index]
            self._step(node, 1 + len(node.in_place) + len(node.named) + len(node.indexed))
            place.weight = min(_MOST, place.weight + count * self._weight(node))
            # Which members are unevaluated takes another look at everything in place.
            passes = 3 if node.unevaluated else 1
            for target in self._in_place(index):
                counts[target] = min(_MOST, counts.get(target, 0) + passes * count)
            for name, targets in node.named.items():
                self._add(place.named.setdefault(name, {}), targets, count)
            for position, targets in node.indexed.items():
                self._add(place.indexed.setdefault(position, {}), targets, count)
            self._add(place.every_member, node.every_member, count)
            self._add(place.every_item, node.every_item, count)
            self._add(place.names, node.names, count)
        return place

    def _add(self, group: dict[int, int], targets: list[int], count: int) -> None:
        for target in targets:
            meant = self._meant[target]
            group[meant] = min(_MOST, group.get(meant, 0) + count)

    def _in_place(self, index: int) -> list[int]:
        targets = self._nodes[index].in_place
        if index in self._cuts:
            targets = [target for target in targets if target != self._cuts[index]]
        return targets

    def _weight(self, node: Node) -> int:
        return _weight(node) + (_CUT_WORK if node.index in self._cuts else 0)

    def _reached(self, start: int) -> list[int]:
        """What applies at the place of a node: itself first, each before what it applies."""
        reached, pending, done = [], [(start, iter(self._in_place(start)))], {start}
        while pending:
            here, targets = pending[-1]
            target = next((t for t in targets if t not in done), None)
            if target is None:
                reached.append(here)
                pending.pop()
            else:
                done.add(target)
                pending.append((target, iter(self._in_place(target))))
        return reached[::-1]

    def _step(self, node: Node, steps: int) -> None:
        self._steps += steps
        if self._steps > _STEPS:
            raise _too_much(node, "the schema is too entangled to bound", "make it simpler")


def _meant(schemas: SchemaMap, node: Node, cuts: Mapping[int, int]) -> int:
    """The node that a bare reference stands for, else the node itself."""
    while node.index not in cuts and len(node.in_place) == 1 and _REFERENCE.issuperset(node.schema):
        node = schemas.nodes[node.in_place[0]]
    return node.index


def _weight(node: Node) -> int:
    schema = node.schema
    weight = 1 + _enum_weight(schema.get("enum"))
    for keyword, unit in (("required", 8), ("patternProperties", 1), ("properties", 64)):
        weight += len(schema[keyword]) // unit if _is_sized(schema.get(keyword)) else 0
    for keyword in ("dependentRequired", "dependencies"):
        lists = schema.get(keyword)
        for names in lists.values() if isinstance(lists, dict) else ():
            weight += len(names) // 8 if _is_sized(names) else 0
    if isinstance(schema.get("pattern"), str):
        weight += 5
    built_in = sum(None in targets for targets in node.targets.values())
    return weight + built_in * _BUILT_IN_WORK


def _enum_weight(options: Any) -> int:
    if not isinstance(options, list):
        return 0
    kinds = {type(option) for option in options}
    if len(kinds) == 1 and kinds <= {str, int}:
        return 1
    return sum(_SLOW_OPTIONS.get(type(option), 1) for option in options)


def _is_sized(value: Any) -> bool:
    return isinstance(value, (list, dict))


def _about(number: int) -> str:
    return str(number) if number < 1_000_000 else "millions of"


def _too_much(node: Node, what: str, hint: str) -> ConfigError:
    place = f", at {node.pointer}" if node.pointer else ""
    return ConfigError(f"schema {node.resource}: {what}{place}", hint=hint)
