"""The wire formats. Adding one is a file in this package and a line in :data:`TABLE`."""

from __future__ import annotations

from typing import Final

from mcp_envelope.core.document import Document
from mcp_envelope.core.errors import EnvelopeError, Problem
from mcp_envelope.core.ports import Dialect
from mcp_envelope.core.registry import Registry

# In the order in which they are asked whether a document is theirs.
TABLE: Final = {
    "provenance/0.1": "mcp_envelope.dialects.provenance:Provenance",
    "mcpx/0.1": "mcp_envelope.dialects.mcpx:Mcpx",
    "tiered/1.0": "mcp_envelope.dialects.tiered:Tiered",
    "tool/1.0": "mcp_envelope.dialects.tool:Tool",
    "jsonrpc/2.0": "mcp_envelope.dialects.jsonrpc:JsonRpc",
    "mcp": "mcp_envelope.dialects.mcp:Mcp",
}

DIALECTS: Final[Registry[Dialect]] = Registry("dialect", TABLE)


def recognise(document: Document) -> tuple[Dialect, str]:
    """The dialect of a document and which part of it this is; EnvelopeError if none fits."""
    for name in DIALECTS:
        part = DIALECTS[name].detect(document.value)
        if part is not None:
            return DIALECTS[name], part
    message = "this is no envelope of a known dialect"
    hint = f"name one if you know better: {', '.join(DIALECTS)}"
    if isinstance(document.value, list):
        message, hint = "an array is no envelope", "of a batch, send each message by itself"
    raise EnvelopeError(
        message, hint=hint, problems=[Problem("", "envelope/unknown-dialect", message, hint)]
    )
