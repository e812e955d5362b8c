"""MCP's JSON-RPC messages as neutral ones: shared by the dialects that carry them.

``base`` is where the JSON-RPC message stands: ``""`` or, in mcpx, ``/payload``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_envelope.core.document import Document, dump
from mcp_envelope.core.errors import ConversionError, EnvelopeError
from mcp_envelope.core.kind import Kind
from mcp_envelope.core.message import Message, Success
from mcp_envelope.core.pointer import pointer_of

from .reader import Reader
from .writer import Writer

TOOL_CALL: Final = "tools/call"
_BY_NAME: Final = (TOOL_CALL, "prompts/get")
_BY_URI: Final = ("resources/read", "resources/subscribe", "resources/unsubscribe")
_COMPLETION: Final = "completion/complete"
_TELLING: Final = {
    "contents": "resources/read",
    "messages": "prompts/get",
    "completion": _COMPLETION,
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
}


def read_call(reader: Reader, base: str = "") -> dict[str, Any]:
    """The fields of a request, proposal or notification: method, target, arguments, meta."""
    params = base + "/params"
    method = reader.text(base + "/method", "method")
    fields: dict[str, Any] = {"method": method}
    found = reader.peek(params + "/_meta")
    if found is not None and found.is_object:
        fields["meta"] = reader.meta(params + "/_meta")
    if method in _BY_NAME:
        fields["target"] = reader.text(params + "/name", "target")
        fields["arguments"] = reader.take(params + "/arguments", "arguments")
    elif method in _BY_URI:
        fields["target"] = reader.text(params + "/uri", "target")
    else:
        fields["arguments"] = _whole_params(reader, params, "arguments")
        if method == _COMPLETION:
            fields["target"] = _completed(reader, base)
    return fields


def read_notification(reader: Reader, base: str = "") -> dict[str, Any]:
    """The fields of a notification: method, payload and meta."""
    params = base + "/params"
    fields: dict[str, Any] = {"method": reader.text(base + "/method", "method")}
    found = reader.peek(params + "/_meta")
    if found is not None and found.is_object:
        fields["meta"] = reader.meta(params + "/_meta")
    fields["payload"] = _whole_params(reader, params, "payload")
    return fields


def _whole_params(reader: Reader, params: str, field: str) -> Document | None:
    found = reader.peek(params)
    rest = reader.object_without_ours(params, field, "_meta")
    if found is None or rest is None or not rest.is_object or len(rest) or not len(found):
        return rest
    # Nothing but ``_meta``: was it there before an earlier conversion needed room?
    ours = reader.meta(params + "/_meta") is None and not reader.verbatim
    return None if ours else rest


def _completed(reader: Reader, base: str) -> str | None:
    call = reader.peek(base) if base else None
    params = call.value.get("params") if call is not None else None
    if params is None:
        found = reader.peek(base + "/params")
        params = found.value if found is not None else None
    try:
        kind = Kind.of_payload({"method": _COMPLETION, "params": params})
    except EnvelopeError:
        return None
    reader.mark("target", base + "/params/ref")
    return kind.context


def write_call(writer: Writer, base: str = "") -> None:
    """Put method, target, arguments and meta where :func:`read_call` finds them."""
    params = base + "/params"
    method = writer.get("method")
    writer.put(base + "/method", method, "method")
    arguments, target = writer.get("arguments"), writer.get("target")
    if method in _BY_NAME:
        writer.need(params + "/name", "target", "tool")
        if arguments is not None and not arguments.is_object:
            writer.inexact("arguments")  # MCP's arguments are an object; this is not
        else:
            writer.put(params + "/arguments", arguments, "arguments")
    elif method in _BY_URI:
        writer.put(params + "/uri", target, "target")
    else:
        writer.put(params, arguments, "arguments")
        if arguments is not None and arguments.is_object and not len(arguments):
            writer.verbatim(alone=False)
        if method == _COMPLETION:
            writer.drop("target")  # it is computed from ``ref`` among the arguments
    writer.place(params + "/_meta", "meta")


def read_result(reader: Reader, base: str, method: str | None) -> dict[str, Any]:
    """The fields of a result: a tool's payload as contracts/mcp.md wants it, else all of it."""
    result = base + "/result"
    found = reader.peek(result)
    members: Mapping[str, Any] = found.value if found is not None and found.is_object else {}
    fields: dict[str, Any] = {"method": method}
    if "structuredContent" in members or type(members.get("content")) is list:
        if method in (None, TOOL_CALL):
            fields["method"] = TOOL_CALL
            fields["meta"] = reader.meta(result + "/_meta")
            fields["payload"] = _read_tool_payload(reader, result)
            return fields
    elif method == TOOL_CALL and not _is_task(members) and found is not None:
        # Known to be a tool's, yet without what a tool returns.
        reader.absent(result + "/content")
        fields["meta"] = reader.meta(result + "/_meta")
        return fields
    fields["meta"] = reader.meta(result + "/_meta")
    fields["payload"] = reader.object_without_ours(result, "payload", "_meta")
    fields["accepted"] = _is_task(members)
    reader.mark("accepted", result + ("/task" if "task" in members else "/resultType"))
    fields["method"] = method or told_by(members)
    return fields


def _read_tool_payload(reader: Reader, result: str) -> Document | None:
    structured = reader.take(result + "/structuredContent", "payload")
    content = reader.peek(result + "/content")
    if structured is not None:
        if content is not None and content == text_content(dump(structured).decode()):
            reader.take(result + "/content")
        elif content is None:
            reader.absent(result + "/content")
        value = structured.value
        if _becomes_content(value):
            reader.keep({result + "/structuredContent": structured})  # or it would become content
        return structured
    blocks = content.elements() if content is not None else []
    if len(blocks) == 1 and _is_text(blocks[0].value):
        pointer = result + "/content/0"
        reader.take(result + "/content")
        reader.mark("payload", pointer + "/text")
        reader.keep({pointer + pointer_of([n]): part for n, part in _more(blocks[0]).items()})
        return blocks[0]["text"]
    return reader.take(result + "/content", "payload")


def text_content(text: str) -> list[dict[str, str]]:
    """A result's content that is one block of text."""
    return [{"type": "text", "text": text}]


def _is_text(block: object) -> bool:
    return (
        isinstance(block, dict) and block.get("type") == "text" and type(block.get("text")) is str
    )


def _more(block: Document) -> dict[str, Document]:
    return {name: part for name, part in block.members().items() if name not in ("type", "text")}


def write_result(writer: Writer, base: str = "") -> None:
    """Put a Success where :func:`read_result` finds it."""
    result = base + "/result"
    payload: Document | None = writer.get("payload")
    if payload is None:
        if not writer.has_extra(result + "/content"):
            writer.drop("method")
            writer.fill(result + "/content", "payload", [])
        elif not writer.has_extra(result):
            writer.put(result, {})
        writer.place(result + "/_meta", "meta")
        return
    if writer.get("method") != TOOL_CALL and not payload.is_object and writer.message.origin:
        hint = "method=tools/call (--method) says that it is what a tool returned"
        raise ConversionError("an MCP result is an object, and this one is not", hint=hint)
    is_task = payload.is_object and _is_task(payload.value)
    if is_task or (writer.get("method") != TOOL_CALL and payload.is_object):
        writer.put(result, payload, "payload")
        writer.drop("accepted") if is_task else None
        writer.drop("method") if writer.get("method") == told_by(payload.value) else None
    else:
        writer.drop("method")
        write_tool_payload(writer, result, payload)
    writer.place(result + "/_meta", "meta")


def write_tool_payload(writer: Writer, result: str, payload: Document) -> None:
    """A payload as the result of a tool: text, content blocks or structured content."""
    writer.drop("payload")
    value = payload.value
    if writer.has_extra(result + "/content"):
        if not writer.has_extra(result + "/structuredContent"):
            writer.put(result + "/structuredContent", payload)
    elif type(value) is str:
        writer.put(result + "/content", [{"type": "text", "text": payload}])
    elif _becomes_content(value):
        writer.put(result + "/content", payload)
    else:
        if not writer.has_extra(result + "/structuredContent"):
            writer.put(result + "/structuredContent", payload)
        writer.put(result + "/content", text_content(dump(payload).decode()))


def told_by(result: object) -> str | None:
    """The method whose result looks like this, where its members tell."""
    members = result if isinstance(result, dict) else {}
    return next((method for name, method in _TELLING.items() if name in members), None)


def _is_task(value: Mapping[str, Any]) -> bool:
    return value.get("resultType") == "task" or type(value.get("task")) is dict


def are_blocks(value: list[Any]) -> bool:
    """Whether a list is made of content blocks."""
    return all(isinstance(block, dict) and isinstance(block.get("type"), str) for block in value)


def _becomes_content(value: object) -> bool:
    """Whether a payload is written as content. One plain text block would be read as text."""
    if type(value) is not list:
        return type(value) is str
    return are_blocks(value) and not (len(value) == 1 and _is_text(value[0]))


def speaks_of_tools(message: Message) -> bool:
    """Whether a message is about a tool. An MCP result may be about anything else as well."""
    if message.method is None and isinstance(message, Success):
        return message.origin is None
    return message.method in (None, TOOL_CALL)
