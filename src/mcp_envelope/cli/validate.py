"""``validate``: is this a valid envelope, and if not, what is wrong where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_envelope as me
from mcp_envelope.dialects import DIALECTS, TABLE
from mcp_envelope.dialects.convert import place

from .console import DOES_NOT_HOLD, FINE, Console, problems_as_json

if TYPE_CHECKING:
    import argparse

EXAMPLE = "mcp-envelope validate call.json --dialect tool/1.0 --part request"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("file", metavar="FILE", help="the envelope; - is standard input")
    parser.add_argument(
        "--dialect", metavar="D", help=f"the dialect, recognised if not given: {', '.join(TABLE)}"
    )
    parser.add_argument(
        "--part",
        metavar="P",
        help="what it is, recognised if not given: request, response, notification, error, "
        "envelope, record, artifact, artifact_ref, evidence, digest, capabilities or tool_io",
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    _check_names(arguments)
    data = console.read(arguments.file)
    verdict: dict[str, Any] = {"dialect": arguments.dialect, "part": arguments.part}
    try:
        document = me.parse(data)
    except me.EnvelopeError as error:
        known, problems = "not readable as JSON", list(error.problems)
        if error.line is not None:
            verdict |= {"line": error.line, "column": error.column}
    else:
        verdict |= _recognised(document, arguments)
        known = (
            f"{verdict['dialect']} {verdict['part']}" if verdict["part"] else "no known envelope"
        )
        problems = me.validate(document, arguments.dialect, arguments.part)
    faults = [problem for problem in problems if problem.severity == "error"]
    warnings = [problem for problem in problems if problem.severity != "error"]
    if console.json:
        lists = {"problems": problems_as_json(faults), "warnings": problems_as_json(warnings)}
        console.result({"valid": not faults, **verdict, **lists})
    else:
        console.say(f"{'invalid' if faults else 'valid'}: {known}{_counted(faults, warnings)}")
        for problem in problems:
            _explain(problem, console)
    return DOES_NOT_HOLD if faults else FINE


def _check_names(arguments: argparse.Namespace) -> None:
    """Raise UsageError for a dialect or part that there is not, whatever is in the file."""
    dialects = [arguments.dialect] if arguments.dialect is not None else list(DIALECTS)
    parts = {part for name in dialects for part in DIALECTS[name].parts}
    if arguments.part is not None and arguments.part not in parts:
        known = ", ".join(sorted(parts))
        if arguments.dialect is None:
            raise me.UsageError(f"no dialect has a part {arguments.part!r}", hint=f"parts: {known}")
        message = f"{arguments.dialect} has no part {arguments.part!r}"
        raise me.UsageError(message, hint=f"it has {known}")


def _recognised(document: me.Document, arguments: argparse.Namespace) -> dict[str, str]:
    try:
        dialect, part = place(document, arguments.dialect, arguments.part)
    except me.EnvelopeError:
        return {}
    return {"dialect": dialect.id, "part": part}


def _counted(faults: list[me.Problem], warnings: list[me.Problem]) -> str:
    counts = [(len(faults), "problem"), (len(warnings), "warning")]
    said = [f"{count} {what}{'s' if count > 1 else ''}" for count, what in counts if count]
    return f", {', '.join(said)}" if said else ""


def _explain(problem: me.Problem, console: Console) -> None:
    mark = "" if problem.severity == "error" else f"{problem.severity}: "
    console.say(f"  {problem.pointer or '(whole document)'}: {mark}{problem.message}")
    console.say(f"      rule: {problem.rule}")
    if problem.hint:
        console.say(f"      do:   {problem.hint}")
