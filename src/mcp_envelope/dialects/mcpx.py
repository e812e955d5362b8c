"""``mcpx/0.1``: broadcast envelopes whose ``kind`` says what they are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from mcp_envelope.core.errors import ConversionError, EnvelopeError, Problem
from mcp_envelope.core.kind import Kind
from mcp_envelope.core.message import Event, Message, Peer, Request
from mcp_envelope.core.ports import Encoded, Filling

from . import mcp
from .base import SchemaDialect
from .calls import TOOL_CALL
from .reader import Layout, Reader
from .writer import PLACEHOLDERS, Writer

PROTOCOL: Final = "mcpx/v0.1"
_PAYLOAD: Final = "/payload"
_NAMESPACES: Final = {
    "": "mcpx/0.1",
    **{_PAYLOAD + place: namespace for place, namespace in mcp.NAMESPACES.items()},
}
# The envelope's unknown members are kept and passed on, so that is where things may ride:
# the payload itself is never changed.
_OPEN: Final = "/metadata"


class Mcpx(SchemaDialect):
    """The envelopes of seed 003. Open place: a member ``metadata`` of the envelope."""

    id: ClassVar[str] = "mcpx/0.1"
    parts: ClassVar[Mapping[str, str]] = {"envelope": "envelope.schema.json"}
    borrows: ClassVar[tuple[str, ...]] = ("mcp",)

    def detect(self, value: object) -> str | None:
        if not isinstance(value, dict) or not isinstance(value.get("protocol"), str):
            return None
        return "envelope" if value["protocol"].startswith("mcpx/") else None

    def version_problem(self, value: Any, part: str) -> Problem | None:
        protocol = value.get("protocol") if isinstance(value, dict) else None
        if protocol == PROTOCOL or not isinstance(protocol, str):
            return None
        if not protocol.startswith("mcpx/"):
            return None
        message = f"{protocol[:40]} is not supported; {PROTOCOL} is"
        return Problem("/protocol", "mcpx/0.1 protocol", message, f"send {PROTOCOL}")

    def faults(self, value: Any, part: str) -> list[Problem]:
        try:
            kind = Kind.parse(value["kind"])
        except EnvelopeError as error:
            return [Problem("/kind", p.rule, p.message, p.hint) for p in error.problems]
        mismatch = kind.mismatch(value["payload"])
        if mismatch is not None:
            hint = "a kind must say what its payload does"
            return [Problem("/kind", "mcpx/0.1 kind-mismatch", mismatch, hint)]
        if kind.is_short:
            message = f"the short form {str(kind)[:60]!r} names no context; deprecated in v0.2"
            hint = f"write {str(kind)[:60]}:NAME"
            return [Problem("/kind", "mcpx/0.1 short-kind", message, hint, "warning")]
        return []

    def layout(self, value: Any, part: str) -> Layout:
        return Layout(_NAMESPACES, _OPEN)

    def encode(self, message: Message, filling: Filling) -> Encoded:
        encoded = super().encode(message, filling)
        if message.origin is None or message.origin.dialect != self.id:
            faults = [
                p for p in self.faults(encoded.document.value, "envelope") if p.severity == "error"
            ]
            if faults:
                raise ConversionError(f"no kind can say this: {faults[0].message}", problems=faults)
        return encoded

    def read(self, reader: Reader, part: str) -> Message:
        reader.take("/protocol")
        value = reader.document.value
        kind = _parsed(value["kind"])
        known = _read_frame(reader)
        payload = value["payload"]
        if kind is not None and _computed(kind, payload) == str(kind):
            reader.take("/kind")
        if kind is None or kind.method is None:
            name = kind.type if kind is not None else "unknown"
            return reader.message(
                Event, name=name, payload=reader.take(_PAYLOAD, "payload"), **known
            )
        reader.take(_PAYLOAD + "/jsonrpc")
        if kind.type == "proposal":
            known["proposal"] = True
        answers = kind.type == "response"
        if answers and not reader.is_filled("/kind"):
            reader.mark("method", "/kind")
            known["method"] = kind.method
            if kind.context is not None and kind.takes_context:
                reader.mark("target", "/kind")
                known["target"] = kind.context
        return mcp.read_message(reader, payload, _PAYLOAD, answers=answers, **known)

    def write(self, message: Message, filling: Filling) -> Writer:
        writer = Writer(message, _NAMESPACES, filling, open_place=_OPEN)
        writer.put("/protocol", PROTOCOL)
        writer.need("/id", "envelope_id", "id")
        writer.place("/ts", "time")
        peer = writer.unless_given("peer", "from_peer")
        if peer is not None:
            writer.put("/from", peer.id, "peer")
        else:
            writer.drop("peer")
            writer.fill("/from", "from_peer")
        to = writer.get("to")
        writer.put("/to", list(to) if to is not None else None, "to")
        if isinstance(message, Event) and message.name != "notification":
            writer.put("/kind", message.name, "name")
            writer.put(_PAYLOAD, message.payload, "payload")
            writer.place("/correlation_id", "correlation_id")
            return writer
        proposal = isinstance(message, Request) and message.proposal
        if isinstance(message, (Request, Event)):
            writer.place("/correlation_id", "correlation_id")
            kind = "proposal" if proposal else "request"
        else:
            writer.need("/correlation_id", "correlation_id", "correlation_id")
            kind = "response"
        _write_kind(writer, kind)
        if not proposal:
            writer.put(_PAYLOAD + "/jsonrpc", "2.0")
        mcp.write_message(writer, _PAYLOAD)
        writer.drop("proposal")
        return writer


def _parsed(text: str) -> Kind | None:
    try:
        return Kind.parse(text)
    except EnvelopeError:
        return None


def _computed(kind: Kind, payload: Mapping[str, Any]) -> str | None:
    """The kind that we would write for this payload."""
    if kind.method is None:
        return str(kind)
    if kind.type == "response":
        return str(kind) if kind.takes_context == (kind.context is not None) else None
    try:
        return str(Kind.of_payload(payload, type=kind.type))
    except EnvelopeError:
        return None


def _read_frame(reader: Reader) -> dict[str, Any]:
    sender = reader.text("/from", "peer")
    to = reader.take("/to", "to")
    return {
        "envelope_id": reader.text("/id", "envelope_id"),
        "time": reader.text("/ts", "time"),
        "peer": Peer(sender) if sender is not None else None,
        "to": tuple(to.value) if to is not None else None,
        "correlation_id": reader.text("/correlation_id", "correlation_id"),
    }


def _write_kind(writer: Writer, type: str) -> None:
    """Write the kind; an answer's says its method and target, unless that was made up."""
    message = writer.message
    method, target = writer.get("method"), writer.get("target")
    own = writer.extra("/kind")
    if own is not None and (writer.at_home or _agrees(own.value, type, message)):
        writer.drop("method", "target")
        return
    try:
        kind = Kind(type, method or writer.option("method") or TOOL_CALL, target)
        if kind.is_short:
            named = writer.option("tool") or message.target or PLACEHOLDERS["tool"]
            kind = Kind(type, str(kind.method), named)
    except EnvelopeError as error:
        raise ConversionError(f"no kind can say this: {error.message}", hint=error.hint) from None
    if not kind.takes_context:
        kind = Kind(type, str(kind.method))
    known = method is not None or (kind.method == TOOL_CALL and target is not None)
    if known and kind.context == target:
        writer.put("/kind", str(kind), "method", "target")
    else:
        writer.fill("/kind", "kind", str(kind))


def _agrees(own: object, type: str, message: Message) -> bool:
    """Whether a kind of the message's own says what the message does."""
    kind = _parsed(own) if isinstance(own, str) else None
    if kind is None or kind.type != type:
        return False
    if message.method is None and type == "response":  # an error does not say what it answers
        return kind.method == TOOL_CALL and kind.context is None
    return kind.method == message.method and kind.context in (None, message.target)
