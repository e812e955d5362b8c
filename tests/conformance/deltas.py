"""Compares two runs of the conformance suite, check by check."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from .suite import Check, Outcome, Outcomes

RECORD = "dev.mcp-envelope/record"
ABSENT = Outcome("ABSENT")
# What differs from run to run whoever answers.
_VOLATILE = (
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z?"), "<time>"),
    (re.compile(r"(127\.0\.0\.1|localhost):\d+"), "<address>"),
    (re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"), "<id>"),
    (re.compile(r"\b1[789]\d{11}\b"), "<milliseconds>"),
    (re.compile(r"v\d+\.[\w.-]{40,}"), "<sealed>"),
)


@dataclass(frozen=True)
class Delta:
    """A check that did not say the same directly and through."""

    check: Check
    direct: Outcome
    through: Outcome
    kind: str  # "worse", "flaky", "differs" (in its status) or "details" (in what it saw)

    def __str__(self) -> str:
        change = f"{self.direct.status} → {self.through.status}"
        if self.kind == "details":
            return (
                f"{self.kind:<8} {self.check}\n         direct:  {shown(self.direct)}"
                f"\n         through: {shown(self.through)}"
            )
        saw = f"\n         saw: {shown(self.through)}" if self.through.details else ""
        return f"{self.kind:<8} {self.check}: {change}: {self.through.message[:400]}{saw}"


def compare(direct: Outcomes, through: Outcomes, again: Outcomes | None = None) -> list[Delta]:
    """Where ``through`` is not what ``direct`` is; ``again`` is a second direct run.

    A check is *worse* where it is SUCCESS directly and anything else through; but where two
    direct runs do not agree it is *flaky*, and says nothing.
    """
    found = []
    for check in sorted(direct.keys() | through.keys() | (again or {}).keys()):
        here, there = direct.get(check, ABSENT), through.get(check, ABSENT)
        repeated = here if again is None else again.get(check, ABSENT)
        if kind := _kind(here, there, repeated):
            found.append(Delta(check, here, there, kind))
    return found


def shown(outcome: Outcome) -> str:
    """What a check saw, without what differs in any two runs."""
    text = json.dumps(_without_record(outcome.details), sort_keys=True, ensure_ascii=False)
    for pattern, instead in _VOLATILE:
        text = pattern.sub(instead, text)
    return text[:1500]


def _kind(here: Outcome, there: Outcome, repeated: Outcome) -> str | None:
    if here.status != repeated.status:
        return "flaky"
    if here.status != there.status:
        return "worse" if here.status == "SUCCESS" else "differs"
    if shown(here) != shown(repeated) or shown(here) == shown(there):
        return None
    return "details"


def _without_record(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_record(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {name: _without_record(item) for name, item in value.items() if name != RECORD}
    if RECORD in value.get("_meta", {}) and not kept["_meta"]:
        del kept["_meta"]
    return kept
