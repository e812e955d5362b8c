"""``ledger show``: all that is known of one call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import mcp_envelope as me
from mcp_envelope.core.ports import LedgerError, Source
from mcp_envelope.core.proving import UnprovenError
from mcp_envelope.core.search import SHORTEST, UNKNOWN, bodies_in
from mcp_envelope.stores.index_search import by_id, has_run_since

from .console import FINE, Console, shown
from .entries import milliseconds_of, object_of, what_of
from .indexes import indexed
from .layout import laid_out
from .records import LEDGER, opened

if TYPE_CHECKING:
    import argparse

    from .arguments import Parser

EXAMPLE = "mcp-envelope ledger show calls.db 2f2ec92e"

_MOST_LINES: Final = 40
_MOST_NAMED: Final = 20
_WHERE: Final = "mcp-envelope ledger query lists calls with their ids"
_NAME: Final = 10
_OPEN: Final = (
    "It was admitted and has no end: it is under way, or the gateway was cut off. Nobody knows yet "
    "whether the tool did it."
)
_OPEN_PAST: Final = (
    "It was admitted and has no end, and the gateway has been started anew since: nobody knows "
    "whether the tool did it."
)
_KEEP: Final = 'none is kept; to keep those of calls that fail: rules.bodies = "errors"'
_SAID: Final = {
    "absent": "none",
    "redacted": "redacted, and so without a digest",
    "not_recorded": "not recorded",
    "out_of_domain": "without a digest: it has no canonical form",
    "truncated": "left out, as the line had no room",
}


@dataclass(frozen=True, slots=True)
class _Line:
    """A line, read."""

    place: int
    text: bytes
    entry: Mapping[str, Any]

    @property
    def digest(self) -> str:
        return f"sha256:{sha256(self.text).hexdigest()}"


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is to be shown: the lines of a call, or the one of none; what was kept of it."""

    lines: Sequence[_Line]
    kept: Mapping[tuple[str, str], bytes]
    is_past: bool

    @property
    def entry(self) -> Mapping[str, Any]:
        """The last line: it says the most."""
        return self.lines[-1].entry

    @property
    def is_open(self) -> bool:
        """Whether there is a beginning, and no end."""
        return all(line.entry.get("event") == "admitted" for line in self.lines)

    @property
    def outcome(self) -> str | None:
        """What became of it."""
        said = UNKNOWN if self.is_open else self.entry.get("outcome")
        return said if isinstance(said, str) else None

    @property
    def lacks_bodies(self) -> bool:
        """Whether a call failed, and what was sent or answered could have been kept."""
        has_digests = any(bodies_in(line.entry) for line in self.lines)
        return has_digests and not self.kept and not self.is_open and self.outcome != "ok"


def configure(parser: Parser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("ledger", metavar="URL|FILE", help=LEDGER)
    parser.add_argument(
        "id",
        metavar="ID",
        help=f"the request_id, {SHORTEST} characters of its beginning or more, or the number "
        "(seq) of a line",
    )
    parser.add_argument(
        "--full", action="store_true", help="print kept bodies whole, however long they are"
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    with opened(arguments.ledger) as source:
        what = _found(source, arguments.id, console)
    if console.json:
        _as_json(what, console)
    else:
        _in_words(what, console, is_full=arguments.full)
    return FINE


def _found(source: Source, name: str, console: Console) -> _Shown:
    """The call or line that is meant. UnprovenError if there is none."""
    number = int(name) if name.isascii() and name.isdigit() and len(name) < 20 else None
    place = source.place_of(number) if number is not None else None
    if place is None and len(name) < SHORTEST:
        if number is None:
            hint = f"write {SHORTEST} characters of it or more, or the number of a line"
            raise me.UsageError(f"{name!r} is too short for an id", hint=hint)
        first, end = source.bounds()
        there = f"it has lines {first} to {end - 1}" if end > first else "it has none yet"
        raise UnprovenError(f"the ledger has no line {name}", hint=there)
    lines, exact = [], None
    if place is not None:
        lines = [_line_at(source, place)]
        exact = lines[0].entry.get("request_id")
        if not isinstance(exact, str):
            return _Shown(lines, {}, is_past=False)
    with indexed(source, console) as index:
        places = _places(by_id(index, exact or name, _MOST_NAMED), exact, name)
        lines = [_line_at(source, one) for one in places] or lines
        is_past = has_run_since(index, lines[-1].place)
    return _Shown(lines, _kept(source, lines, console), is_past)


def _kept(source: Source, lines: Sequence[_Line], console: Console) -> dict[tuple[str, str], bytes]:
    """What was kept of a call: by what it is, and its digest."""
    kept = {}
    for of, digest in dict.fromkeys(key for line in lines for key in bodies_in(line.entry)):
        try:
            body = source.body(digest)
        except LedgerError as error:
            console.note(f"mcp-envelope: {error}")
            continue
        if body is not None:
            kept[of, digest] = body
    return kept


def _places(found: dict[str, list[int]], exact: str | None, name: str) -> list[int]:
    """The places of the one call that is meant."""
    if exact is not None:
        return found.get(exact, [])
    if not found:
        raise UnprovenError(f"no call of this ledger has the id {shown(name)}", hint=_WHERE)
    if len(found) > 1:
        many = f"{len(found)}{' or more' * (len(found) == _MOST_NAMED)}"
        listed = ", ".join(sorted(map(shown, found)))
        raise UnprovenError(
            f"{many} calls have ids that begin with {shown(name)}", hint=f"they are {listed}"
        )
    return next(iter(found.values()))


def _line_at(source: Source, place: int) -> _Line:
    text = source.at(place)
    entry = object_of(text)
    if entry is None:
        raise LedgerError("this line is damaged", hint="mcp-envelope ledger verify says more")
    return _Line(place, text, entry)


def _as_json(what: _Shown, console: Console) -> None:
    request = what.entry.get("request_id")
    console.result(
        {
            "request_id": request if isinstance(request, str) else None,
            "outcome": what.outcome,
            "lines": [
                {
                    "seq": line.entry.get("seq"),
                    "digest": line.digest,
                    "line": me.parse(line.text, size=len(line.text)),
                }
                for line in what.lines
            ],
            "bodies": [
                {"of": of, "digest": f"sha256:{digest}", "body": me.parse(body, size=len(body))}
                for (of, digest), body in what.kept.items()
            ],
        }
    )


def _in_words(what: _Shown, console: Console, *, is_full: bool) -> None:
    outcome = what.outcome or what.entry.get("event")
    console.say(f"{what_of(what.entry)}: {'outcome unknown' if what.is_open else outcome}")
    if what.is_open:
        console.say(_OPEN_PAST if what.is_past else _OPEN)
    console.say()
    for name, text in _rows(what):
        if text:
            console.say(f"  {name:{_NAME}}  {text}")
    for of in ("input", "output"):
        _say_body(of, what, console, is_full=is_full)
    if what.lacks_bodies:
        console.say(f"  {'bodies':{_NAME}}  {_KEEP}")
    title = "says" if what.entry.get("event") == "checkpoint" else "warning"
    for warning in what.entry.get("warnings") or ():
        for number, part in enumerate(str(warning).splitlines()):
            console.say(f"  {'' if number else title:{_NAME}}  {part}".rstrip())
    console.say()
    for line in what.lines:
        entry = line.entry
        event, time = str(entry.get("event")), entry.get("time")
        console.say(f"  line {entry.get('seq')}  {event:{_NAME}}  {time}  {line.digest}")


def _rows(what: _Shown) -> Iterator[tuple[str, str]]:
    """What there is to say of it, each with its name; empty where there is nothing."""
    entry = what.entry

    def said(name: str, before: str = "") -> str:
        value = entry.get(name)
        return f"{before}{value}" if value is not None else ""

    own = entry.get("client_id")
    theirs = f", the client's own: {me.dump(own).decode()}" if own is not None else ""
    yield "id", said("request_id") + theirs
    yield "kind", said("kind")
    yield "tool", said("tool") + said("definition", ", as defined by ")
    yield "peer", said("peer") + said("grant", ", allowed or refused by ")
    yield "door", said("door") + said("dialect", ", dialect ")
    yield "began", str(what.lines[0].entry.get("time")) if len(what.lines) > 1 else ""
    yield "ended" if len(what.lines) > 1 else "time", said("time")
    took = entry.get("duration_ms")
    yield "took", f"{milliseconds_of(took)} ms" if took is not None else ""
    error = entry.get("error")
    if isinstance(error, dict):
        yield "error", f"{error.get('code')}: {error.get('message')}"
    yield "run", said("run_id") if entry.get("run_id") != entry.get("request_id") else ""
    yield "trace", said("trace_id")
    yield "belongs to", said("correlation_id")
    yield "gateway", said("instance", "run ")


def _say_body(of: str, what: _Shown, console: Console, *, is_full: bool) -> None:
    said = what.entry.get(of)
    if not isinstance(said, dict) or what.entry.get("request_id") is None:
        return
    state = said.get("state")
    if of == "output" and what.is_open:
        return
    text = f"{said.get('digest')}, {said.get('bytes')} bytes"
    console.say(f"  {of:{_NAME}}  {_SAID.get(state, state) if state is not None else text}")
    for (part, _), body in what.kept.items():
        if part == of:
            _say_kept(body.decode(errors="replace"), console, is_full=is_full)


def _say_kept(text: str, console: Console, *, is_full: bool) -> None:
    space = " " * (_NAME + 4)
    for number, line in enumerate(laid_out(text)):
        if is_full:
            console.write(f"{space}{line}\n".encode())
        elif number < _MOST_LINES:
            console.say(space + line)
        else:
            console.say(f"{space}… --full prints all of it, {len(text):,} characters")
            return
