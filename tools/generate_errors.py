"""Write what is made from the error table: errors.json in the package, and docs/errors.

    python tools/generate_errors.py          write the files, remove pages of dropped codes
    python tools/generate_errors.py --check  exit 1, naming them, where files are stale

Nothing else may be written by hand there: change src/mcp_envelope/core/codes.py instead.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from mcp_envelope.core.answers import McpAnswer  # noqa: E402
from mcp_envelope.core.codes import TABLE, Code  # noqa: E402

DATA = Path("src/mcp_envelope/core/errors.json")
PAGES = Path("docs/errors")
NOTE = "<!-- Made by tools/generate_errors.py from src/mcp_envelope/core/codes.py. -->"
REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")


def generate() -> dict[Path, str]:
    """Every generated file's text by its path, relative to the project."""
    return {
        DATA: _json() + "\n",
        PAGES / "README.md": _index(),
        **{PAGES / f"{row.code}.md": _page(row) for row in TABLE.values()},
    }


def stale(root: Path) -> list[Path]:
    """The generated files under a root that are missing, out of date, or too many."""
    wanted = generate()
    found = [path for path, text in wanted.items() if _read(root / path) != text]
    extra = sorted((root / PAGES).glob("*.md")) if (root / PAGES).is_dir() else []
    return found + [p.relative_to(root) for p in extra if p.relative_to(root) not in wanted]


def write(root: Path) -> list[Path]:
    """Write what is stale; the paths that changed."""
    wanted = generate()
    changed = stale(root)
    for path in changed:
        target = root / path
        if path in wanted:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(wanted[path], encoding="utf-8", newline="\n")
        else:
            target.unlink()
    return changed


def main(arguments: list[str] | None = None) -> int:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing, exit 1 if stale")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    paths = stale(options.root) if options.check else write(options.root)
    for path in paths:
        print(f"{'stale' if options.check else 'written'}: {path.as_posix()}")
    if options.check and paths:
        print("run: python tools/generate_errors.py", file=sys.stderr)
        return 1
    return 0


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _json() -> str:
    return json.dumps({"codes": [_entry(row) for row in TABLE.values()]}, indent=2)


def _entry(row: Code) -> dict[str, object]:
    return {
        "code": row.code,
        "origin": row.origin,
        "retry": row.retry,
        "http": row.http,
        "jsonrpc": row.jsonrpc,
        "at_rpc": row.at_rpc,
        "message": row.message,
        "mcp": {revision: _answer(row.mcp(revision)) for revision in REVISIONS},
        "tiered": row.tiered,
        "tiered_by_exception": row.tiered_by_exception,
        "tool_status": row.tool_status,
        "provenance": row.provenance,
        "meaning": row.meaning,
        "remedy": row.remedy,
    }


def _answer(answer: McpAnswer) -> dict[str, object]:
    given = {
        "code": answer.code,
        "unparsable_code": answer.unparsable,
        "unread_http": answer.unread_http,
        "one_shot": answer.one_shot.name.lower() if answer.one_shot else None,
        "www_authenticate": answer.challenge or None,
        "retry_after": answer.retry_after or None,
    }
    silent = answer.answer.name in ("NO_ANSWER", "NEVER")
    head: dict[str, object] = {"answer": answer.answer.name.lower()}
    if not silent:
        head["http"] = answer.http
    return {**head, **{name: value for name, value in given.items() if value is not None}}


def _index() -> str:
    rows = [
        f"| [`{row.code}`]({row.code}.md) | {row.origin} | {_yes(row.retry)} | {row.http} "
        f"| {row.jsonrpc} | `{_tiered(row)}` | `{row.provenance}` |"
        for row in TABLE.values()
    ]
    return "\n".join(
        [
            NOTE,
            "# Error codes",
            "",
            "Whatever goes wrong is said with one of these codes, at every door and in every",
            "dialect. `mcp-envelope errors CODE` shows the same as the pages here;",
            "`errors.json` in the package is the table for programs.",
            "",
            "| code | origin | retry | HTTP | JSON-RPC | tiered/1.0 | provenance/0.1 |",
            "|---|---|---|---|---|---|---|",
            *rows,
            "",
            "- **retry** says whether the same call may simply be sent again. It may only where",
            "  nothing reached the tool: an unknown outcome is never retryable.",
            "- Our own JSON-RPC numbers are positive, outside every range that JSON-RPC and MCP",
            "  reserve. The number and `message` are fixed; what is particular to a call stands",
            "  in `data`: `code`, `retryable`, `requestId` and, where it helps, `pointer`, `hint`.",
            "- A record that cannot be written **before** a call is dispatched is",
            "  `RECORD_UNAVAILABLE`, and the call does not run. **After** dispatch the tool may",
            "  have acted: that is said as `OUTCOME_UNKNOWN`, with the reason in `data`.",
            "- In tiered/1.0, `EXECUTION_FAILED` is told by the exception: a bad value or type",
            "  is `invalid_argument`, a missing file `not_found`, a permission `forbidden`, a",
            "  timeout or cancellation `timeout`, memory `resource_exhausted`, a missing Python",
            "  package `dependency_unavailable`, something not implemented `not_implemented`,",
            "  anything else `internal_error`.",
            "- Read back, a number or word that several codes share means: -32600",
            "  `INVALID_ENVELOPE`, -32602 and `invalid_argument` `INVALID_TOOL_INPUT`,",
            "  `forbidden` `FORBIDDEN`, `timeout` `TIMEOUT`, `internal_error` `INTERNAL_ERROR`.",
            "  `not_found`, `invalid_path`, `not_implemented`, `resource_exhausted` and",
            "  `dependency_unavailable` stay what they are: tools say them of their own failures.",
            "",
        ]
    )


def _page(row: Code) -> str:
    mcp = [f"| MCP {revision} | {row.mcp(revision)} |" for revision in REVISIONS]
    return "\n".join(
        [
            NOTE,
            f"# {row.code}",
            "",
            f"*{row.message}.* Origin: {row.origin}. Retry: {_yes(row.retry)}.",
            "",
            row.meaning,
            "",
            "## What to do",
            "",
            row.remedy,
            "",
            "## How it is said",
            "",
            "| where | what |",
            "|---|---|",
            f"| HTTP (`/rpc`, `…/invoke`) | {row.http} |",
            f"| JSON-RPC (`/rpc`) | {_jsonrpc(row)} |",
            *mcp,
            f"| tiered/1.0 `error_code` | `{_tiered(row)}` |",
            f"| tool/1.0 `status.code` | `{row.tool_status}` |",
            f"| provenance/0.1 `errors[].code` | `{row.provenance}` |",
            "",
            "[All codes](README.md)",
            "",
        ]
    )


def _jsonrpc(row: Code) -> str:
    said = json.dumps({"code": row.jsonrpc, "message": row.message})
    return f"`{said}`" if row.at_rpc else f"does not occur; in MCP's own words `{said}`"


def _tiered(row: Code) -> str:
    return "by exception" if row.tiered_by_exception else row.tiered


def _yes(value: bool) -> str:
    return "yes" if value else "no"


if __name__ == "__main__":
    sys.exit(main())
