"""What a call is about, as the record and the policies name it."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame
from mcp_envelope.core.kind import Kind
from mcp_envelope.pipeline.call import TOOL_CALL, Call

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
