"""``ledger prove``: that a line is in the ledger, for whoever has neither it nor trust in us."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import mcp_envelope as me
from mcp_envelope.core.notes import base64_of
from mcp_envelope.core.ports import Source
from mcp_envelope.core.proofs import Inclusion
from mcp_envelope.core.proving import UnprovenError, fields_of, inclusion, line_at
from mcp_envelope.core.search import SHORTEST
from mcp_envelope.stores.index_search import by_id

from . import proof_check, sealing
from .console import FINE, Console
from .indexes import indexed
from .outputs import Progress, check_free, write_whole
from .records import KEY, LEDGER, opened, path_of, url_of

if TYPE_CHECKING:
    import argparse

    from .arguments import Parser

EXAMPLE = "mcp-envelope ledger prove calls.db 4711 --out 4711.tlog-proof --line-out 4711.json"

_EVENTS: Final = ("settled", "refused", "malformed", "admitted")
_STEP: Final = 4_096


@dataclass(frozen=True, slots=True)
class _Line:
    seq: int
    event: str
    request_id: str | None
    text: bytes


def configure(parser: Parser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("ledger", metavar="URL|FILE", nargs="?", help=LEDGER)
    parser.add_argument(
        "id",
        metavar="ID",
        nargs="?",
        help="the number of a line, or the request_id of a call or how it begins; of a call it "
        "is the line that ends it",
    )
    parser.add_argument(
        "--event", metavar="E", help="the line of the call that is meant: admitted, settled, …"
    )
    parser.add_argument("--out", metavar="FILE", help="write the proof there")
    parser.add_argument("--line-out", metavar="FILE", help="write the line itself there")
    parser.add_argument("--force", action="store_true", help="replace these files")
    sealing.configure(parser)
    parser.add_argument("--check", metavar="PROOF", help="check the proof in this file instead")
    parser.add_argument(
        "--line", metavar="FILE", help="with --check: the line that it is to be a proof of"
    )
    parser.add_argument("--key", metavar="K", action="append", default=[], help=KEY)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    if arguments.check is not None:
        return proof_check.run(arguments, console)
    _look(arguments)
    url = url_of(arguments.ledger)
    with opened(url) as source:
        line = _find(source, arguments.id, arguments.event, console)
    found = sealing.sealed(url, arguments, beyond=line.seq)
    with opened(url) as source:
        proof = _proof(source, line, found)
    text = str(proof).encode()
    for name, data in ((arguments.line_out, line.text), (arguments.out, text)):
        if name is not None:
            write_whole(name, [data], force=arguments.force)
    if console.json:
        console.result(_as_json(url, line, proof))
        return FINE
    if arguments.out is None:
        console.write(text)
        console.flush()
    for note in (*_notes(line, arguments), *(found.notes() if found.written else ())):
        console.note(note)
    return FINE


def _look(arguments: argparse.Namespace) -> None:
    """Raise UsageError for words that do not go together, before anything is done."""
    if arguments.ledger is None or arguments.id is None:
        hint = "mcp-envelope ledger prove calls.db 4711; or --check PROOF --line FILE"
        raise me.UsageError("a ledger and an ID are needed", hint=hint)
    if arguments.line is not None or arguments.key:
        raise me.UsageError("--line and --key go with --check", hint="leave them out")
    for name in (arguments.out, arguments.line_out):
        if name is not None:
            check_free(name, force=arguments.force, read=[path_of(arguments.ledger)])


def _notes(line: _Line, arguments: argparse.Namespace) -> Iterator[str]:
    call = f" of call {line.request_id}" if line.request_id is not None else ""
    yield f"proves line {line.seq:,}, {line.event}{call}"
    if line.event == "admitted" and arguments.event is None and arguments.id != str(line.seq):
        yield "the call has no other line: its outcome is unknown"


def _proof(source: Source, line: _Line, found: sealing.Sealed) -> Inclusion:
    newest = found.newest
    if newest is None or newest.seq <= line.seq:
        if newest is not None and newest.seq == line.seq:
            raise UnprovenError(
                f"line {line.seq} is the newest checkpoint: it vouches for itself",
                hint="mcp-envelope ledger checkpoint prints it",
            )
        raise UnprovenError(
            f"no checkpoint covers line {line.seq} yet"
            + (f": {found.why_not}" if found.why_not else ""),
            hint="a gateway writes one every so often, and when it ends",
        )
    return inclusion(source, line.seq, line.text, newest)


def _find(source: Source, name: str, event: str | None, console: Console) -> _Line:
    """The line that somebody means."""
    if name.isdecimal() and name.isascii() and len(name) < 20:
        text = line_at(source, int(name))
        if text is not None:
            found = _line(text)
            if event not in (None, found.event):
                raise UnprovenError(f"line {name} is {found.event}, not {event}")
            return found
    lines = _indexed(source, name, console) or _lines_of(source, name)
    calls = sorted({line.request_id or "" for line in lines})
    if len(calls) > 1:
        some = ", ".join(calls[:5]) + (", …" if len(calls) > 5 else "")
        raise UnprovenError(f"several calls begin with {name!r:.100}: {some}", hint="write more")
    if not calls:
        begin, end = source.bounds()
        there = f"the ledger has lines {begin:,} to {end - 1:,}" if end > begin else "it is empty"
        raise UnprovenError(f"no line and no call {name!r:.100}: {there}")
    for wanted in _EVENTS if event is None else (event,):
        for line in lines:
            if line.event == wanted:
                return line
    have = ", ".join(line.event for line in lines)
    raise UnprovenError(f"the call has no line {event!r:.50}", hint=f"it has {have}")


def _indexed(source: Source, begin: str, console: Console) -> list[_Line]:
    """The same by the search index, where there is one: nothing, if it knows of none."""
    place = source.url.partition(":")[2]
    if len(begin) < SHORTEST or not Path(f"{place}.index").exists():
        return []
    with indexed(source, console) as index:
        found = by_id(index, begin)
    lines = (_line(source.at(place)) for places in found.values() for place in places)
    return [line for line in lines if (line.request_id or "").startswith(begin)]


def _lines_of(source: Source, begin: str) -> list[_Line]:
    """The lines of the calls whose id begins like that, by reading the ledger."""
    if not begin.isprintable() or not begin or set(begin) & set('"\\'):
        raise me.UsageError(f"no call has the id {begin!r:.100}", hint="write a seq or request_id")
    mark = b'"request_id":"' + begin.encode()
    found = []
    with Progress("looking", source.size) as progress:
        for count, placed in enumerate(source.after(0)):
            if mark in placed.line:
                line = _line(placed.line)
                if line.request_id is not None and line.request_id.startswith(begin):
                    found.append(line)
            if count % _STEP == 0:
                progress.at(placed.place, count)
    return found


def _line(text: bytes) -> _Line:
    fields = fields_of(text)
    return _Line(fields["seq"], fields["event"], fields["request_id"], text)


def _as_json(url: str, line: _Line, proof: Inclusion) -> dict[str, Any]:
    said = proof.checkpoint
    return {
        "ledger": url,
        "seq": line.seq,
        "event": line.event,
        "request_id": line.request_id,
        "line": line.text.decode(),
        "origin": said.origin,
        "size": said.size,
        "root": base64_of(said.root),
        "hashes": [base64_of(one) for one in proof.hashes],
        "proof": str(proof),
    }
