"""Work that goes on after its call was answered: its result is labelled when it comes.

A call answered with a task is ``accepted``. The result comes later, inside ``tasks/get``, as the
answer to ``tasks/result`` (2025-11-25), or in a ``notifications/tasks``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from mcp_envelope.core.bodies import Keeping, noted
from mcp_envelope.core.entry import unlabelled
from mcp_envelope.core.frame import Frame
from mcp_envelope.pipeline.record import LABEL

_MOST: Final = 10_000

Path = tuple[str, ...]
Facts = Mapping[str, Any]


class Tasks:
    """The facts about calls that were answered with a task, by the task's id."""

    def __init__(self) -> None:
        self._facts: OrderedDict[str, tuple[Facts, Keeping]] = OrderedDict()

    def accept(self, frame: Frame, facts: Facts, keeping: Keeping) -> None:
        """Remember a call, and what may be said of it, if it was answered with a task."""
        result = frame.value.get("result")
        task = result.get("task") if isinstance(result, dict) else None
        if isinstance(result, dict) and result.get("resultType") == "task":
            task = result
        name = task.get("taskId") if isinstance(task, dict) else None
        if isinstance(name, str):
            self._facts[name] = (facts, keeping)
            if len(self._facts) > _MOST:
                self._facts.popitem(last=False)

    def finished(self, asked: Frame, answer: Frame) -> tuple[Path, Facts] | None:
        """Where in an answer a task's result is, and what is known of its call."""
        name = asked.params.get("taskId")
        if asked.method == "tasks/result":
            return self._found(name, answer, ("result",))
        if asked.method == "tasks/get":
            return self._found(name, answer, ("result", "result"))
        return None

    def announced(self, frame: Frame) -> tuple[Path, Facts] | None:
        """The same for a notification that a task has ended."""
        if frame.method != "notifications/tasks":
            return None
        return self._found(frame.params.get("taskId"), frame, ("params", "result"))

    def _found(self, name: object, frame: Frame, path: Path) -> tuple[Path, Facts] | None:
        known = self._facts.get(name) if isinstance(name, str) else None
        result = frame.document.at("/" + "/".join(path))
        if known is None or result is None or not result.is_object:
            return None
        if not isinstance(result.value.get("_meta", {}), dict):
            return None
        facts, keeping = known
        output = noted(unlabelled(result, LABEL), "output", keeping)
        warnings = [*facts.get("warnings", ()), *output.warnings]
        told = {"output": output.body.as_json(), "warnings": warnings, "task": name}
        return (*path, "_meta", LABEL), {**facts, **told}
