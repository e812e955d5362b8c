"""Checks of a tool call's ``{tool, input, output}`` object against the tool's schemas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from mcp_envelope.core.document import Document, dump
from mcp_envelope.core.errors import EnvelopeError, Problem
from mcp_envelope.core.schema import SchemaCheck

Member = Literal["input", "output"]

_CODES: Final[dict[str, str]] = {"input": "INVALID_TOOL_INPUT", "output": "INVALID_TOOL_OUTPUT"}
_RULES: Final = "jsonrpc-2.0/tool_io.schema.json#"


@dataclass(frozen=True, slots=True)
class ToolSide:
    """The check of one side of a call. It takes the whole ``{tool, input, output}`` object.

    ``problems`` and ``validate`` take documents, too; ``accepts``, for hot paths, plain values.

    ``tool`` must name this very tool, and the side's member must be an object that satisfies
    the tool's schema; the other side is not looked at. ``validator`` is the compiled schema,
    the same object for all tools with an equal schema; ``whole`` if it describes the whole
    object and not the member alone; None if any object will do.
    """

    tool: str
    member: Member
    validator: SchemaCheck | None
    name: str
    fingerprint: str | None = None
    whole: bool = False

    def accepts(self, instance: Any) -> bool:
        """Whether this side of the object is right."""
        if not isinstance(instance, dict) or instance.get("tool") != self.tool:
            return False
        part = instance.get(self.member)
        if not isinstance(part, dict):
            return False
        return self.validator is None or self.validator.accepts(instance if self.whole else part)

    def problems(self, instance: Any, limit: int = 20) -> list[Problem]:
        """What is wrong with this side: nothing if it is accepted, else up to ``limit``."""
        instance = _plain(instance)
        found = list(self._shape(instance))
        usable = isinstance(instance, dict) and isinstance(instance.get(self.member), dict)
        if usable and self.validator is not None:
            part = instance if self.whole else instance[self.member]
            found += [self._placed(each) for each in self.validator.problems(part, limit)]
        return found[:limit]

    def validate(self, instance: Any) -> None:
        """Raise EnvelopeError, with all problems, if this side is not accepted.

        INVALID_TOOL_INPUT or INVALID_TOOL_OUTPUT; INVALID_ENVELOPE for another tool's object.
        """
        instance = _plain(instance)
        if self.accepts(instance):
            return
        found = self.problems(instance)
        first = found[0]
        astray = not isinstance(instance, dict) or first.pointer == "/tool"
        raise EnvelopeError(
            first.message,
            code="INVALID_ENVELOPE" if astray else _CODES[self.member],
            problems=found,
            pointer=first.pointer,
            hint=first.hint,
        )

    def _shape(self, instance: Any) -> list[Problem]:
        member = self.member
        if not isinstance(instance, dict):
            hint = f'send {{"tool": …, "{member}": …}}'
            return [Problem("", f"{_RULES}/type", "must be an object", hint)]
        found = []
        tool = instance.get("tool")
        if "tool" not in instance:
            found.append(_missing("tool", f'add it: "tool": "{self.tool}"'))
        elif tool != self.tool:
            said = f'"{tool[:60]}"' if isinstance(tool, str) else "something else"
            message = f'must be "{self.tool}", the tool that was asked for, and is {said}'
            hint = f'call {said}, or make it "{self.tool}"' if isinstance(tool, str) else ""
            found.append(Problem("/tool", f"{_RULES}/properties/tool", message, hint))
        if member not in instance:
            found.append(_missing(member, "add it; an empty object will do for nothing"))
        elif not isinstance(instance[member], dict):
            rule = f"{_RULES}/properties/{member}/type"
            found.append(Problem(f"/{member}", rule, "must be an object", "wrap it in one"))
        return found

    def _placed(self, problem: Problem) -> Problem:
        rule = problem.rule
        if self.validator is not None and rule.startswith(f"{self.validator.name}#"):
            rule = self.name + rule[len(self.validator.name) :]
        pointer = problem.pointer if self.whole else f"/{self.member}{problem.pointer}"
        return replace(problem, pointer=pointer, rule=rule)


@dataclass(frozen=True, slots=True)
class ToolIO:
    """The checks of both sides of a tool's calls; ``fingerprint`` is that of the schemas."""

    tool: str
    input: ToolSide
    output: ToolSide
    fingerprint: str

    def validate(self, instance: Any) -> None:
        """Raise EnvelopeError unless the input, and the output if there is one, are accepted."""
        instance = _plain(instance)
        self.input.validate(instance)
        if "output" in instance:
            self.output.validate(instance)


def _plain(instance: Any) -> Any:
    """The plain value of a document or plain value; EnvelopeError for what is not JSON."""
    if isinstance(instance, Document):
        return instance.value
    dump(instance)
    return instance


def _missing(member: str, hint: str) -> Problem:
    return Problem(f"/{member}", f"{_RULES}/required", f'the member "{member}" is missing', hint)
