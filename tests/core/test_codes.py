"""The error table, compared with the contract row by row."""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_envelope.core import codes
from mcp_envelope.core.answers import Answer, McpAnswer
from mcp_envelope.core.codes import TABLE, TIERED_CODES, CanonicalError, Code
from mcp_envelope.core.errors import EnvelopeError

# code, origin, retry, HTTP, JSON-RPC, 2025-06-18, 2025-11-25, 2026-07-28, tiered, tool, provenance
# as contracts/errors.md has them; an answer is (shape or number, HTTP status).
RESULT, OWN, SILENT, NEVER = ("result", 200), ("own", 200), ("none", 200), ("never", 200)
CONTRACT = """
INVALID_ENVELOPE     client    no  400 -32600 invalid_argument       error ENVELOPE.INVALID
METHOD_NOT_FOUND     client    no  404 -32601 not_implemented        error METHOD.NOT_FOUND
INVALID_TOOL_INPUT   client    no  422 -32602 invalid_argument       error INPUT.INVALID
TOOL_NOT_FOUND       client    no  404 -32001 not_found              error TOOL.NOT_FOUND
UNAUTHENTICATED      policy    no  401 4010   forbidden              error ACCESS.UNAUTHENTICATED
FORBIDDEN            policy    no  403 4030   forbidden              error ACCESS.FORBIDDEN
UPGRADE_REQUIRED     policy    no  403 4031   upgrade_required       error ACCESS.UPGRADE_REQUIRED
TOOL_QUARANTINED     policy    no  409 4090   forbidden              error TOOL.QUARANTINED
TOO_LARGE            policy    no  413 4130   too_large              error LIMIT.TOO_LARGE
RATE_LIMITED         policy    yes 429 4290   resource_exhausted     retry LIMIT.RATE
INVALID_TOOL_OUTPUT  upstream  no  502 5020   internal_error         error OUTPUT.INVALID
EXECUTION_FAILED     upstream  no  502 5022   internal_error         error EXECUTION.FAILED
UPSTREAM_UNAVAILABLE transport yes 503 5030   dependency_unavailable retry UPSTREAM.UNAVAILABLE
OUTCOME_UNKNOWN      transport no  502 5021   internal_error         error UPSTREAM.OUTCOME_UNKNOWN
TIMEOUT              gateway   no  504 5040   timeout                error LIMIT.TIMEOUT
CANCELLED            client    no  499 4990   timeout                error CANCELLED
RECORD_UNAVAILABLE   gateway   yes 503 5031   dependency_unavailable retry RECORD.UNAVAILABLE
UNSUPPORTED_VERSION  client    no  400 -32600 not_implemented        error ENVELOPE.VERSION
HEADER_MISMATCH      client    no  400 -32020 invalid_argument       error ENVELOPE.HEADERS
INTERNAL_ERROR       gateway   no  500 -32603 internal_error         error INTERNAL
"""
MCP_DOOR: dict[str, list[tuple[int | str, int]]] = {
    "INVALID_ENVELOPE": [(-32600, 200), (-32600, 400), (-32600, 400)],
    "METHOD_NOT_FOUND": [(-32601, 200), (-32601, 200), (-32601, 404)],
    "INVALID_TOOL_INPUT": [(-32602, 200), RESULT, RESULT],
    "TOOL_NOT_FOUND": [(-32602, 200)] * 3,
    "UNAUTHENTICATED": [("http", 401)] * 3,
    "INVALID_TOOL_OUTPUT": [RESULT] * 3,
    "EXECUTION_FAILED": [OWN] * 3,
    "CANCELLED": [SILENT] * 3,
    "UNSUPPORTED_VERSION": [(-32602, 400), (-32022, 400), (-32022, 400)],
    "HEADER_MISMATCH": [NEVER, NEVER, (-32020, 400)],
    "INTERNAL_ERROR": [(-32603, 200)] * 3,
}
SHAPES = {
    Answer.RESULT_IS_ERROR: "result",
    Answer.UPSTREAM_OWN: "own",
    Answer.NO_ANSWER: "none",
    Answer.HTTP_ONLY: "http",
    Answer.NEVER: "never",
}
REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
GENERATOR = Path("tools") / "generate_errors.py"


def said(answer: McpAnswer) -> tuple[int | str, int]:
    """An answer as the tables above write it."""
    shape: int | str = answer.code if answer.code is not None else SHAPES[answer.answer]
    return shape, answer.http


def test_the_table_is_the_contracts() -> None:
    """Every row of contracts/errors.md is here, with the same columns, and no other row is."""
    written = "\n".join(
        f"{c.code:20} {c.origin:9} {'yes' if c.retry else 'no':3} {c.http} {c.jsonrpc:<6} "
        f"{c.tiered:22} {c.tool_status} {c.provenance.removeprefix('ADAPTER.')}"
        for c in TABLE.values()
    )
    assert written == CONTRACT.strip()
    assert all(c.provenance.startswith("ADAPTER.") for c in TABLE.values())


@pytest.mark.parametrize("row", TABLE.values(), ids=list(TABLE))
def test_the_mcp_door_speaks_each_revision(row: Code) -> None:
    """What MCP clients get is the contract's; own codes are positive and come with HTTP 200."""
    expected = MCP_DOOR.get(row.code, [(row.jsonrpc, 200)] * 3)
    assert [said(row.mcp(revision)) for revision in REVISIONS] == expected


@pytest.mark.parametrize("row", TABLE.values(), ids=list(TABLE))
def test_no_failed_call_is_a_5xx_on_the_mcp_door(row: Code) -> None:
    """Older clients drop the whole session at a 5xx, so one failed call never is one."""
    assert all(row.mcp(revision).http < 500 for revision in REVISIONS)


def test_special_cases_of_the_mcp_door_are_data() -> None:
    """What the contract says in brackets can be read by the door without parsing prose."""
    assert TABLE["INVALID_ENVELOPE"].mcp("2026-07-28").unparsable == -32700
    assert TABLE["TOO_LARGE"].mcp("2025-06-18").unread_http == 413
    assert TABLE["RATE_LIMITED"].mcp("2025-11-25").retry_after
    assert TABLE["UNAUTHENTICATED"].mcp("2025-11-25").challenge
    assert TABLE["EXECUTION_FAILED"].mcp("2025-11-25").one_shot is Answer.RESULT_IS_ERROR


@pytest.mark.parametrize(
    "code,http,error",
    [
        ("INVALID_ENVELOPE", 400, {"code": -32600, "message": "Invalid MCP envelope"}),
        ("INVALID_TOOL_INPUT", 422, {"code": -32602, "message": "Invalid tool input"}),
        ("TOOL_NOT_FOUND", 404, {"code": -32001, "message": "Unknown tool"}),
        ("INTERNAL_ERROR", 500, {"code": -32603, "message": "Internal error"}),
    ],
)
def test_seed_001_canonical_error_mapping(code: str, http: int, error: dict[str, object]) -> None:
    """Seed 001, "Canonical Error Mapping": the four codes have exactly these values."""
    assert CanonicalError.to_http_status(code) == http
    assert CanonicalError.to_jsonrpc_error(code) == error


@pytest.mark.parametrize(
    "code", ["INVALID_ENVELOP", "invalid_envelope", "", "TOOL", "\ud800", "x" * 999]
)
def test_seed_001_unknown_codes_raise_key_error(code: str) -> None:
    """Seed 001: an unknown code MUST raise KeyError; ours also names the nearest code."""
    with pytest.raises(KeyError, match="did you mean"):
        CanonicalError.to_http_status(code)
    with pytest.raises(KeyError, match="did you mean"):
        CanonicalError.to_jsonrpc_error(code)


def test_the_nearest_code_is_named() -> None:
    """A slip of the keyboard is answered with the code that was meant."""
    with pytest.raises(KeyError, match="did you mean TOOL_NOT_FOUND"):
        CanonicalError.to_http_status("TOOL_NOTFOUND")


def test_to_jsonrpc_error_gives_a_fresh_object() -> None:
    """Callers add ``data`` to what they get; the table must not notice."""
    CanonicalError.to_jsonrpc_error("FORBIDDEN")["data"] = 1
    assert CanonicalError.to_jsonrpc_error("FORBIDDEN") == {"code": 4030, "message": "Not allowed"}


def test_the_table_cannot_be_changed() -> None:
    """Neither rows nor the table can be written to."""
    with pytest.raises(TypeError):
        TABLE["X"] = TABLE["FORBIDDEN"]  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        TABLE["FORBIDDEN"].http = 200  # type: ignore[misc]


def test_messages_and_remedies_are_written() -> None:
    """Every code has a short message of its own, a meaning and something to do."""
    assert len({row.message for row in TABLE.values()}) == len(TABLE)
    for row in TABLE.values():
        assert 0 < len(row.message) <= 40
        assert len(row.meaning) > 40
        assert len(row.remedy) > 40
        assert row.tiered in TIERED_CODES


@pytest.mark.parametrize("row", TABLE.values(), ids=list(TABLE))
def test_numbers_are_free_to_use(row: Code) -> None:
    """Own JSON-RPC numbers are positive; reserved ones mean what JSON-RPC and MCP mean."""
    reserved = {-32600, -32601, -32602, -32603, -32001, -32020}
    assert row.jsonrpc > 0 or row.jsonrpc in reserved
    assert row.retry == (row.tool_status == "retry")


@pytest.mark.parametrize("row", TABLE.values(), ids=list(TABLE))
def test_reverse_lookups_find_the_row(row: Code) -> None:
    """A number or code leads back to its row, or to the documented default where it is shared."""
    shared = {"UNSUPPORTED_VERSION": "INVALID_ENVELOPE"}
    assert codes.by_jsonrpc(row.jsonrpc) == shared.get(row.code, row.code)
    assert codes.by_provenance(row.provenance) == row.code


@pytest.mark.parametrize(
    "number,code",
    [
        (-32700, "INVALID_ENVELOPE"),
        (-32600, "INVALID_ENVELOPE"),
        (-32602, "INVALID_TOOL_INPUT"),
        (-32022, "UNSUPPORTED_VERSION"),
        (-32020, "HEADER_MISMATCH"),
        (-32000, None),
        (0, None),
        (True, None),
        (4030.0, None),
        ("4030", None),
        ([], None),
        (None, None),
    ],
)
def test_numbers_read_back(number: object, code: str | None) -> None:
    """Any JSON value may be asked for; only a known integer has a code."""
    assert codes.by_jsonrpc(number) == code


def test_tiered_words_read_back() -> None:
    """A shared word has its default; a word that tools say of themselves stays a word."""
    known = {word: codes.by_tiered(word) for word in TIERED_CODES}
    assert {word for word, code in known.items() if code is None} == {
        "not_found",
        "invalid_path",
        "not_implemented",
        "resource_exhausted",
        "dependency_unavailable",
    }
    assert all(TABLE[code].tiered == word for word, code in known.items() if code is not None)
    assert known["invalid_argument"] == "INVALID_TOOL_INPUT"
    assert codes.by_tiered("no_such_word") is None
    assert codes.by_provenance("ADAPTER.NO.SUCH") is None


def test_what_a_tool_says_never_becomes_retryable() -> None:
    """Only what did not reach the tool may be retried; a tool's own word never says that."""
    read = [code for word in TIERED_CODES if (code := codes.by_tiered(word)) is not None]
    assert not any(TABLE[code].retry for code in read)


class TroubleError(ValueError):
    """A tool's own exception."""


@pytest.mark.parametrize(
    "exception,code",
    [
        (ValueError("x"), "invalid_argument"),
        (TypeError("x"), "invalid_argument"),
        (TroubleError(), "invalid_argument"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), "invalid_argument"),
        (FileNotFoundError("x"), "not_found"),
        (PermissionError("x"), "forbidden"),
        (TimeoutError(), "timeout"),
        (asyncio.CancelledError(), "timeout"),
        (concurrent.futures.CancelledError(), "timeout"),
        (subprocess.TimeoutExpired("x", 1), "timeout"),
        (NotImplementedError(), "not_implemented"),
        (MemoryError(), "resource_exhausted"),
        (ImportError("x"), "dependency_unavailable"),
        (ModuleNotFoundError("x"), "dependency_unavailable"),
        (KeyError("x"), "internal_error"),
        (IndexError("x"), "internal_error"),
        (AttributeError("x"), "internal_error"),
        (RuntimeError("x"), "internal_error"),
        (RecursionError("x"), "internal_error"),
        (OSError("x"), "internal_error"),
        (ConnectionRefusedError("x"), "internal_error"),
        (IsADirectoryError("x"), "internal_error"),
        (SystemExit(1), "internal_error"),
        (KeyboardInterrupt(), "internal_error"),
        (EnvelopeError("x", code="TOO_LARGE"), "too_large"),
        (EnvelopeError("x", code="NOT_OURS"), "internal_error"),
        (ExceptionGroup("x", [ValueError(), TypeError()]), "invalid_argument"),
        (ExceptionGroup("x", [ExceptionGroup("y", [TimeoutError()])]), "timeout"),
        (ExceptionGroup("x", [ValueError(), TimeoutError()]), "internal_error"),
        (BaseExceptionGroup("x", [asyncio.CancelledError()]), "timeout"),
    ],
    ids=repr,
)
def test_exceptions_map_by_type(exception: BaseException, code: str) -> None:
    """contracts/tiered.md, "Exceptions map by type"; anything not listed is internal_error."""
    assert codes.tiered_code_for(exception) == code


def run_generator(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the generator as a developer does."""
    command = [sys.executable, str(GENERATOR), *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_generated_files_are_fresh(root: Path) -> None:
    """errors.json and docs/errors say what the table says."""
    done = run_generator(root, "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_stale_files_are_noticed_and_mended(root: Path, tmp_path: Path) -> None:
    """A missing, changed or superfluous page fails the check and is put right by a run."""
    there = ("--root", str(tmp_path))
    assert run_generator(root, *there).returncode == 0
    assert run_generator(root, "--check", *there).returncode == 0
    pages = tmp_path / "docs" / "errors"
    (pages / "FORBIDDEN.md").write_text("changed", encoding="utf-8")
    (pages / "TIMEOUT.md").unlink()
    (pages / "OLD_CODE.md").write_text("dropped", encoding="utf-8")
    found = run_generator(root, "--check", *there)
    assert found.returncode == 1
    assert all(name in found.stdout for name in ("FORBIDDEN", "TIMEOUT", "OLD_CODE"))
    assert run_generator(root, *there).returncode == 0
    assert run_generator(root, "--check", *there).returncode == 0
    assert not (pages / "OLD_CODE.md").exists()


def test_the_table_ships_as_data(root: Path) -> None:
    """errors.json is complete and keeps the table's order."""
    path = root / "src" / "mcp_envelope" / "core" / "errors.json"
    entries = json.loads(path.read_text(encoding="utf-8"))["codes"]
    assert [entry["code"] for entry in entries] == list(TABLE)
    assert entries[0]["mcp"]["2026-07-28"] == {
        "answer": "error",
        "http": 400,
        "code": -32600,
        "unparsable_code": -32700,
    }


def test_every_code_has_a_page_that_links_back(root: Path) -> None:
    """Each page says what the code means and what to do; the index leads to all of them."""
    pages = root / "docs" / "errors"
    index = (pages / "README.md").read_text(encoding="utf-8")
    for row in TABLE.values():
        page = (pages / f"{row.code}.md").read_text(encoding="utf-8")
        assert row.meaning in page
        assert row.remedy in page
        assert f"({row.code}.md)" in index
