"""``errors``: the canonical error table, or one code explained."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Final

import mcp_envelope as me
from mcp_envelope.core import codes
from mcp_envelope.core.codes import Code

from .arguments import nearest
from .console import FINE, Console

if TYPE_CHECKING:
    import argparse

EXAMPLE = "mcp-envelope errors TOOL_NOT_FOUND"
_REVISIONS: Final = ("2025-06-18", "2025-11-25", "2026-07-28")
_DATA: Final = Path(codes.__file__).with_name("errors.json")
_WIDTH: Final = 88


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "code",
        metavar="CODE",
        nargs="?",
        help="explain this code, in any case; or what stands in a log: a JSON-RPC number, an "
        "HTTP status or an ADAPTER.… code",
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    found = list(codes.TABLE.values()) if arguments.code is None else _find(arguments.code)
    if console.json:
        wanted = {row.code for row in found}
        entries = me.parse(_DATA.read_bytes()).value["codes"]
        console.result({"codes": [entry for entry in entries if entry["code"] in wanted]})
    elif len(found) == 1:
        for line in _explained(found[0]):
            console.say(line)
    else:
        for line in _table(found):
            console.say(line)
    return FINE


def _find(word: str) -> list[Code]:
    """The rows that somebody means who found this word in a log; UsageError if there is none."""
    name = word.strip().upper().replace("-", "_")
    if name in codes.TABLE:
        return [codes.TABLE[name]]
    found = [row for row in codes.TABLE.values() if word.strip().upper() in _said(row)]
    if not found:
        near = nearest(name, codes.TABLE)
        hint = "mcp-envelope errors lists them"
        raise me.UsageError(
            f"no error code {word!r}", hint=f"did you mean {near}? {hint}" if near else hint
        )
    return found


def _said(row: Code) -> set[str]:
    """The numbers and codes by which a row is said at the doors."""
    answers = [row.mcp(revision) for revision in _REVISIONS]
    numbers = {row.jsonrpc, row.http, *(n for a in answers for n in (a.code, a.unparsable))}
    return {str(number) for number in numbers if number is not None} | {row.provenance}


def _table(rows: list[Code]) -> list[str]:
    cells = [("CODE", "ORIGIN", "RETRY", "HTTP", "JSON-RPC", "MESSAGE")]
    cells += [
        (r.code, r.origin, _yes(r.retry), str(r.http), str(r.jsonrpc), r.message) for r in rows
    ]
    wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        f"{code:{wide[0]}}  {origin:{wide[1]}}  {retry:{wide[2]}} {http:>{wide[3]}}  "
        f"{number:>{wide[4]}}  {message}"
        for code, origin, retry, http, number, message in cells
    ]


def _explained(row: Code) -> list[str]:
    said = me.dump(me.CanonicalError.to_jsonrpc_error(row.code)).decode()
    doors = {
        "HTTP (/rpc, …/invoke)": str(row.http),
        "JSON-RPC (/rpc)": said if row.at_rpc else f"does not occur; in MCP's own words {said}",
        **{f"MCP {revision}": str(row.mcp(revision)) for revision in _REVISIONS},
        "tiered/1.0 error_code": "by exception" if row.tiered_by_exception else row.tiered,
        "tool/1.0 status.code": row.tool_status,
        "provenance/0.1 errors[].code": row.provenance,
    }
    wide = max(map(len, doors))
    return [
        f"{row.code}: {row.message}",
        f"origin: {row.origin}; the same call may be sent again: {_yes(row.retry)}",
        "",
        *_wrapped(row.meaning),
        "",
        "What to do:",
        *_wrapped(row.remedy, indent="  "),
        "",
        "How it is said:",
        *(f"  {where:{wide}}  {what}" for where, what in doors.items()),
    ]


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _yes(value: bool) -> str:
    return "yes" if value else "no"
