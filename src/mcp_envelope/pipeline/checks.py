"""Holding a tool call against what the tool's definition promises, both ways."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from mcp_envelope.core.errors import EnvelopeError, Problem
from mcp_envelope.core.frame import Frame
from mcp_envelope.core.schema import SchemaCheck

from .call import Call
from .catalog import Tool
from .record import shown_place

Mode = Literal["off", "warn", "strict"]
#: Looks a call's tool up once more, in a list that was not asked for before that time, by the
#: gateway's clock; None: than a moment ago.
Again = Callable[[Call, float | None], Awaitable[Tool | None]]

_SHOWN = 5
_ARGUMENTS = "/params/arguments"
_CONTENT = "/result/structuredContent"
#: Later than all that is known.
_NOW = float("inf")


async def check_input(call: Call, mode: Mode, again: Again) -> None:
    """Refuse arguments that the tool's input schema does not allow (INVALID_TOOL_INPUT).

    A schema that is already known may be an old one, so before anything is refused the tool is
    looked up anew.
    """
    if call.tool is None or mode == "off":
        return
    arguments = call.frame.params.get("arguments")
    if arguments is None:  # some clients write null for none
        arguments = {}
    check = _usable(call, call.tool.input_check(), "input")
    if check is None or _accepts(check, arguments):
        return
    call.tool = await again(call, call.began if mode == "strict" else None) or call.tool
    check = _usable(call, call.tool.input_check(), "input")
    if check is None or _accepts(check, arguments):
        return
    problems = _problems(check, arguments, _ARGUMENTS)
    if mode == "strict":
        raise _error("INVALID_TOOL_INPUT", problems)
    call.warn(_remark("INVALID_TOOL_INPUT", problems[0], call))


async def check_output(call: Call, answer: Frame, mode: Mode, again: Again) -> None:
    """Hold a result against the tool's output schema: INVALID_TOOL_OUTPUT, or a warning.

    Errors are left alone: the upstream's own word on what went wrong is never replaced.
    """
    result = answer.value.get("result")
    if mode == "off" or call.tool is None or not call.tool.has_output:
        return
    if "result" not in answer.value or (isinstance(result, dict) and not _is_checked(answer)):
        return
    if problems := _flaws(call, result):
        # The tool may promise something else since it was called.
        call.tool = await again(call, _NOW if mode == "strict" else None) or call.tool
        problems = _flaws(call, result)
    if problems and mode == "strict":
        raise _error("INVALID_TOOL_OUTPUT", problems)
    for problem in problems[:1]:
        call.warn(_remark("INVALID_TOOL_OUTPUT", problem, call))


def is_final(answer: Frame) -> bool:
    """Whether an answer is a final result: no error, no task, no question back."""
    result = answer.value.get("result")
    if not isinstance(result, dict) or result.get("resultType", "complete") != "complete":
        return False
    return not (isinstance(result.get("task"), dict) and "content" not in result)


def _is_checked(answer: Frame) -> bool:
    return answer.value["result"].get("isError") is not True and is_final(answer)


def _flaws(call: Call, result: Any) -> list[Problem]:
    if call.tool is None or not call.tool.has_output:
        return []
    if not isinstance(result, dict):
        why = "the result of a tool is an object"
        return [Problem("/result", "mcp/result", why, "return one")]
    check = _usable(call, call.tool.output_check(), "output")
    if check is None:
        return []
    if "structuredContent" not in result:
        why = "the tool has an output schema, and there is no structuredContent"
        return [Problem(_CONTENT, f"{check.name}#", why, "return it, or drop the schema")]
    content = result["structuredContent"]
    return [] if _accepts(check, content) else _problems(check, content, _CONTENT)


def _usable(call: Call, check: SchemaCheck | str | None, side: str) -> SchemaCheck | None:
    if isinstance(check, str):
        call.warn(f"{side} not checked: {check}")
        return None
    return check


def _accepts(check: SchemaCheck, value: object) -> bool:
    try:
        return check.accepts(value)
    except EnvelopeError:
        return False


def _problems(check: SchemaCheck, value: object, base: str) -> list[Problem]:
    found = check.problems(value, _SHOWN)
    return [
        Problem(base + each.pointer, each.rule, each.message, each.hint, each.severity)
        for each in found
    ]


def _remark(code: str, problem: Problem, call: Call) -> str:
    return f"{code}: {problem.rule} at {shown_place(problem.pointer, call.keeping.redactor)}"


def _error(code: str, problems: list[Problem]) -> EnvelopeError:
    first = problems[0]
    rest = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return EnvelopeError(
        first.message + rest, code=code, problems=problems, pointer=first.pointer, hint=first.hint
    )
