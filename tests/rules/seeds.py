"""The complete envelopes of the five seeds, and how the tests of their rules look at them.

``tests/vectors/seeds`` holds each as a file of its own, laid out as the seed has it. Those of seed
003 are fragments there: ``protocol``, ``id``, ``from`` and, on responses, ``correlation_id`` were
added, comments taken out, and a standard MCP response put where the seed only says "…".
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import mcp_envelope as me
from mcp_envelope.core.plain import same_value
from mcp_envelope.core.pointer import pointer_of
from mcp_envelope.dialects import DIALECTS

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "tests" / "vectors" / "seeds"
TARGETS: Final = tuple(DIALECTS)

#: What each envelope is to be recognised as: dialect, part, class of the message.
ENVELOPES: Final[dict[str, tuple[str, str, type[me.Message]]]] = {
    "000-adopt-json": ("provenance/0.1", "response", me.Success),
    "000-adopt-text": ("provenance/0.1", "response", me.Success),
    "000-adopt-provenance": ("provenance/0.1", "response", me.Success),
    "000-failure": ("provenance/0.1", "response", me.Failure),
    "000-legacy-json": ("provenance/0.1", "response", me.Success),
    "000-legacy-text": ("provenance/0.1", "response", me.Success),
    "002-success": ("tiered/1.0", "response", me.Success),
    "002-error": ("tiered/1.0", "response", me.Failure),
    "003-ambiguous-response": ("mcpx/0.1", "envelope", me.Success),
    "003-option-1": ("mcpx/0.1", "envelope", me.Success),
    "003-option-2": ("mcpx/0.1", "envelope", me.Success),
    "003-option-3": ("mcpx/0.1", "envelope", me.Success),
    "003-tool-response": ("mcpx/0.1", "envelope", me.Success),
    "003-resource-response": ("mcpx/0.1", "envelope", me.Success),
    "003-prompt-response": ("mcpx/0.1", "envelope", me.Success),
    "004-request": ("tool/1.0", "request", me.Request),
    "004-response": ("tool/1.0", "response", me.Success),
}


def raw(name: str) -> bytes:
    """An envelope of the seeds, byte for byte as its file has it."""
    return (FOLDER / f"{name}.json").read_bytes()


def envelope(name: str) -> me.Document:
    """The same, read strictly."""
    return me.parse(raw(name))


def text(value: object) -> bytes:
    """JSON for a plain value, with spaces, as most programs write it."""
    return json.dumps(value, ensure_ascii=False).encode()


def mended(name: str, /, **members: object) -> bytes:
    """An envelope of the seeds with some members replaced; ``...`` takes one out."""
    value = {**envelope(name).value, **members}
    return text({key: part for key, part in value.items() if part is not ...})


def errors(data: bytes, dialect: str | None = None, part: str | None = None) -> list[str]:
    """Where an envelope is wrong: the pointers of its errors, without the warnings."""
    found = me.validate(data, dialect, part)
    return [problem.pointer for problem in found if problem.severity == "error"]


def warnings(data: bytes) -> dict[str, str]:
    """What an envelope is only warned of: rule by pointer."""
    found = me.validate(data)
    return {problem.pointer: problem.rule for problem in found if problem.severity == "warning"}


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every leaf of a value (empty containers too) with its pointer."""
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from leaves(part, (*path, name))
    elif isinstance(value, list) and value:
        for index, part in enumerate(value):
            yield from leaves(part, (*path, index))
    else:
        yield pointer_of(path), value


def missing(before: me.Document, after: me.Document, listed: tuple[str, ...]) -> list[str]:
    """Leaves of ``before`` that ``after`` has not, or has otherwise, and that nobody listed."""
    there = dict(leaves(after.value))
    return [
        pointer
        for pointer, value in leaves(before.value)
        if not (pointer in there and same_value(there[pointer], value))
        and not any(pointer == lost or pointer.startswith(lost + "/") for lost in listed)
    ]


def cli(*words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run ``python -m mcp_envelope`` on this tree, with ``given`` as standard input."""
    return subprocess.run(
        [sys.executable, "-m", "mcp_envelope", *words],
        input=given,
        capture_output=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
