"""``validate``: is this a valid envelope, and if not, what is wrong where?"""

from __future__ import annotations

import argparse

from mcp_envelope.core.document import parse
from mcp_envelope.core.errors import EnvelopeError, Problem
from mcp_envelope.dialects.convert import place, validate

from .console import DOES_NOT_HOLD, FINE, Console, problems_as_json

HELP = "say whether an envelope is valid, and per problem where, which rule and what to do"
EXAMPLE = "mcp-envelope validate call.json --dialect tool/1.0 --part request"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the envelope; - is standard input")
    parser.add_argument("--dialect", metavar="D", help="the dialect; recognised if not given")
    parser.add_argument(
        "--part",
        metavar="P",
        help="what it is: request, response, notification, error, envelope, record, artifact, "
        "artifact_ref, evidence, digest, capabilities or tool_io; recognised if not given",
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    data = console.read(arguments.file)
    found = validate(data, arguments.dialect, arguments.part)
    dialect, part = _recognised(data, arguments)
    faults = [problem for problem in found if problem.severity == "error"]
    warnings = [problem for problem in found if problem.severity != "error"]
    if console.json:
        console.result(
            {
                "valid": not faults,
                "dialect": dialect,
                "part": part,
                "problems": problems_as_json(faults),
                "warnings": problems_as_json(warnings),
            }
        )
    else:
        what = f"{dialect} {part}" if dialect is not None else "no known envelope"
        console.say(f"{'invalid' if faults else 'valid'}: {what}" + _counted(faults, warnings))
        for problem in found:
            _explain(problem, console)
    return DOES_NOT_HOLD if faults else FINE


def _recognised(data: bytes, arguments: argparse.Namespace) -> tuple[str | None, str | None]:
    try:
        dialect, part = place(parse(data), arguments.dialect, arguments.part)
    except EnvelopeError:
        return arguments.dialect, arguments.part
    return dialect.id, part


def _counted(faults: list[Problem], warnings: list[Problem]) -> str:
    counts = [(len(faults), "problem"), (len(warnings), "warning")]
    said = [f"{count} {what}{'s' if count > 1 else ''}" for count, what in counts if count]
    return f", {', '.join(said)}" if said else ""


def _explain(problem: Problem, console: Console) -> None:
    mark = "" if problem.severity == "error" else f"{problem.severity}: "
    console.say(f"  {problem.pointer or '(whole document)'}: {mark}{problem.message}")
    console.say(f"      rule: {problem.rule}")
    if problem.hint:
        console.say(f"      do:   {problem.hint}")
