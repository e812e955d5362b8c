"""A ledger file read as docs/ledger.md describes it, by nothing of ours but the description."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import Any

TORN = re.compile(r"torn tail: the (\d+) bytes before this line are no line, sha256:([0-9a-f]{64})")


def follow(lines: list[bytes]) -> list[dict[str, Any]]:
    """The entries of lines without newlines, seeing that they are one chain without gaps."""
    prev = "0" * 64
    entries = []
    for seq, text in enumerate(lines):
        entry = json.loads(text)
        assert (entry["v"], entry["seq"], entry["prev"]) == (1, seq, prev)
        prev = sha256(text).hexdigest()
        entries.append(entry)
    return entries


def lines_of(data: bytes) -> list[bytes]:
    """The lines of a file, leaving out what later lines say is none; the end may be torn."""
    found: list[tuple[int, bytes]] = []
    at = 0
    for text in data.split(b"\n")[:-1]:
        claim = _claim(text)
        if claim:
            size, digest = int(claim[1]), claim[2]
            assert sha256(data[at - size : at]).hexdigest() == digest
            while found and found[-1][0] >= at - size:
                found.pop()
            assert at - size == (found[-1][0] + len(found[-1][1]) + 1 if found else 0)
        if _is_entry(text):
            found.append((at, text))
        at += len(text) + 1
    return [text for _, text in found]


def entries_of(data: bytes) -> list[dict[str, Any]]:
    """The entries of a file."""
    return follow(lines_of(data))


def _is_entry(text: bytes) -> bool:
    try:
        return "seq" in json.loads(text)
    except (ValueError, TypeError):
        return False


def _claim(text: bytes) -> re.Match[str] | None:
    if not _is_entry(text):
        return None
    warnings = json.loads(text)["warnings"]
    return TORN.fullmatch(warnings[0]) if warnings else None
