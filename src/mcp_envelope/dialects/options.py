"""What a caller may give for messages that lack what a target requires."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from mcp_envelope.core.errors import UsageError
from mcp_envelope.core.kind import method_flaw
from mcp_envelope.core.ports import Filling

from . import DIALECTS

#: The options of ``convert``: what they stand for.
OPTIONS: Final[Mapping[str, str]] = {
    "id": "the id of the request, or of the envelope where that has one of its own",
    "timestamp": "when it was sent, RFC 3339",
    "from_peer": "who sent it",
    "tool": "the tool (or prompt, or resource) that it is about",
    "method": "the MCP method that it answers",
    "correlation_id": "the id of the envelope that it answers",
    "tier": "the caller's tier: community, pro or enterprise",
    "tool_version": "the version of the tool, semantic",
    "version": "the version of the tool/1.0 envelope",
}
_SCHEMAS: Final = {
    "timestamp": ("tool/1.0", "request.schema.json", "timestamp"),
    "version": ("tool/1.0", "request.schema.json", "version"),
    "tier": ("tiered/1.0", "response.schema.json", "tier"),
    "tool_version": ("tiered/1.0", "response.schema.json", "tool_version"),
}
_GATEWAY: Final = "system:gateway"


def checked_filling(values: Mapping[str, str | None]) -> Filling:
    """The options that were given; UsageError for one that cannot be, needed or not."""
    given = {name: value for name, value in values.items() if value is not None}
    for name, value in values.items():
        if name not in OPTIONS:
            raise UsageError(f"unknown option {name!r}", hint=f"options: {', '.join(OPTIONS)}")
        if value is not None and not isinstance(value, str):
            raise UsageError(f"option {name} is a string, not {type(value).__name__}")
    for name, value in given.items():
        if not _fits(name, value):
            hint = f"it is {OPTIONS[name]}"
            raise UsageError(f"{value[:60]!r} cannot be the option {name}", hint=hint)
    return Filling(given)


def _fits(name: str, value: str) -> bool:
    if name in _SCHEMAS:
        dialect, file, member = _SCHEMAS[name]
        rule: dict[str, Any] = DIALECTS[dialect].schemas()[file].value["properties"][member]
        listed = "enum" not in rule or value in rule["enum"]
        # The patterns are anchored; here a line end behind the last character is no match either.
        return listed and ("pattern" not in rule or bool(re.fullmatch(rule["pattern"], value)))
    if name == "method":
        return method_flaw(value) is None
    return bool(value) and not (name == "from_peer" and value == _GATEWAY)
