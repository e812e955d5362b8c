"""Wrapping what a tool returned into ``mcp.envelope.v0.1``, by the rules of seed 000."""

from __future__ import annotations

from typing import Any, Final, overload

from mcp_envelope.core.document import DEFAULT_LIMITS, Document, Limits, dump, parse
from mcp_envelope.core.errors import EnvelopeError

from . import DIALECTS
from .provenance import ENVELOPE

JsonValue = dict[str, Any] | list[Any] | tuple[Any, ...] | str | int | float | None
_HEAD: Final = b'{"schema_version":"' + ENVELOPE.encode() + b'","result":'
FAILED: Final = "ADAPTER.EXECUTION.FAILED"


@overload
def wrap(data: bytes, *, limits: Limits = ...) -> bytes: ...
@overload
def wrap(data: JsonValue | Document, *, limits: Limits = ...) -> dict[str, Any]: ...
def wrap(
    data: bytes | JsonValue | Document, *, limits: Limits = DEFAULT_LIMITS
) -> bytes | dict[str, Any]:
    """Wrap any JSON value: bytes give bytes, a plain value gives a dict.

    The value stands unchanged in ``result``, number text included. An envelope comes back as
    it is, byte for byte; an object that calls itself one and is not valid is an EnvelopeError.
    """
    if isinstance(data, (bytes, bytearray, memoryview)):
        document = parse(data, limits=limits)
        return document.raw if _is_envelope(document) else _HEAD + document.raw.strip() + b"}"
    document = Document.of(data)
    if _is_envelope(document):
        return data if isinstance(data, dict) else document.value
    value = data.value if isinstance(data, Document) else data
    return {"schema_version": ENVELOPE, "result": value}


def wrap_failure(
    message: str,
    *,
    partial: Document | None = None,
    code: str | None = None,
    exit_code: int | None = None,
) -> bytes:
    """An envelope for a tool that failed: its partial output, or null, and one error.

    ``code`` is the tool's own structured code where it gave one. The message is cut to the
    2,000 characters that the format holds.
    """
    error: dict[str, object] = {"code": code or FAILED, "message": message[:2000] or "failed"}
    if exit_code is not None:
        error["details"] = {"exit_code": exit_code}
    result: object = partial if partial is not None else None
    envelope = {"schema_version": ENVELOPE, "result": result, "errors": [error]}
    return dump(envelope)


def _is_envelope(document: Document) -> bool:
    """Whether this is an envelope already; one that only claims to be is refused."""
    value = document.value
    if not isinstance(value, dict) or value.get("schema_version") != ENVELOPE:
        return False
    problems = DIALECTS["provenance/0.1"].problems(document, "response")
    faults = [p for p in problems if p.severity == "error"]
    if faults:
        raise EnvelopeError(
            f"this calls itself {ENVELOPE} but is not valid: {faults[0].message}",
            problems=faults,
            pointer=faults[0].pointer,
            hint="mend it, or give the legacy payload another schema_version",
        )
    return True
