"""The error table: every code that this product says, and how each door and dialect says it.

Everything else is read or generated from :data:`TABLE`: :class:`CanonicalError`, the doors,
``errors.json`` beside this file and the pages in docs/errors (``tools/generate_errors.py``).

A record that cannot be written *after* a call was dispatched is no code of its own: the tool
may have acted, so it is said as ``OUTCOME_UNKNOWN``, with the reason in ``data``.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

from .answers import (
    HTTP_ONLY,
    NEVER,
    NO_ANSWER,
    RESULT_IS_ERROR,
    UPSTREAM_OWN,
    McpAnswer,
    error,
)
from .errors import EnvelopeError

Side = Literal["client", "policy", "upstream", "transport", "gateway"]
#: The error codes of tiered/1.0. A tool may use any of them for failures of its own.
TIERED_CODES: Final = frozenset({
    "invalid_argument", "invalid_path", "forbidden", "not_found", "timeout", "too_large",
    "resource_exhausted", "not_implemented", "upgrade_required", "dependency_unavailable",
    "internal_error",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Code:
    """A row of the table.

    ``origin`` is the side that failed, ``retry`` whether the same call may simply be sent
    again, ``message`` the fixed text beside the number (detail belongs into ``data``).
    ``jsonrpc`` is the number at ``/rpc``, ``http`` the status there and at ``…/invoke``; where
    ``at_rpc`` is false, the code occurs at the MCP door only, and these are MCP's own. Where
    ``tiered_by_exception`` is true, ``tiered`` is only what is said without an exception at
    hand; else see :func:`tiered_code_for`. ``tool_status`` is that of tool/1.0.
    """

    code: str
    origin: Side
    retry: bool
    http: int
    jsonrpc: int
    message: str
    mcp_2025_06_18: McpAnswer
    mcp_later: McpAnswer
    tiered: str
    tool_status: Literal["error", "retry"]
    provenance: str
    meaning: str
    remedy: str
    tiered_by_exception: bool = False
    at_rpc: bool = True

    def mcp(self, revision: str) -> McpAnswer:
        """What the MCP door says in a session of this revision."""
        row = self.mcp_2025_06_18 if revision < "2025-11-25" else self.mcp_later
        return row.at(revision)


_EVERYWHERE = McpAnswer(RESULT_IS_ERROR)
_OWN = McpAnswer(UPSTREAM_OWN, one_shot=RESULT_IS_ERROR)
_UNAUTHENTICATED = McpAnswer(HTTP_ONLY, http=401, challenge=True)
_ROWS: Final = (
    Code(
        code="INVALID_ENVELOPE", origin="client", retry=False, http=400, jsonrpc=-32600,
        message="Invalid MCP envelope",
        mcp_2025_06_18=replace(error(-32600), unparsable=-32700),
        mcp_later=replace(error(-32600, 400), unparsable=-32700),
        tiered="invalid_argument", tool_status="error", provenance="ADAPTER.ENVELOPE.INVALID",
        meaning="What arrived is not strict JSON, or not an envelope of the dialect in which it "
        "came: a member is missing, of the wrong type, given twice, or named differently. "
        "Nothing was sent to any tool.",
        remedy="Look at `pointer` and `hint` in `data`, or run `mcp-envelope validate FILE` on "
        "the same bytes: it names every problem with its place. Mend the client.",
    ),
    Code(
        code="METHOD_NOT_FOUND", origin="client", retry=False, http=404, jsonrpc=-32601,
        message="Method not found",
        mcp_2025_06_18=error(-32601), mcp_later=replace(error(-32601), stateless_http=404),
        tiered="not_implemented", tool_status="error", provenance="ADAPTER.METHOD.NOT_FOUND",
        meaning="The envelope is right, but neither the gateway nor the server behind it knows "
        "the method. A tool that is missing is `TOOL_NOT_FOUND` instead.",
        remedy="Check the spelling of `method` (`tools/call`, not `tool/call`), and whether the "
        "server announced the capability that the method belongs to.",
    ),
    Code(
        code="INVALID_TOOL_INPUT", origin="client", retry=False, http=422, jsonrpc=-32602,
        message="Invalid tool input", mcp_2025_06_18=error(-32602), mcp_later=_EVERYWHERE,
        tiered="invalid_argument", tool_status="error", provenance="ADAPTER.INPUT.INVALID",
        meaning="The arguments do not satisfy the tool's input schema. The tool was not called.",
        remedy="`pointer` names the argument and `hint` what the schema wants there. If the "
        "client is right, the tool's published schema is wrong: mend it at the server.",
    ),
    Code(
        code="TOOL_NOT_FOUND", origin="client", retry=False, http=404, jsonrpc=-32001,
        message="Unknown tool", mcp_2025_06_18=error(-32602), mcp_later=error(-32602),
        tiered="not_found", tool_status="error", provenance="ADAPTER.TOOL.NOT_FOUND",
        meaning="No tool of that name is served here. A caller who may not use a tool gets "
        "`FORBIDDEN`, whether or not the tool exists.",
        remedy="List the tools (`tools/list`, `GET /v1/tools`). Behind a gateway with several "
        "servers a tool is called `<server>__<tool>`.",
    ),
    Code(
        code="UNAUTHENTICATED", origin="policy", retry=False, http=401, jsonrpc=4010,
        message="Authentication required",
        mcp_2025_06_18=_UNAUTHENTICATED, mcp_later=_UNAUTHENTICATED,
        tiered="forbidden", tool_status="error", provenance="ADAPTER.ACCESS.UNAUTHENTICATED",
        meaning="The caller sent no credential, or one that is expired, revoked, or made for "
        "somebody else.",
        remedy="Get a new token; the `WWW-Authenticate` header says from where. If tokens that "
        "were good a minute ago fail, compare clocks and the issuer's keys: `mcp-envelope "
        "doctor`.",
    ),
    Code(
        code="FORBIDDEN", origin="policy", retry=False, http=403, jsonrpc=4030,
        message="Not allowed", mcp_2025_06_18=error(4030), mcp_later=error(4030),
        tiered="forbidden", tool_status="error", provenance="ADAPTER.ACCESS.FORBIDDEN",
        meaning="The caller is known, and none of its capabilities covers this kind of message. "
        "Nothing was sent to the tool.",
        remedy="The record of the refusal has the `kind` that was asked for and the `peer`. "
        "Grant that kind, as narrowly as the work needs, or leave it refused.",
    ),
    Code(
        code="UPGRADE_REQUIRED", origin="policy", retry=False, http=403, jsonrpc=4031,
        message="A higher tier is required", mcp_2025_06_18=error(4031), mcp_later=error(4031),
        tiered="upgrade_required", tool_status="error",
        provenance="ADAPTER.ACCESS.UPGRADE_REQUIRED",
        meaning="The tool, or an argument's value, belongs to a tier above the caller's.",
        remedy="The upgrade hint names feature and tier. Tiers come from the token's claims or "
        "the configuration, never from the request.",
    ),
    Code(
        code="TOOL_QUARANTINED", origin="policy", retry=False, http=409, jsonrpc=4090,
        message="Tool quarantined", mcp_2025_06_18=error(4090), mcp_later=error(4090),
        tiered="forbidden", tool_status="error", provenance="ADAPTER.TOOL.QUARANTINED",
        meaning="The tool's definition differs from the one that was pinned, and calls wait "
        "until somebody has approved the change.",
        remedy="Read what changed, description included: a changed description can change what "
        "a model does. Approve the new digest, or have the server restored.",
    ),
    Code(
        code="TOO_LARGE", origin="policy", retry=False, http=413, jsonrpc=4130,
        message="Too large",
        mcp_2025_06_18=replace(error(4130), unread_http=413),
        mcp_later=replace(error(4130), unread_http=413),
        tiered="too_large", tool_status="error", provenance="ADAPTER.LIMIT.TOO_LARGE",
        meaning="A request or a result is longer than the limit set for it (4 MiB and 64 MiB "
        "unless set otherwise).",
        remedy="Send less, or pass a reference instead of contents. Raise the limit only if "
        "such sizes are wanted: it is there to bound memory.",
    ),
    Code(
        code="RATE_LIMITED", origin="policy", retry=True, http=429, jsonrpc=4290,
        message="Too many calls",
        mcp_2025_06_18=replace(error(4290), retry_after=True),
        mcp_later=replace(error(4290), retry_after=True),
        tiered="resource_exhausted", tool_status="retry", provenance="ADAPTER.LIMIT.RATE",
        meaning="The caller has used up its share for now. Nothing was sent to the tool.",
        remedy="Wait `retryAfter` seconds, then send it again. If it happens in ordinary work, "
        "raise the limit of that peer; if suddenly, look for a client in a loop.",
    ),
    Code(
        code="INVALID_TOOL_OUTPUT", origin="upstream", retry=False, http=502, jsonrpc=5020,
        message="Invalid tool output", mcp_2025_06_18=_EVERYWHERE, mcp_later=_EVERYWHERE,
        tiered="internal_error", tool_status="error", provenance="ADAPTER.OUTPUT.INVALID",
        meaning="The tool ran, and its result does not satisfy its own output schema. Said only "
        "where outputs are checked strictly; else it is a warning.",
        remedy="The tool has acted: do not call it again only for this. Mend the tool or its "
        "schema; until then set that tool's output check to `warn`.",
    ),
    Code(
        code="EXECUTION_FAILED", origin="upstream", retry=False, http=502, jsonrpc=5022,
        message="Tool failed", mcp_2025_06_18=_OWN, mcp_later=_OWN,
        tiered="internal_error", tiered_by_exception=True, tool_status="error",
        provenance="ADAPTER.EXECUTION.FAILED",
        meaning="The tool was called and said itself that it failed: an exception, an exit "
        "status, a result marked `isError`.",
        remedy="Read the tool's own message; the gateway has nothing to add. What the tool did "
        "before it failed is for the tool's log to say.",
    ),
    Code(
        code="UPSTREAM_UNAVAILABLE", origin="transport", retry=True, http=503, jsonrpc=5030,
        message="Upstream unavailable", mcp_2025_06_18=error(5030), mcp_later=error(5030),
        tiered="dependency_unavailable", tool_status="retry",
        provenance="ADAPTER.UPSTREAM.UNAVAILABLE",
        meaning="The server behind the gateway could not be reached, and nothing was sent to it.",
        remedy="Sending it again is safe. Does the server run, is its address right, does its "
        "command start by hand? `mcp-envelope doctor` tries each upstream.",
    ),
    Code(
        code="OUTCOME_UNKNOWN", origin="transport", retry=False, http=502, jsonrpc=5021,
        message="Outcome unknown", mcp_2025_06_18=error(5021), mcp_later=error(5021),
        tiered="internal_error", tool_status="error",
        provenance="ADAPTER.UPSTREAM.OUTCOME_UNKNOWN",
        meaning="The call was sent, then the connection, the process or the record was lost. The "
        "tool may have acted or not. Also said when the record could not be written after the "
        "call was dispatched; `data` then says so.",
        remedy="Find out at the tool's side whether it acted, before anybody repeats the call. "
        "Retry only what may harmlessly happen twice.",
    ),
    Code(
        code="TIMEOUT", origin="gateway", retry=False, http=504, jsonrpc=5040,
        message="Timed out", mcp_2025_06_18=error(5040), mcp_later=error(5040),
        tiered="timeout", tool_status="error", provenance="ADAPTER.LIMIT.TIMEOUT",
        meaning="The call was sent, and no answer came in time. The tool may still be working, "
        "and may have acted.",
        remedy="As for `OUTCOME_UNKNOWN`: look before repeating. If the tool is merely slow, "
        "give it a longer limit.",
    ),
    Code(
        code="CANCELLED", origin="client", retry=False, http=499, jsonrpc=4990,
        message="Cancelled", mcp_2025_06_18=McpAnswer(NO_ANSWER), mcp_later=McpAnswer(NO_ANSWER),
        tiered="timeout", tool_status="error", provenance="ADAPTER.CANCELLED",
        meaning="The caller took the call back. The cancellation was passed on; how far the tool "
        "had got is not known.",
        remedy="Nothing to mend here. Many of these from one client: its own time limit is "
        "shorter than the tool needs.",
    ),
    Code(
        code="RECORD_UNAVAILABLE", origin="gateway", retry=True, http=503, jsonrpc=5031,
        message="Record unavailable", mcp_2025_06_18=error(5031), mcp_later=error(5031),
        tiered="dependency_unavailable", tool_status="retry",
        provenance="ADAPTER.RECORD.UNAVAILABLE",
        meaning="The record could not be written, so the call was not dispatched: nothing runs "
        "here unrecorded. The same trouble after dispatch is said as `OUTCOME_UNKNOWN`.",
        remedy="Is the disk full, the database up, the file held by another process? Once the "
        "record can be written again, sending the call again is safe.",
    ),
    Code(
        code="UNSUPPORTED_VERSION", origin="client", retry=False, http=400, jsonrpc=-32600,
        message="Unsupported version",
        mcp_2025_06_18=error(-32602, 400), mcp_later=error(-32022, 400),
        tiered="not_implemented", tool_status="error", provenance="ADAPTER.ENVELOPE.VERSION",
        meaning="The envelope, or the MCP session, is of a version that is not served here.",
        remedy="`data.supported` and the hint list what is served. Update the older side.",
    ),
    Code(
        code="HEADER_MISMATCH", origin="client", retry=False, http=400, jsonrpc=-32020,
        message="Header mismatch", at_rpc=False,
        mcp_2025_06_18=McpAnswer(NEVER), mcp_later=replace(error(-32020, 400), since="2026-07-28"),
        tiered="invalid_argument", tool_status="error", provenance="ADAPTER.ENVELOPE.HEADERS",
        meaning="An HTTP header that repeats something from the body (`Mcp-Method`, `Mcp-Name`, "
        "`Mcp-Param-…`) says something else than the body, or is missing. Occurs at the MCP "
        "door only; `/rpc` has no such headers.",
        remedy="A proxy that rewrites bodies or headers is the usual culprit. Compare both as "
        "they arrive; the hint names the header.",
    ),
    Code(
        code="INTERNAL_ERROR", origin="gateway", retry=False, http=500, jsonrpc=-32603,
        message="Internal error", mcp_2025_06_18=error(-32603), mcp_later=error(-32603),
        tiered="internal_error", tool_status="error", provenance="ADAPTER.INTERNAL",
        meaning="A fault in the gateway itself. Whether the tool was called stands in the record.",
        remedy="Report it, with the log's lines for this `requestId`. In the record, a call that "
        "is admitted and not settled may have acted.",
    ),
)  # fmt: skip
TABLE: Final[Mapping[str, Code]] = MappingProxyType({row.code: row for row in _ROWS})

# The row that stands first wins a number that several share; then MCP's own numbers follow.
_BY_JSONRPC: Final = {
    **{row.mcp_later.code: row.code for row in reversed(_ROWS) if row.mcp_later.code is not None},
    -32700: "INVALID_ENVELOPE",
    **{row.jsonrpc: row.code for row in reversed(_ROWS)},
}
_BY_PROVENANCE: Final = {row.provenance: row.code for row in _ROWS}
# Only words that mean a code whoever says them. A tool says `not_found` of a file too, and
# `dependency_unavailable` after it has acted: to read those as codes of the gateway's would
# claim an unknown tool, or that a retry is safe.
_BY_TIERED: Final = {
    "invalid_argument": "INVALID_TOOL_INPUT",
    "forbidden": "FORBIDDEN",
    "timeout": "TIMEOUT",
    "too_large": "TOO_LARGE",
    "upgrade_required": "UPGRADE_REQUIRED",
    "internal_error": "INTERNAL_ERROR",
}
_EXCEPTIONS: Final = (
    (ImportError, "dependency_unavailable"),
    (FileNotFoundError, "not_found"),
    (PermissionError, "forbidden"),
    (TimeoutError, "timeout"),
    (NotImplementedError, "not_implemented"),
    (MemoryError, "resource_exhausted"),
    # A KeyError is no ValueError, and rightly so: a missing key is the tool's own slip.
    ((ValueError, TypeError), "invalid_argument"),
)
# By name, because a core without I/O does not import asyncio or subprocess.
_ENDED_EARLY: Final = frozenset({"CancelledError", "Cancelled", "TimeoutExpired"})


def by_jsonrpc(number: object) -> str | None:
    """The code that a JSON-RPC number means.

    Defaults where a number is shared: -32600 is INVALID_ENVELOPE, -32602 INVALID_TOOL_INPUT.
    MCP's own numbers (-32700, -32020, -32022) are known too.
    """
    return _BY_JSONRPC.get(number) if type(number) is int else None


def is_number_of(number: object, code: object) -> bool:
    """Whether any door says a code by this JSON-RPC number."""
    row = TABLE.get(code) if isinstance(code, str) else None
    return row is not None and number in (row.jsonrpc, row.mcp_2025_06_18.code, row.mcp_later.code)


def by_provenance(code: str) -> str | None:
    """The code that an ``errors[].code`` of provenance/0.1 stands for."""
    return _BY_PROVENANCE.get(code)


def by_tiered(error_code: str) -> str | None:
    """The code that an ``error_code`` of tiered/1.0 means, whoever says it.

    ``invalid_argument`` is INVALID_TOOL_INPUT, and a code of the same name is meant where
    there is one. None for what tools say of failures of their own: ``not_found``,
    ``invalid_path``, ``not_implemented``, ``resource_exhausted``, ``dependency_unavailable``.
    """
    return _BY_TIERED.get(error_code)


def tiered_code_for(exception: BaseException) -> str:
    """The error code of tiered/1.0 for an exception that ended a tool.

    A group of exceptions gets the code that all of its members share, else internal_error.
    """
    found = set()
    pending = [exception]
    while pending:
        one = pending.pop()
        if isinstance(one, BaseExceptionGroup):
            pending += one.exceptions
        else:
            found.add(_tiered_code_for_one(one))
    return found.pop() if len(found) == 1 else "internal_error"


def _tiered_code_for_one(exception: BaseException) -> str:
    if isinstance(exception, EnvelopeError) and exception.code in TABLE:
        return TABLE[exception.code].tiered
    if any(kind.__name__ in _ENDED_EARLY for kind in type(exception).__mro__):
        return "timeout"
    for kinds, code in _EXCEPTIONS:
        if isinstance(exception, kinds):
            return code
    return "internal_error"


def find(code: str) -> Code:
    """The row of a code; KeyError, naming the nearest code, where there is none."""
    row = TABLE.get(code)
    if row is None:
        near = difflib.get_close_matches(str(code).upper(), TABLE, n=1, cutoff=0.0)
        raise KeyError(f"no error code {str(code)[:60]!r}; did you mean {near[0]}?")
    return row


class CanonicalError:
    """What a code is over HTTP and in JSON-RPC. An unknown code raises KeyError, always."""

    @staticmethod
    def to_http_status(code: str) -> int:
        """The HTTP status, at every door but MCP's."""
        return find(code).http

    @staticmethod
    def to_jsonrpc_error(code: str) -> dict[str, int | str]:
        """Exactly ``code`` and ``message``; detail is added where a real call fails."""
        row = find(code)
        return {"code": row.jsonrpc, "message": row.message}
