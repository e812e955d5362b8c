"""Looking for the parts of a value that a schema refuses.

The engine's own list of errors is not used: it copies the value into each error, collects all
of them before it hands out the first, and grows exponentially under ``anyOf``. Here the engine
is asked for verdicts only, on subschemas and on single keywords, within a budget.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import orjson

from .errors import Problem
from .pointer import pointer_of
from .schema_bounds import Effort
from .schema_engine import Engine, Meter, Verdict
from .schema_map import Node, SchemaMap

_FREE_WORK: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class Refusal:
    """A value that a subschema is known to refuse, and where it stands.

    ``is_name`` if the value is a member's name; ``note`` is added to what is found.
    """

    node: Node
    value: Any
    path: tuple[str | int, ...] = ()
    is_name: bool = False
    note: str = ""


Found: TypeAlias = Iterator[Problem | Refusal]
Steps: TypeAlias = tuple[str | int, ...]


class Checks:
    """The checks of a schema's parts, compiled when they are first asked for, and kept."""

    def __init__(self, engine: Engine, schemas: SchemaMap, effort: Effort) -> None:
        self.engine = engine
        self.schemas = schemas
        self.effort = effort
        self._nodes: dict[int, Verdict] = {}
        self._keywords: dict[tuple[int, str], Verdict] = {}

    def of(self, node: Node) -> Verdict:
        """The check of a subschema."""
        found = self._nodes.get(node.index)
        if found is None:
            found = self._nodes[node.index] = self.engine.at(node.uri, node.pointer)
        return found

    def of_keyword(self, node: Node, keyword: str) -> Verdict:
        """The check of a keyword that looks at a value alone, not with other keywords."""
        key = (node.index, keyword)
        found = self._keywords.get(key)
        if found is None:
            schema, alone = node.schema, {keyword: node.schema[keyword]}
            exclusive = "exclusive" + keyword.capitalize()
            if isinstance(schema.get(exclusive), bool):  # draft 4
                alone[exclusive] = schema[exclusive]
            if keyword == "contains":
                alone[keyword] = self.engine.reference(node.uri, node.pointer + "/contains")
                alone |= {k: schema[k] for k in ("minContains", "maxContains") if k in schema}
            found = self._keywords[key] = self.engine.of(alone)
        return found


class Search:
    """One search, and what it may still spend."""

    def __init__(self, checks: Checks, meter: Meter, limit: int) -> None:
        self.checks = checks
        self.limit = limit
        self._meter = meter
        self._work = _FREE_WORK

    @property
    def is_over(self) -> bool:
        """Whether the budget is spent."""
        return self._work <= 0

    def start(self, value: Any) -> Refusal:
        """The refusal of the whole value; the budget grows with what one check of it costs."""
        whole = Refusal(self.checks.schemas.nodes[0], value)
        self._work += 8 * self._cost(whole)
        return whole

    def pay(self, refusal: Refusal) -> bool:
        """Spend what looking into a refusal costs; false where that is too much."""
        self._work -= self._cost(refusal)
        return not self.is_over

    def _cost(self, refusal: Refusal) -> int:
        try:
            size = len(orjson.dumps(refusal.value))
        except TypeError:
            size = 10_000
        effort = self.checks.effort.by_node.get(refusal.node.index, 1)
        return (size + 64) * (1 + effort // 8)

    def verdict(self, check: Verdict, value: Any) -> bool | None:
        """True, False, or None where a pattern gave up."""
        self._meter.exhausted = None
        accepted = check(value)
        return None if self._meter.gave_up() else accepted

    def accepts(self, schema: Any, value: Any) -> bool | None:
        """The verdict of a subschema, which may be true or false itself."""
        node = self.checks.schemas.node_of(schema) if isinstance(schema, dict) else None
        if node is None:
            return schema is not False
        return self.verdict(self.checks.of(node), value)

    def accepts_keyword(self, node: Node, keyword: str, value: Any) -> bool | None:
        """The verdict of a single keyword."""
        return self.verdict(self.checks.of_keyword(node, keyword), value)

    def below(self, above: Refusal, steps: Steps, value: Any, *down: str | int) -> Found:
        """What the subschema at ``steps`` refuses of a value that stands ``down`` from here."""
        schema: Any = above.node.schema
        for step in steps:
            schema = schema[step]
        path = (*above.path, *down)
        if schema is False:
            yield self.problem(above, "nothing may stand here", "leave it out", steps, path)
        elif self.accepts(schema, value) is not True:
            node = self.checks.schemas.node_of(schema)
            if node is not None:
                yield Refusal(node, value, path, above.is_name, above.note)

    def problem(
        self, refusal: Refusal, message: str, hint: str, steps: Steps, path: Steps | None = None
    ) -> Problem:
        """The problem that a rule of the refusing subschema makes of a place."""
        if refusal.is_name:
            message = f"the member's name: {message}"
        pointer = pointer_of(refusal.path if path is None else path)
        rule = f"{refusal.node.resource}#{refusal.node.pointer}{pointer_of(steps)}"
        return Problem(pointer, rule, message, "; ".join(t for t in (hint, refusal.note) if t))
