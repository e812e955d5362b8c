"""Wrapping what a tool returned into ``mcp.envelope.v0.1``, by the rules of seed 000."""

from __future__ import annotations

from typing import Any, Final, overload

from mcp_envelope.core.document import DEFAULT_LIMITS, Document, Limits, dump, parse
from mcp_envelope.core.errors import EnvelopeError, Problem
from mcp_envelope.core.plain import MAX_DEPTH, bounded_text, deeper_than

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

    Of a document the dict holds that document, whose text :func:`dump` splices in.

    The value stands unchanged in ``result``, number text included. An envelope comes back as
    it is, byte for byte; an object that calls itself one and is not valid is an EnvelopeError,
    as is a value so large or deep that its envelope could not be read again.
    """
    if isinstance(data, (bytes, bytearray, memoryview)):
        document = parse(data, limits=limits)
        if _is_envelope(document):
            return document.raw
        _check_room(document, limits)
        return _HEAD + document.raw.strip() + b"}"
    document = Document.of(data)
    if _is_envelope(document):
        return data if isinstance(data, dict) else document.members()
    _check_room(document, limits)
    return {"schema_version": ENVELOPE, "result": data}


def wrap_failure(
    message: str,
    *,
    partial: Document | None = None,
    code: str | None = None,
    exit_code: int | None = None,
) -> bytes:
    """An envelope for a tool that failed: its partial output, or null, and one error.

    ``code`` is the tool's own structured code where it gave one. Message and code are cut to the
    2,000 and 200 characters that the format holds. An envelope as partial output is not nested:
    it gets one error more.
    """
    error: dict[str, object] = {
        "code": (code or FAILED)[:200],
        "message": message[:2000] or "failed",
    }
    if exit_code is not None:
        error["details"] = {"exit_code": exit_code}
    if partial is not None and _is_envelope(partial):
        known = partial.members().get("errors")
        return dump({**partial.members(), "errors": [*(known.elements() if known else ()), error]})
    result: object = partial if partial is not None else None
    envelope = {"schema_version": ENVELOPE, "result": result, "errors": [error]}
    return dump(envelope)


def _is_full(document: Document, most: int) -> bool:
    """Whether a value has so many levels that there is no room around it."""
    if len(document.raw) < 2 * most:
        return False
    if most == MAX_DEPTH:
        try:
            bounded_text([document.value])  # a quick look, which may doubt too much
        except TypeError:
            pass
        else:
            return False
    return deeper_than(document.value, most - 1)


def _check_room(document: Document, limits: Limits) -> None:
    """Raise EnvelopeError if the envelope around a value would pass the limits."""
    size = len(_HEAD) + len(document.raw) + 1
    if size > limits.result:
        raise EnvelopeError(
            f"the envelope would have {size:,} bytes, more than the {limits.result:,} accepted",
            code="TOO_LARGE",
            problems=[Problem("", "document/size", f"{size:,} bytes, limit {limits.result:,}")],
        )
    if _is_full(document, limits.depth):
        message = f"nested so deep that the envelope would have more than {limits.depth} levels"
        raise EnvelopeError(message, problems=[Problem("", "document/too-deep", message)])


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
