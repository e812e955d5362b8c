"""The registry of schemas: folders, memory, changes, and what leads out of a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import mcp_envelope as me

TEXT = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
NUMBER = {"type": "object", "properties": {"q": {"type": "number"}}, "required": ["q"]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with the input schema of one tool."""
    (tmp_path / "tools" / "a").mkdir(parents=True)
    write(tmp_path / "tools" / "a" / "search_1.input.schema.json", TEXT)
    return tmp_path


def write(path: Path, schema: object) -> None:
    """A schema file, put there as editors do."""
    new = path.with_suffix(".new")
    new.write_bytes(me.dump(schema))
    new.replace(path)


def call(tool: str, q: object, **more: object) -> dict[str, object]:
    """A tool's call as the registry checks it."""
    return {"tool": tool, "input": {"q": q}, **more}


def test_a_tool_id_is_a_place_in_the_folder(root: Path) -> None:
    """``/`` is a folder, and ``:`` is ``_`` in the name of the file."""
    io = me.SchemaRegistry(schema_root=root).load_tool_io("a/search:1")
    io.validate(call("a/search:1", "x", output={"anything": 1}))
    with pytest.raises(me.EnvelopeError) as refused:
        io.validate(call("a/search:1", 1))
    assert (refused.value.code, refused.value.pointer) == ("INVALID_TOOL_INPUT", "/input/q")
    assert not io.input.accepts(call("a/search_1", "x"))


@pytest.mark.parametrize(
    "tool", ["", "b", "../a", "a/../a/search_1", "/a", "a//b", "a\\b", "a\0", "x" * 5_000]
)
def test_no_other_id_has_a_file(root: Path, tool: str) -> None:
    """An id that is unknown or would leave the folder is a KeyError, shortly said."""
    with pytest.raises(KeyError) as refused:
        me.SchemaRegistry(schema_root=root).load_tool_io(tool)
    assert len(str(refused.value)) < 600


def test_links_do_not_lead_out(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A link is followed only within the folder."""
    outside = tmp_path_factory.mktemp("outside") / "x.json"
    write(outside, TEXT)
    (root / "tools" / "out.input.schema.json").symlink_to(outside)
    with pytest.raises(KeyError):
        me.SchemaRegistry(schema_root=root).load_tool_io("out")


def test_a_changed_file_counts_at_once(root: Path) -> None:
    """Changed, added and removed files, without a restart; what was handed out stays."""
    registry = me.SchemaRegistry(schema_root=root)
    first = registry.load_tool_io("a/search_1")
    write(root / "tools" / "a" / "search_1.input.schema.json", NUMBER)
    second = registry.load_tool_io("a/search_1")
    assert first.input.accepts(call("a/search_1", "x"))
    assert second.input.accepts(call("a/search_1", 1))
    assert second.fingerprint != first.fingerprint
    write(root / "tools" / "a" / "search_1.output.schema.json", TEXT)
    third = registry.load_tool_io("a/search_1")
    assert not third.output.accepts({"tool": "a/search_1", "output": {}})
    for path in (root / "tools" / "a").iterdir():
        path.unlink()
    with pytest.raises(KeyError):
        registry.load_tool_io("a/search_1")


def test_one_file_may_serve_all_tools(root: Path) -> None:
    """``tool_io.schema.json`` describes whole calls; the output's side requires no input."""
    sides = {"input": TEXT, "output": NUMBER}
    shared = {"type": "object", "properties": sides, "required": ["tool", "input", "output"]}
    write(root / "tool_io.schema.json", shared)
    io = me.SchemaRegistry(schema_root=root).load_tool_io("other")
    io.input.validate(call("other", "x"))
    io.output.validate({"tool": "other", "output": {"q": 1}})
    with pytest.raises(me.EnvelopeError) as refused:
        io.validate(call("other", "x", output={"q": "x"}))
    assert (refused.value.code, refused.value.pointer) == ("INVALID_TOOL_OUTPUT", "/output/q")


@pytest.mark.parametrize("text", [b"{", b'{"type":"strin"}', b"\xff", b'{"$ref":"file:///etc/x"}'])
def test_a_broken_file_is_named(root: Path, text: bytes) -> None:
    """ConfigError until it is mended; with ``on_broken`` what was good goes on to serve."""
    path = root / "tools" / "a" / "search_1.input.schema.json"
    said: list[me.ConfigError] = []
    lenient = me.SchemaRegistry(schema_root=root, on_broken=said.append)
    good = lenient.load_tool_io("a/search_1")
    path.write_bytes(text)
    with pytest.raises(me.ConfigError, match="search_1"):
        me.SchemaRegistry(schema_root=root).load_tool_io("a/search_1")
    assert lenient.load_tool_io("a/search_1") == good
    assert lenient.load_tool_io("a/search_1") == good
    assert len(said) == 1
    write(path, NUMBER)
    assert lenient.load_tool_io("a/search_1").input.accepts(call("a/search_1", 1))


def test_what_is_no_regular_file_is_not_read(root: Path) -> None:
    """Opening a pipe would wait for ever, and a folder is no schema."""
    if hasattr(os, "mkfifo"):
        os.mkfifo(root / "tools" / "pipe.input.schema.json")
        with pytest.raises(me.ConfigError, match="no regular file"):
            me.SchemaRegistry(schema_root=root).load_tool_io("pipe")
    with pytest.raises(me.ConfigError, match="is no folder"):
        me.SchemaRegistry(schema_root=root / "absent")


def test_tools_in_memory() -> None:
    """The same without a folder; equal schemas share one compiled validator."""
    broken = {"type": "strin"}
    tools = {"a": (TEXT, None), "b": (dict(TEXT), NUMBER), "c": (broken, None)}
    registry = me.SchemaRegistry.from_tools(tools)
    one, other = registry.load_tool_io("a"), registry.load_tool_io("b")
    assert one.input.validator is other.input.validator
    assert registry.load_tool_io("a") is one
    one.validate(call("a", "x", output={"anything": 1}))
    with pytest.raises(me.EnvelopeError):
        other.validate(call("b", "x", output={"q": "x"}))
    with pytest.raises(me.ConfigError, match=r"c\.input"):
        registry.load_tool_io("c")
    with pytest.raises(KeyError, match="no tool 'd'"):
        registry.load_tool_io("d")


def test_the_envelope_is_ours_unless_the_folder_has_one(root: Path) -> None:
    """``envelope.schema.json`` of the folder counts from the moment it is there."""
    registry = me.SchemaRegistry(schema_root=root)
    envelope = {"jsonrpc": "2.0", "id": "a", "method": "m", "params": {}}
    registry.load_envelope().validate(envelope)
    write(root / "envelope.schema.json", {"required": ["more"]})
    assert not registry.load_envelope().accepts(envelope)
