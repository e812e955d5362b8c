"""What the MCP door says when a call fails: the error table, in the words of each revision."""

from __future__ import annotations

import math
from typing import Any, Final

from mcp_envelope.core import codes
from mcp_envelope.core.answers import Answer as Shape
from mcp_envelope.core.answers import McpAnswer
from mcp_envelope.core.document import dump
from mcp_envelope.core.door import STATELESS, Answer
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, FrameError, Id

_LONGEST: Final = 2_000
_INTERNAL: Final = "INTERNAL_ERROR"
#: The HTTP statuses of a stateless answer whose upstream has no HTTP of its own.
_STATELESS_STATUS: Final = {
    -32700: 400, -32600: 400, -32601: 404, -32602: 400, -32020: 400, -32021: 400, -32022: 400,
}  # fmt: skip


class MissingMetaError(EnvelopeError):
    """A request of 2026-07-28 without what its ``_meta`` must have; MCP has a number for it."""

    number: Final = -32602

    def __init__(self, name: str) -> None:
        place = f"/params/_meta/{name.replace('/', '~1')}"
        super().__init__(f"params._meta lacks {name}", pointer=place, hint="add it")


def failure(error: EnvelopeError, *, id: Id | None, revision: str, request_id: str) -> Answer:
    """The answer for an error of the gateway's own."""
    row = codes.TABLE.get(error.code) or codes.TABLE[_INTERNAL]
    said = row.mcp(revision)
    if said.answer is Shape.NEVER:  # a code that this revision has no word for
        row = codes.TABLE["INVALID_ENVELOPE"]
        said = row.mcp(revision)
    if said.answer is Shape.NO_ANSWER:
        return Answer()
    if said.answer is Shape.HTTP_ONLY:
        return Answer(status=said.http)
    if said.answer in (Shape.RESULT_IS_ERROR, Shape.UPSTREAM_OWN):
        return Answer(raw=_tool_error(row, error, id, revision), status=said.http)
    number = said.code if said.code is not None else row.jsonrpc
    status = said.http
    if isinstance(error, MissingMetaError):
        number, status = error.number, 400
    if isinstance(error, FrameError):
        status = 400
        if not error.parsed and said.unparsable is not None:
            number = said.unparsable
    fault = {"code": number, "message": row.message, "data": _data(row, said, error, request_id)}
    return Answer(raw=dump({"jsonrpc": "2.0", "id": id, "error": fault}), status=status)


def _data(
    row: codes.Code, said: McpAnswer, error: EnvelopeError, request_id: str
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "code": row.code,
        "retryable": row.retry,
        "requestId": request_id,
        "detail": _short(error.message),
        "pointer": error.pointer,
        "hint": error.hint or None,
        "line": error.line,
        "column": error.column,
    }
    wait = getattr(error, "retry_after", None)
    if said.retry_after or wait is not None:
        found["retryAfter"] = math.ceil(wait or 1)
    found |= error.data
    return {name: value for name, value in found.items() if value is not None}


def _tool_error(row: codes.Code, error: EnvelopeError, id: Id | None, revision: str) -> bytes:
    """A result that is marked ``isError``: how a tool's failure reaches the model."""
    place = f" at {error.pointer}" if error.pointer else ""
    hint = f"; {error.hint}" if error.hint else ""
    text = _short(f"{row.message}: {error.message}{place}{hint}")
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": True}
    if revision >= STATELESS:
        result["resultType"] = "complete"
    return dump({"jsonrpc": "2.0", "id": id, "result": result})


def status_of(frame: Frame, revision: str) -> int:
    """The HTTP status for an answer of an upstream that speaks no HTTP."""
    error = frame.value.get("error")
    if revision < STATELESS or not isinstance(error, dict):
        return 200
    code = error.get("code")
    return _STATELESS_STATUS.get(code, 200) if isinstance(code, int) else 200


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
