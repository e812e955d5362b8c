"""The facts about a call that ride in its result, under our key of ``_meta``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from mcp_envelope.core.frame import Frame
from mcp_envelope.core.hops import ANNOUNCED
from mcp_envelope.dialects import DIALECTS
from mcp_envelope.pipeline.record import LABEL

#: What a client may ask for in its capabilities, under our key.
OFF: Final = "off"
_PLACES: Final = ("extensions", "experimental")
SCHEMA_VERSION: Final = "mcp.envelope.record.v0.1"
#: Dialects whose answers a tool may return as its own result.
_ENVELOPES: Final = ("provenance/0.1", "tiered/1.0", "tool/1.0", "jsonrpc/2.0")
_LARGEST: Final = 1024 * 1024


def label_of(
    result: Mapping[str, Any], meta: Mapping[str, Any], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """The label of a result; it keeps the one that another gateway put there before."""
    label: dict[str, Any] = {"schema_version": SCHEMA_VERSION, **facts}
    envelope = recognised(result)
    if envelope is not None:
        label["envelope"] = envelope
    if LABEL in meta:
        label["upstream"] = meta[LABEL]
    return label


def advertised(answer: Frame, *, stateless: bool) -> Frame:
    """The answer to a handshake, with what the label is announced by among the capabilities."""
    place = "extensions" if stateless else "experimental"
    holder = answer.value.get("result")
    for name in ("capabilities", place):
        holder = holder.get(name, {}) if isinstance(holder, dict) else None
    if not isinstance(holder, dict) or LABEL in holder:
        return answer
    return answer.put(
        ("result", "capabilities", place, LABEL), {"modes": ["meta", OFF], ANNOUNCED: True}
    )


def is_gateway(result: Mapping[str, Any]) -> bool:
    """Whether the answer to a handshake comes from a gateway like this one, on pipes."""
    holder: Any = result
    for name in ("capabilities", "experimental", LABEL):
        holder = holder.get(name) if isinstance(holder, dict) else None
    return isinstance(holder, dict) and holder.get(ANNOUNCED) is True


def wanted_mode(capabilities: object) -> str | None:
    """The mode that a client asks for in its capabilities, None if it does not."""
    for place in _PLACES:
        holder = capabilities.get(place) if isinstance(capabilities, dict) else None
        asked = holder.get(LABEL) if isinstance(holder, dict) else None
        if isinstance(asked, dict) and isinstance(asked.get("mode"), str):
            return str(asked["mode"])
    return None


def recognised(result: Mapping[str, Any]) -> str | None:
    """The dialect of the envelope that a tool returned by itself, None if it did not."""
    payload = result.get("structuredContent")
    if payload is None:
        payload = _sole_text(result.get("content"))
    if not isinstance(payload, dict):
        return None
    for name in _ENVELOPES:
        part = DIALECTS[name].detect(payload)
        if part is not None and "request" not in part:
            return name
    return None


def _sole_text(content: object) -> object:
    """The JSON object that a result's only text block holds, if that is what it is."""
    if not isinstance(content, list) or len(content) != 1 or not isinstance(content[0], dict):
        return None
    text = content[0].get("text")
    if not isinstance(text, str) or not text.startswith("{") or len(text) > _LARGEST:
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
