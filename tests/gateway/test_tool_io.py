"""Checks of tool calls, from a registry in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

import mcp_envelope as me

SCHEMA = b'{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}'


@pytest.fixture
def registry(tmp_path: Path) -> me.SchemaRegistry:
    """A registry over a folder with one tool, ``count``."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "count.input.schema.json").write_bytes(SCHEMA)
    return me.SchemaRegistry(schema_root=tmp_path)


def test_documents_are_checked_as_plain_values_are(registry: me.SchemaRegistry) -> None:
    """What ``parse`` gives may be validated as it is, by every validator."""
    io = registry.load_tool_io("count")
    good = me.parse(b'{"tool":"count","input":{"n":1.0},"output":{}}')
    io.validate(good)
    io.input.validate(good)
    io.output.validate(good)
    assert io.input.problems(good) == []
    bad = me.parse(b'{"tool":"count","input":{"n":"x"}}')
    with pytest.raises(me.EnvelopeError) as refused:
        io.validate(bad)
    assert (refused.value.code, refused.value.pointer) == ("INVALID_TOOL_INPUT", "/input/n")
    assert io.input.problems(bad) == io.input.problems(bad.value)


def test_the_envelope_check_takes_documents(registry: me.SchemaRegistry) -> None:
    """The same for the check of the envelope."""
    check = registry.load_envelope()
    good = me.parse(b'{"jsonrpc":"2.0","id":"a","method":"m","params":{}}')
    check.validate(good)
    assert check.problems(good) == []
    bad = me.parse(b'{"jsonrpc":"2.0","id":"a","method":"","params":{}}')
    with pytest.raises(me.EnvelopeError) as refused:
        check.validate(bad)
    assert refused.value.pointer == "/method"
