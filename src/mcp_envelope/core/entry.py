"""A ledger line: what is said of one event, and the exact bytes that say it.

The fields and their meanings are fixed (``v`` 1, ``docs/ledger.md``): every line has all of
them, null where something is not known or does not apply. A line is one line for every reader,
whatever text came from outside, and never longer than :data:`MOST` bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple

import orjson

from .canonical import OutOfDomainError, canonical
from .document import Document
from .plain import MAX_NUMBER

Event = Literal["admitted", "settled", "refused", "malformed", "started", "stopped", "checkpoint"]
State = Literal["redacted", "not_recorded", "out_of_domain", "truncated", "absent"]

#: What ``v`` says.
VERSION: Final = 1
#: ``prev`` of the first line.
GENESIS: Final = "0" * 64
#: The most bytes of a line, without its newline.
MOST: Final = 65_535

# What JSON may hold as it is, and yet ends a line, hides or reorders text, or steers a terminal:
# DEL, C1 controls (U+0085 among them), U+2028 and U+2029, marks and overrides of direction, BOM.
# Lead bytes of UTF-8 are found nowhere but at the start of a character.
_UNSEEN: Final = re.compile(
    rb"\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xef\xbb\xbf"
)
_TORN: Final = re.compile("[\ud800-\udfff]")
# The order in which what is long is cut until the line fits.
_CUT_ORDER: Final = (
    *("warnings", "error", "peer", "kind", "tool", "client_id", "correlation_id", "run_id"),
    *("trace_id", "grant", "definition", "outcome", "dialect", "door", "instance"),
    *("request_id", "time", "event"),
)
# Characters that a text may keep, and warnings that are kept: mild, then for good. The second
# row fits even where each character takes the six bytes of an escape.
_CUTS: Final = ((4_096, 200), (200, 20))


@dataclass(frozen=True, slots=True)
class Body:
    """What a line says of an input or output: its digest and size, or why there is none.

    ``digest`` is the hex of SHA-256 over the canonical form (RFC 8785), ``size`` the length of
    that form in bytes. Without a digest ``state`` says why.
    """

    digest: str | None = None
    size: int = 0
    state: State = "absent"

    def as_json(self) -> dict[str, str | int]:
        """``{"digest": "sha256:<hex>", "bytes": n}``, or ``{"state": …}``."""
        if self.digest is None:
            return {"state": self.state}
        return {"digest": f"sha256:{self.digest}", "bytes": self.size}


ABSENT: Final = Body()
_OUT_OF_DOMAIN: Final = Body(state="out_of_domain")


class Facts(NamedTuple):
    """What there is to say of one event. The fields are those of a line, in its order.

    Give them by name. (A frozen dataclass with so many takes three times as long to make.)

    ``time`` is UTC in RFC 3339, ``client_id`` the JSON-RPC id in its own type, ``request_id``
    ours. ``error`` holds ``code`` and ``message``.
    """

    event: Event
    time: str
    instance: str
    kind: str | None = None
    tool: str | None = None
    definition: str | None = None
    peer: str | None = None
    grant: str | None = None
    request_id: str | None = None
    client_id: str | int | float | None = None
    run_id: str | None = None
    trace_id: str | None = None
    correlation_id: str | None = None
    door: str | None = None
    dialect: str | None = None
    outcome: str | None = None
    error: Mapping[str, str] | None = None
    duration_ms: float | None = None
    input: Body = ABSENT
    output: Body = ABSENT
    warnings: tuple[str, ...] = ()


class Receipt(NamedTuple):
    """The place of a line in its ledger, and the SHA-256 of its bytes in hex."""

    seq: int
    digest: str


def body_of_value(value: object) -> Body:
    """The same of a plain value, null included: what is digested is the value, not its text."""
    return _body(value)


def body_of(document: Document | None) -> Body:
    """What is said of a value: the digest and size of its canonical form.

    ``absent`` for None, ``out_of_domain`` for what has no canonical form.
    """
    return ABSENT if document is None else _body(document)


def output_body(result: object, without_meta: str) -> Body:
    """What is said of a result, leaving our own key of its ``_meta`` out if it has it."""
    return _body(unlabelled(result, without_meta))


def unlabelled(result: object, without_meta: str) -> Any:
    """A result without our own key of its ``_meta``, as a plain value.

    A ``_meta`` that held nothing else goes with it: so the digest is that of the result as it
    was before anybody had put the key there.
    """
    value: Any = result.value if type(result) is Document else result
    meta = value.get("_meta") if type(value) is dict else None
    if type(meta) is dict and without_meta in meta:
        rest = {name: part for name, part in meta.items() if name != without_meta}
        without = {name: part for name, part in value.items() if name != "_meta"}
        return {**without, "_meta": rest} if rest else without
    return value


def _body(value: object) -> Body:
    try:
        text = canonical(value)
    except OutOfDomainError:
        return _OUT_OF_DOMAIN
    return Body(sha256(text).hexdigest(), len(text))


def started(*, time: str, instance: str, warnings: tuple[str, ...] = ()) -> Facts:
    """The line of a gateway that begins to take calls; ``instance`` names that run of it."""
    return Facts(event="started", time=time, instance=instance, outcome="ok", warnings=warnings)


def stopped(
    *, time: str, instance: str, duration_ms: float | None = None, warnings: tuple[str, ...] = ()
) -> Facts:
    """The last line of a gateway that ended in order, after ``duration_ms``."""
    return Facts(
        event="stopped",
        time=time,
        instance=instance,
        outcome="ok",
        duration_ms=duration_ms,
        warnings=warnings,
    )


def line(facts: Facts, seq: int, prev: str) -> bytes:
    """The exact bytes of a line, without the newline. It is one line of valid JSON, always.

    Halves of surrogate pairs, which no UTF-8 can hold, become U+FFFD. Where the line would pass
    :data:`MOST` bytes long texts are cut, end in ``…``, and a warning ``truncated: …`` names them.
    """
    error = facts.error
    members: dict[str, Any] = {
        "v": VERSION,
        "event": facts.event,
        "seq": seq,
        "prev": prev,
        "time": facts.time,
        "instance": facts.instance,
        "kind": facts.kind,
        "tool": facts.tool,
        "definition": facts.definition,
        "peer": facts.peer,
        "grant": facts.grant,
        "request_id": facts.request_id,
        "client_id": facts.client_id,
        "run_id": facts.run_id,
        "trace_id": facts.trace_id,
        "correlation_id": facts.correlation_id,
        "door": facts.door,
        "dialect": facts.dialect,
        "outcome": facts.outcome,
        "error": {"code": error["code"], "message": error["message"]} if error else None,
        "duration_ms": facts.duration_ms,
        "input": facts.input.as_json(),
        "output": facts.output.as_json(),
        "warnings": facts.warnings,
    }
    text = _text(members)
    return text if len(text) <= MOST else _cut(members)


def _text(members: Mapping[str, Any]) -> bytes:
    try:
        text = orjson.dumps(members)
    except TypeError:
        text = orjson.dumps({name: _mended(part) for name, part in members.items()})
    # What is too long already is not looked at: it would cost much, and it will be cut.
    if len(text) <= MOST and (0x7F in text or not text.isascii()):
        return _UNSEEN.sub(_escaped, text)
    return text


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())


def _mended(part: Any) -> Any:
    """What orjson does not write, as it can be written: torn text, and integers of any length."""
    if isinstance(part, str):
        return _TORN.sub("\ufffd", part)
    if isinstance(part, int):
        bits = part.bit_length()
        # Longer ones no strict reader takes, so none came from one; Python may not print them.
        digits = str(part) if bits <= 4 * MAX_NUMBER else ""
        return orjson.Fragment(digits) if 0 < len(digits) <= MAX_NUMBER else f"{bits} bits…"
    if isinstance(part, dict):
        return {name: _mended(inner) for name, inner in part.items()}
    if isinstance(part, tuple):
        return [_mended(inner) for inner in part]
    return part


def _cut(members: dict[str, Any]) -> bytes:
    said = members["warnings"]
    named: list[str] = []
    text = b""
    for most, count in _CUTS:
        for name in _CUT_ORDER:
            part = said if name == "warnings" else members[name]
            short = _shortened(part, most, count)
            if short == part:
                continue
            if name == "warnings":
                said = short
            members[name] = short
            full = "error.message" if name == "error" else name
            if full not in named:
                named.append(full)
            members["warnings"] = (*said, f"truncated: {', '.join(named)}")
            text = _text(members)
            if len(text) <= MOST:
                return text
    return text


def _shortened(part: Any, most: int, count: int) -> Any:
    if isinstance(part, str):
        return part if len(part) <= most else part[: most - 1] + "…"
    if isinstance(part, dict):
        return {name: _shortened(inner, most, count) for name, inner in part.items()}
    if isinstance(part, tuple):
        return tuple(_shortened(inner, most, count) for inner in part[:count])
    return part
