"""A seventh dialect is one file and one line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

DIALECT = '''
"""``note/1``: a call written as ``{"note": 1, "do": TOOL, "with": ARGUMENTS}``."""

from mcp_envelope.core.errors import ConversionError
from mcp_envelope.core.message import Request
from mcp_envelope.core.schema import compile_schema

from .reader import Layout, Reader
from .writer import Writer


class Note:
    id = "note/1"
    parts = {"request": "note.schema.json"}
    schema = {"type": "object", "required": ["note", "do"], "properties": {"note": {"const": 1}}}

    def detect(self, value):
        return "request" if isinstance(value, dict) and "note" in value else None

    def part_of(self, value):
        return "request"

    def problems(self, document, part):
        return compile_schema(self.schema, name="note").problems(document.value)

    def schemas(self):
        return {}

    def decode(self, document, part):
        reader = Reader(document, part, Layout({"": self.id}))
        reader.take("/note")
        return reader.message(
            Request,
            method="tools/call",
            target=reader.text("/do", "target"),
            arguments=reader.take("/with", "arguments"),
        )

    def encode(self, message, filling):
        if not isinstance(message, Request):
            raise ConversionError("note/1 knows requests only")
        writer = Writer(message, {"": self.id}, filling)
        writer.put("/note", 1)
        writer.drop("method")
        writer.need("/do", "target", "tool")
        writer.place("/with", "arguments")
        return writer.finish()
'''
PROGRAM = """
import mcp_envelope as me
there = me.convert(b'{"note":1,"do":"add","with":{"a":1.0},"why":"fun"}', "tool/1.0")
print(me.decode(there.data).arguments.raw.decode())
print(me.convert(there.data, "note/1").data.decode())
print([p.pointer for p in me.validate(b'{"note":1}')])
"""


def test_a_file_and_a_line_make_a_dialect(root: Path, tmp_path: Path) -> None:
    """With one new file and one new line in the table, the library speaks another format."""
    package = tmp_path / "mcp_envelope"
    shutil.copytree(root / "src" / "mcp_envelope", package)
    (package / "dialects" / "note.py").write_text(DIALECT, encoding="utf-8")
    table = package / "dialects" / "__init__.py"
    text = table.read_text(encoding="utf-8")
    line = '    "note/1": "mcp_envelope.dialects.note:Note",\n'
    before, _, after = text.partition("TABLE: Final = {\n")
    table.write_text(f"{before}TABLE: Final = {{\n{line}{after}", encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(tmp_path)},
    )
    arguments, back, problems = ran.stdout.splitlines()
    assert arguments == '{"a":1.0}'
    assert back == '{"note":1,"do":"add","with":{"a":1.0},"why":"fun"}'
    assert problems == "['/do']"
