"""What the everything-server has to show: tools with plain results, resources and prompts.

The conformance suite names them and says what they return; nothing here waits or asks.
"""

from __future__ import annotations

import base64
import hashlib
import struct
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

Context = ServerRequestContext[Any, Any]
Json = dict[str, Any]

INVALID_PARAMS = -32602
LEGACY_NOT_FOUND = -32002
MODERN = "2026-07-28"


@dataclass(frozen=True)
class Tool:
    """A tool: what it is called, what it takes, and what it does."""

    name: str
    description: str
    run: Callable[[Context, Json], Awaitable[Json]]
    schema: Json

    def listed(self) -> Json:
        """The tool as `tools/list` shows it."""
        return {"name": self.name, "description": self.description, "inputSchema": self.schema}


def takes(*required: str, **properties: Json) -> Json:
    """A schema for an object with these properties."""
    schema: Json = {"type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


def text(words: str) -> Json:
    """A text block."""
    return {"type": "text", "text": words}


def says(words: str) -> Json:
    """A tool's result with one text block."""
    return {"content": [text(words)]}


def _pixel() -> str:
    """A PNG of one red pixel, base64."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    rows = zlib.compress(b"\x00\xff\x00\x00")
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()


def _silence() -> str:
    """A WAV of eight silent samples, base64."""
    samples = bytes(8)
    form = struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
    body = b"WAVEfmt " + form + b"data" + struct.pack("<I", len(samples)) + samples
    return base64.b64encode(b"RIFF" + struct.pack("<I", len(body)) + body).decode()


IMAGE: Json = {"type": "image", "data": _pixel(), "mimeType": "image/png"}
AUDIO: Json = {"type": "audio", "data": _silence(), "mimeType": "audio/wav"}


def _embedded(uri: str, kind: str, words: str) -> Json:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": words}}


def _returns(*blocks: Json, **more: Any) -> Callable[[Context, Json], Awaitable[Json]]:
    async def run(ctx: Context, arguments: Json) -> Json:
        return {"content": list(blocks), **more}

    return run


async def _header_echo(ctx: Context, arguments: Json) -> Json:
    return says(f"region: {arguments.get('region')}")


async def _greeting(ctx: Context, arguments: Json) -> Json:
    return says(f"Hello, {arguments.get('name')}!")


_SCHEMA_2020_12: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

# The suite calls the first tool of the list with no arguments and wants a success.
TOOLS = (
    Tool(
        "test_simple_text",
        "Returns one text block",
        _returns(text("This is a simple text response for testing.")),
        takes(),
    ),
    Tool("test_image_content", "Returns an image", _returns(IMAGE), takes()),
    Tool("test_audio_content", "Returns a sound", _returns(AUDIO), takes()),
    Tool(
        "test_embedded_resource",
        "Returns a resource",
        _returns(
            _embedded(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content.",
            )
        ),
        takes(),
    ),
    Tool(
        "test_multiple_content_types",
        "Returns text, image and resource",
        _returns(
            text("Multiple content types test:"),
            IMAGE,
            _embedded(
                "test://mixed-content-resource",
                "application/json",
                '{"test":"data","value":123}',
            ),
        ),
        takes(),
    ),
    Tool(
        "test_error_handling",
        "Always fails",
        _returns(text("This tool intentionally returns an error for testing"), isError=True),
        takes(),
    ),
    Tool("json_schema_2020_12_tool", "Has a rich schema", _returns(text("fine")), _SCHEMA_2020_12),
    Tool(
        "test_x_mcp_header",
        "Has an argument that travels in a header too",
        _header_echo,
        takes(region={"type": "string", "x-mcp-header": "Region"}),
    ),
    Tool("greet", "Greets", _greeting, takes("name", name={"type": "string"})),
)


# ---- resources ----

_SKILL_FRONT = {"name": "pdf-tools", "description": "Fill and assemble PDF documents"}
_SKILL = "skill://pdf-tools"
_SKILL_FILES = {
    f"{_SKILL}/SKILL.md": (
        "text/markdown",
        "---\nname: pdf-tools\ndescription: Fill and assemble PDF documents\n---\n\n# PDF tools\n",
    ),
    f"{_SKILL}/references/forms.md": ("text/markdown", "# Forms\n"),
}
_TEXTS = {
    "test://static-text": ("text/plain", "This is the content of the static text resource."),
    "test://watched-resource": ("text/plain", "This resource can be watched."),
    **_SKILL_FILES,
}
_TEMPLATE = "test://template/{id}/data"


def hinted(ctx: Context, result: Json) -> Json:
    """``result`` with what 2026-07-28 wants to know about caching."""
    if ctx.protocol_version != MODERN:
        return result
    return {**result, "ttlMs": 60_000, "cacheScope": "public"}


async def list_resources(ctx: Context, params: Any) -> Json:
    """Answer `resources/list`."""
    listed = [
        {"uri": uri, "name": uri, "description": "A text", "mimeType": kind}
        for uri, (kind, _) in _TEXTS.items()
    ]
    for entry in listed:
        if entry["uri"] == f"{_SKILL}/SKILL.md":
            entry.update(_SKILL_FRONT)
    binary = {"uri": "test://static-binary", "name": "static-binary", "description": "An image"}
    return hinted(ctx, {"resources": [*listed, {**binary, "mimeType": "image/png"}]})


async def list_templates(ctx: Context, params: Any) -> Json:
    """Answer `resources/templates/list`."""
    template = {"uriTemplate": _TEMPLATE, "name": "template", "description": "Any id"}
    return hinted(ctx, {"resourceTemplates": [{**template, "mimeType": "application/json"}]})


async def read_resource(ctx: Context, params: Any) -> Json:
    """Answer `resources/read`."""
    uri = str(params.uri)
    if uri in _TEXTS:
        kind, words = _TEXTS[uri]
        return hinted(ctx, {"contents": [{"uri": uri, "mimeType": kind, "text": words}]})
    if uri == "test://static-binary":
        image = {"uri": uri, "mimeType": "image/png", "blob": IMAGE["data"]}
        return hinted(ctx, {"contents": [image]})
    before, after = _TEMPLATE.split("{id}")
    if uri.startswith(before) and uri.endswith(after):
        name = uri[len(before) : -len(after)]
        words = f'{{"id":"{name}","templateTest":true,"data":"Data for ID: {name}"}}'
        made = {"uri": uri, "mimeType": "application/json", "text": words}
        return hinted(ctx, {"contents": [made]})
    code = INVALID_PARAMS if ctx.protocol_version == MODERN else LEGACY_NOT_FOUND
    raise MCPError(code, "Resource not found", {"uri": uri})


# ---- the skills extension (SEP-2640) ----

SKILLS = "io.modelcontextprotocol/skills"


def _skill_entry() -> Json:
    files = []
    for uri, (_, words) in _SKILL_FILES.items():
        body = words.encode()
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        files.append({"uri": uri, "digest": digest, "size": len(body)})
    return {"uri": f"{_SKILL}/SKILL.md", "frontmatter": _SKILL_FRONT, "resources": files}


async def list_skills(ctx: Context, params: Any) -> Json:
    """Answer `skills/list`."""
    return hinted(ctx, {"skills": [_skill_entry()]})


async def get_skill(ctx: Context, params: Any) -> Json:
    """Answer `skills/get`."""
    entry = _skill_entry()
    if (ctx.params or {}).get("uri") != entry["uri"]:
        raise MCPError(INVALID_PARAMS, "no such skill")
    return hinted(ctx, {"skill": entry})


async def read_directory(ctx: Context, params: Any) -> Json:
    """Answer `resources/directory/read`."""
    if (ctx.params or {}).get("uri") != _SKILL:
        raise MCPError(INVALID_PARAMS, "not a directory")
    manual = {"uri": f"{_SKILL}/SKILL.md", "name": "SKILL.md", "mimeType": "text/markdown"}
    folder = {"uri": f"{_SKILL}/references", "name": "references", "mimeType": "inode/directory"}
    return hinted(ctx, {"resources": [manual, folder]})


# ---- prompts ----


def _user(block: Json) -> Json:
    return {"role": "user", "content": block}


def _argument(name: str) -> Json:
    return {"name": name, "description": f"The argument {name}", "required": True}


_PROMPTS: dict[str, tuple[list[str], Callable[[Json], list[Json]]]] = {
    "test_simple_prompt": ([], lambda args: [_user(text("This is a simple prompt for testing."))]),
    "test_prompt_with_arguments": (
        ["arg1", "arg2"],
        lambda args: [
            _user(
                text(f"Prompt with arguments: arg1='{args.get('arg1')}', arg2='{args.get('arg2')}'")
            )
        ],
    ),
    "test_prompt_with_embedded_resource": (
        ["resourceUri"],
        lambda args: [
            _user(
                _embedded(
                    args.get("resourceUri", ""),
                    "text/plain",
                    "Embedded resource content for testing.",
                )
            ),
            _user(text("Please process the embedded resource above.")),
        ],
    ),
    "test_prompt_with_image": (
        [],
        lambda args: [_user(IMAGE), _user(text("Please analyze the image above."))],
    ),
    "test_input_required_result_prompt": (
        [],
        lambda args: [_user(text(f"In this context: {args.get('context', 'none')}"))],
    ),
}


async def list_prompts(ctx: Context, params: Any) -> Json:
    """Answer `prompts/list`."""
    listed = [
        {
            "name": name,
            "description": f"The prompt {name}",
            "arguments": [_argument(argument) for argument in arguments],
        }
        for name, (arguments, _) in _PROMPTS.items()
    ]
    return hinted(ctx, {"prompts": listed})


def prompt(name: str, arguments: Json) -> Json:
    """The result of `prompts/get`."""
    if name not in _PROMPTS:
        raise MCPError(INVALID_PARAMS, f"unknown prompt: {name}")
    return {"description": f"The prompt {name}", "messages": _PROMPTS[name][1](arguments)}


async def complete(ctx: Context, params: Any) -> Json:
    """Answer `completion/complete`."""
    begun = params.argument.value
    fitting = [word for word in ("paris", "park", "party") if word.startswith(begun)]
    return {"completion": {"values": fitting, "total": len(fitting), "hasMore": False}}
