"""What the operator decided about one upstream, in the form that the way of a call needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from mcp_envelope.core.link import Upstream

OutputMode = Literal["off", "warn", "strict"]
LabelMode = Literal["meta", "off"]
UnknownTools = Literal["refuse", "pass"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What holds for the calls of an upstream, or of one of its tools.

    ``timeout`` in seconds and ``concurrency`` are without bound where they are 0.
    """

    check_input: bool = True
    check_output: OutputMode = "warn"
    label: LabelMode = "meta"
    timeout: float = 0.0
    concurrency: int = 0


_NONE: Final[Mapping[str, Rules]] = MappingProxyType({})
_USUAL: Final = Rules()


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One upstream behind the doors, and the rules for it.

    ``tools`` holds complete rules for single tools, by the name that the upstream gives them.
    ``concurrency`` of ``rules`` bounds the upstream as a whole, that of a tool's the tool.
    """

    upstream: Upstream
    rules: Rules = _USUAL
    tools: Mapping[str, Rules] = field(default_factory=lambda: _NONE)
    unknown_tools: UnknownTools = "refuse"

    @property
    def name(self) -> str:
        """The upstream's name."""
        return self.upstream.name

    def rules_for(self, tool: str | None) -> Rules:
        """The rules that hold for one tool, or for what is no tool call."""
        return self.tools.get(tool, self.rules) if tool is not None else self.rules
