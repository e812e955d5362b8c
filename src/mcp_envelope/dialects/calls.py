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
from .writer import PLACEHOLDERS, Writer

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
    fields["meta"] = read_meta(reader, params + "/_meta")
    if method in _BY_NAME:
        fields["target"] = reader.text(params + "/name", "target")
        given = reader.peek(params + "/arguments")
        if given is not None and given.is_object:
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
    fields["meta"] = read_meta(reader, params + "/_meta")
    fields["payload"] = _whole_params(reader, params, "payload")
    return fields


def read_meta(reader: Reader, pointer: str) -> Document | None:
    """MCP's ``_meta``; what is no object stays where it is."""
    found = reader.peek(pointer)
    return reader.meta(pointer) if found is not None and found.is_object else None


def _whole_params(reader: Reader, params: str, field: str) -> Document | None:
    found, meta = reader.peek(params), reader.peek(params + "/_meta")
    if meta is not None and not meta.is_object:
        return reader.take(params, field)
    rest = reader.object_without_ours(params, field, "_meta")
    if found is None or rest is None or not rest.is_object or len(rest) or not len(found):
        return rest
    # Nothing but ``_meta``: was it there before an earlier conversion needed room?
    ours = reader.meta(params + "/_meta") is None and not reader.verbatim
    return None if ours else rest


def _completed(reader: Reader, base: str) -> str | None:
    params = reader.peek(base + "/params")
    context = named_by({"method": _COMPLETION, "params": params.value if params else None})
    if context is not None:
        reader.mark("target", base + "/params/ref")
    return context


def named_by(call: Mapping[str, Any]) -> str | None:
    """The tool, prompt or resource that a plain MCP message names, if it does."""
    try:
        return Kind.of_payload(call).context
    except EnvelopeError:
        return None


def read_repeated(reader: Reader, value: Mapping[str, Any], base: str = "") -> dict[str, Any]:
    """The method and target of an answer that repeats the question it answers."""
    if not isinstance(value.get("method"), str):
        return {}
    reader.mark("method", base + "/method")
    target = named_by(value)
    if target is not None:
        reader.mark("target", base + "/params")
    return {"method": value["method"], "target": target}


def write_call(writer: Writer, base: str = "", *, named: bool = True) -> None:
    """Put method, target, arguments and meta where :func:`read_call` finds them.

    Unless calls must be ``named``, what they are about may be left open.
    """
    params = base + "/params"
    method = writer.get("method")
    writer.put(base + "/method", method, "method")
    arguments = writer.get("arguments")
    if method in _BY_NAME:
        _write_target(writer, params + "/name", named)
        if arguments is not None and not arguments.is_object:
            writer.inexact("arguments")  # MCP's arguments are an object; this is not
        else:
            writer.put(params + "/arguments", arguments, "arguments")
    elif method in _BY_URI:
        _write_target(writer, params + "/uri", named)
        if arguments is not None:
            writer.inexact("arguments")  # nothing but the resource is asked for
    else:
        writer.put(params, arguments, "arguments")
        if arguments is not None and arguments.is_object and not len(arguments):
            writer.verbatim(alone=False)
        if method == _COMPLETION:
            writer.drop("target")  # it is computed from ``ref`` among the arguments
    writer.place(params + "/_meta", "meta")


def _write_target(writer: Writer, pointer: str, named: bool) -> None:
    """Write what a call is about. Strict JSON-RPC envelopes may leave that open, and stay so.

    A name that an envelope claims to be made up is left out only if it says nothing.
    """
    made_up = "target" in writer.message.filled
    telling = made_up and (writer.is_trial or writer.message.target != PLACEHOLDERS["tool"])
    if writer.at_home or writer.has_extra(pointer) or not (named or telling):
        writer.place(pointer, "target")
    else:
        writer.need(pointer, "target", "tool")


def read_result(reader: Reader, base: str, method: str | None) -> dict[str, Any]:
    """The fields of a result: a tool's payload as contracts/mcp.md wants it, else all of it."""
    result = base + "/result"
    found = reader.peek(result)
    members: Mapping[str, Any] = found.value if found is not None and found.is_object else {}
    fields: dict[str, Any] = {"method": method, "meta": read_meta(reader, result + "/_meta")}
    accepted, waiting = _is_task(members), _is_waiting(members)
    is_content = _is_content(members) and not reader.is_of_no_method
    if method in (None, TOOL_CALL) and not accepted and not waiting:
        if is_content:
            fields["method"] = TOOL_CALL
            fields["payload"] = _read_tool_payload(reader, result)
            return fields
        if method == TOOL_CALL and found is not None:
            # Known to be a tool's, yet without what a tool returns.
            reader.absent(result + "/content")
            return fields
    names = ("_meta",) if fields["meta"] is not None or result + "/_meta" == reader.place else ()
    fields["payload"] = reader.object_without_ours(result, "payload", *names)
    fields |= {"accepted": accepted, "waiting": waiting, "method": method or told_by(members)}
    # Where all members of a result belong to the task, none of them is what a tool returned.
    reader.mark("accepted", result + ("/task" if "task" in members else ""))
    reader.mark("waiting", result + "/resultType")
    return fields


def _read_tool_payload(reader: Reader, result: str) -> Document | None:
    structured = reader.take(result + "/structuredContent", "payload")
    content = reader.peek(result + "/content")
    if structured is not None:
        if _becomes_content(structured.value):  # so it must be said where it stood
            reader.keep({result + "/structuredContent": structured})
        elif content is not None and content == text_content(dump(structured).decode()):
            reader.take(result + "/content")
        if content is None:
            reader.absent(result + "/content")
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
    unfinished = message_is_unfinished(writer.message)
    if unfinished or (writer.get("method") != TOOL_CALL and payload.is_object):
        writer.put(result, payload, "payload")
        writer.drop("accepted", "waiting") if unfinished else None
        writer.drop("method") if writer.get("method") == told_by(payload.value) else None
        if not (writer.at_home or unfinished) and _is_content(payload.value):
            writer.method_is_unknown()
    else:
        writer.drop("method")
        write_tool_payload(writer, result, payload)
    writer.place(result + "/_meta", "meta")


def message_is_unfinished(message: Message) -> bool:
    """Whether an answer is a task, or a question back, as MCP writes them."""
    payload = message.payload if isinstance(message, Success) else None
    if payload is None or not payload.is_object or not isinstance(message, Success):
        return False
    return (message.accepted and _is_task(payload.value)) or message.waiting


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


def _is_content(value: Mapping[str, Any]) -> bool:
    return "structuredContent" in value or type(value.get("content")) is list


def _is_task(value: Mapping[str, Any]) -> bool:
    if "content" in value and "resultType" not in value:
        return False  # a finished result with a member of that name
    return value.get("resultType") == "task" or type(value.get("task")) is dict


def _is_waiting(value: Mapping[str, Any]) -> bool:
    """Whether the server asks something back before it goes on: no final result."""
    said = value.get("resultType")
    return isinstance(said, str) and said not in ("complete", "task")


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
    if isinstance(message, Success) and message.waiting:
        return False
    if message.method is None and isinstance(message, Success):
        return message.origin is None
    return message.method in (None, TOOL_CALL)
