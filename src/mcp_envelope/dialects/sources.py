"""Keeping tracebacks and source text out of errors (tiered/1.0: errors never carry code).

Nothing can tell for certain whether a text is code, so what might be is left out: texts of
several lines, long ones, indented lines, and lists that add up to as much.
"""

from __future__ import annotations

import re
from typing import Final

from mcp_envelope.core.document import Document
from mcp_envelope.core.plain import walk

from .carriage import written

_LONGEST: Final = 500
_HEADER: Final = "Traceback (most recent call last)"
_LEFT_OUT: Final = "the tool failed; what it said looks like source text and is left out"
_FRAME: Final = re.compile(
    r"""\s*(?:Traceback \(|File "[^"]*", line [0-9]|at \S.*:[0-9]+)|[ \t]+\S"""
)
_CODE: Final = re.compile(
    r"""\s*(?:[@{}<>/\\]|\#[!i\s]
        |(?:def|class|function|fn|func|const|let|var|import|package|using|public|private|static
           |return|if|for|while|try|with|async|export|select|insert|update|delete|create)\b
        |from\s\S+\simport\b|[\w.\[\]'"]+\s*[:+]?=[^=])|.*[{;]\s*$""",
    re.VERBOSE | re.IGNORECASE,
)


def without_code(text: str) -> str:
    """The line of a message that says what went wrong, without tracebacks and source text."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) <= 1:
        return text[:_LONGEST]
    headers = [at for at, line in enumerate(lines) if line.lstrip().startswith(_HEADER)]
    if headers:
        # The exception follows the frames, which are indented; its text may go on with anything.
        margin = _indentation(lines[headers[-1]])
        rest = lines[headers[-1] + 1 :]
        said = next((line for line in rest if _indentation(line) <= margin), _LEFT_OUT)
    else:
        said = lines[0]
        if _CODE.match(said) or _FRAME.match(said):
            said = _LEFT_OUT
    return said.strip()[:_LONGEST]


def is_safe(value: object) -> bool:
    """Whether a value may stand in an error: nothing in it could be a file or a traceback."""
    plain = Document.of(written(value)).value
    for _, part in walk(plain):
        if isinstance(part, dict) and not all(map(_is_safe_text, part)):
            return False
        if isinstance(part, list):
            texts = [each for each in part if isinstance(each, str)]
            # Lines of a text, one by one.
            if sum(map(len, texts)) > _LONGEST or any(map(_FRAME.match, texts)):
                return False
        elif isinstance(part, str) and not _is_safe_text(part):
            return False
    return True


def _is_safe_text(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    return len(text) <= _LONGEST and len(lines) <= 1 and not _FRAME.match(text)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
