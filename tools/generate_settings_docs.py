"""Bring docs/settings.md up to date: the reference of every key, from the published schema.

    python tools/generate_settings_docs.py          write the file
    python tools/generate_settings_docs.py --check  exit 1 if it is stale

By hand is the prose; made is what stands between ``<!-- made: NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from mcp_envelope.gateway.settings_mistakes import dotted  # noqa: E402
from mcp_envelope.gateway.settings_schema import Key, every_key  # noqa: E402

PAGE = Path("docs/settings.md")
_MADE = re.compile(r"(<!-- made: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
#: What a section of the reference is about: its name, and where its keys begin.
SECTIONS: Mapping[str, tuple[str, ...]] = {
    "top": (),
    "record": ("record",),
    "http": ("http",),
    "rules": ("rules",),
    "upstreams": ("upstreams", "NAME"),
    "tools": ("upstreams", "NAME", "tools", "TOOL"),
}


def generate(text: str) -> str:
    """The page as it should be, from the page as it is."""
    return _MADE.sub(lambda m: f"{m[1]}{_table(SECTIONS[m[2]])}\n{m[3]}", text)


def _table(above: tuple[str, ...]) -> str:
    rows = [_row(key) for key in every_key() if key.path[:-1] == above]
    return "\n".join(
        ["| key | value | default | reloads | meaning |", "|---|---|---|---|---|", *rows]
    )


def _row(key: Key) -> str:
    default = json.dumps(key.schema["default"]) if "default" in key.schema else ""
    cells = [
        f"`{dotted(key.path)}`",
        _value(key.schema),
        f"`{default}`" if default else "",
        "yes" if key.reloads else "",
        key.schema["description"],
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _value(schema: Mapping[str, Any]) -> str:
    """What may stand there, in a few words."""
    if "enum" in schema:
        return ", ".join(f"`{option}`" for option in schema["enum"])
    types = schema.get("type", "string")
    names = [types] if isinstance(types, str) else list(types)
    if names == ["number", "string"]:
        return 'a time: seconds, `"30s"`, `"2m"`'
    words = " or ".join(_WORDS[name] for name in names)
    return words + "".join(_bounds(schema) if "integer" in names else ())


_WORDS = {
    "array": "array of texts",
    "boolean": "`true`, `false`",
    "integer": "whole number",
    "number": "number",
    "object": "table",
    "string": "text",
}


def _bounds(schema: Mapping[str, Any]) -> Iterator[str]:
    if "minimum" in schema and "maximum" in schema:
        yield f", {schema['minimum']:,} to {schema['maximum']:,}"


def run(arguments: list[str] | None = None) -> int:
    """Run as a program."""
    usage = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    usage.add_argument("--check", action="store_true", help="change nothing, exit 1 if stale")
    options = usage.parse_args(arguments)
    page = ROOT / PAGE
    text = page.read_text(encoding="utf-8")
    if generate(text) == text:
        return 0
    if options.check:
        print(
            f"stale: {PAGE.as_posix()}\nrun: python tools/generate_settings_docs.py",
            file=sys.stderr,
        )
        return 1
    page.write_text(generate(text), encoding="utf-8", newline="\n")
    print(f"written: {PAGE.as_posix()}")
    return 0


if __name__ == "__main__":
    sys.exit(run())
