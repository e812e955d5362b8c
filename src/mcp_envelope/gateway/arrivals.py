"""What is read off a request when it arrives: what it is about, who says so, and where."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from mcp_envelope.core import mcp_headers
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame
from mcp_envelope.core.kind import Kind
from mcp_envelope.pipeline.answers import MissingMetaError
from mcp_envelope.pipeline.call import TOOL_CALL, Call

_PREFIX: Final = "io.modelcontextprotocol/"
_REQUIRED: Final = ("protocolVersion", "clientCapabilities")
#: A ``traceparent`` (W3C Trace Context); what later versions append is not looked at.
_TRACE: Final = re.compile(
    "(?!ff|00.{53}.)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?"
)
#: Kinds of longer names are made each time.
_NAME: Final = 200


def kind_of(call: Call) -> Kind:
    """The kind of a call; its short form, with a warning, where its name cannot stand in one.

    EnvelopeError where there is no name.
    """
    frame = call.frame
    try:
        return _kind_of(frame)
    except EnvelopeError as error:
        named = frame.document.at(error.pointer or "")
        if named is None or not isinstance(named.value, str) or not named.value:
            raise
        call.warn(f"the name is left out of the kind: {error.problems[0].rule}")
        return Kind("request", frame.method)


def _kind_of(frame: Frame) -> Kind:
    name = frame.params.get("name")
    if frame.method == TOOL_CALL and type(name) is str and len(name) <= _NAME:
        return _kind_of_tool(name)
    return Kind.of_payload(frame.value)


@lru_cache(maxsize=1024)
def _kind_of_tool(name: str) -> Kind:
    return Kind.of_payload({"method": TOOL_CALL, "params": {"name": name}})


def check_headers(frame: Frame, head: Mapping[str, str], schema: Any = None) -> None:
    """Refuse a request whose HTTP headers say something else than its body (HEADER_MISMATCH)."""
    why = mcp_headers.mismatch(frame, head, schema)
    if why is not None:
        raise EnvelopeError(
            why, code="HEADER_MISMATCH", hint="send headers that repeat what the body says"
        )


def check_identity(frame: Frame) -> None:
    """Each request of a stateless client says which revision it is of, and what it can do."""
    missing = [name for name in _REQUIRED if _PREFIX + name not in frame.meta]
    if missing:
        raise MissingMetaError(_PREFIX + missing[0])


def trace_of(frame: Frame, head: Mapping[str, str]) -> str | None:
    """The trace that a message belongs to: its ``traceparent``, or that of the HTTP request."""
    said = frame.meta.get("traceparent") or head.get("traceparent")
    found = _TRACE.fullmatch(said) if isinstance(said, str) else None
    return found[1] if found is not None else None
