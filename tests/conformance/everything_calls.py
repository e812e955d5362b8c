"""The tools of the everything-server that report on their way, ask back, or cut their stream."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import mcp_types as types
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

from .everything_content import MODERN, Context, Json, Tool, says, takes
from .everything_inputs import capabilities, elicitation, needs

MISSING_CAPABILITY = -32021
BUS = InMemorySubscriptionBus()


async def _with_logging(ctx: Context, arguments: Json) -> Json:
    for words in ("execution started", "processing data", "execution completed"):
        await _log(ctx, f"Tool {words}")
        await asyncio.sleep(0.05)
    return says("logged three times")


async def _log(ctx: Context, words: str) -> None:
    await ctx.session.send_log_message("info", words, "everything", ctx.request_id)


async def _with_progress(ctx: Context, arguments: Json) -> Json:
    for percent in (0, 50, 100):
        await ctx.session.report_progress(percent, 100, f"{percent} of 100")
        await asyncio.sleep(0.05)
    return says("went from 0 to 100")


async def _sampling(ctx: Context, arguments: Json) -> Json:
    asked = types.SamplingMessage(
        role="user", content=types.TextContent(type="text", text=arguments["prompt"])
    )
    answer = await ctx.session.create_message(
        [asked], max_tokens=100, related_request_id=ctx.request_id
    )
    said = answer.content.text if isinstance(answer.content, types.TextContent) else "?"
    return says(f"LLM response: {said}")


async def _elicit(ctx: Context, message: str, schema: Json) -> str:
    answer = await ctx.session.elicit_form(message, schema, ctx.request_id)
    return f"action={answer.action}, content={answer.content}"


async def _elicitation(ctx: Context, arguments: Json) -> Json:
    schema = takes(
        "username",
        "email",
        username={"type": "string", "description": "User's response"},
        email={"type": "string", "description": "User's email address"},
    )
    return says(f"User response: {await _elicit(ctx, arguments['message'], schema)}")


async def _elicit_defaults(ctx: Context, arguments: Json) -> Json:
    schema = takes(
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    )
    return says(f"Elicitation completed: {await _elicit(ctx, 'Defaults', schema)}")


def _titled(*titles: str) -> list[Json]:
    return [{"const": f"value{at}", "title": title} for at, title in enumerate(titles, 1)]


async def _elicit_enums(ctx: Context, arguments: Json) -> Json:
    options = ["option1", "option2", "option3"]
    schema = takes(
        untitledSingle={"type": "string", "enum": options},
        titledSingle={"type": "string", "oneOf": _titled("First Option", "Second Option")},
        legacyEnum={
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        untitledMulti={"type": "array", "items": {"type": "string", "enum": options}},
        titledMulti={"type": "array", "items": {"anyOf": _titled("First", "Second")}},
    )
    return says(f"Elicitation completed: {await _elicit(ctx, 'Enums', schema)}")


async def _reconnection(ctx: Context, arguments: Json) -> Json:
    """Cuts the stream under its own call; the answer waits where the client comes back for it."""
    if ctx.close_sse_stream is not None:
        await ctx.close_sse_stream()
    await asyncio.sleep(0.1)
    return says("The answer that came after the stream was cut")


async def _missing_capability(ctx: Context, arguments: Json) -> Json:
    if "sampling" not in capabilities(ctx):
        lacking: Json = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_CAPABILITY, "This tool needs sampling", lacking)
    return says("The client can sample")


async def _streaming_elicitation(ctx: Context, arguments: Json) -> Json:
    await ctx.session.report_progress(1, 2)
    await _log(ctx, "about to ask")
    return needs({"user_name": elicitation("What is your name?", "name")})


async def _logging_tool(ctx: Context, arguments: Json) -> Json:
    await _log(ctx, "this is sent only to whom asked for logs")
    return says("logged, if that was wanted")


async def _trigger_tools(ctx: Context, arguments: Json) -> Json:
    await BUS.publish(ToolsListChanged())
    if ctx.protocol_version != MODERN:
        await ctx.session.send_tool_list_changed()
    return says("said that the tools changed")


async def _trigger_prompts(ctx: Context, arguments: Json) -> Json:
    await BUS.publish(PromptsListChanged())
    if ctx.protocol_version != MODERN:
        await ctx.session.send_prompt_list_changed()
    return says("said that the prompts changed")


async def _watch(ctx: Context, arguments: Json) -> Json:
    """Says in the session's own stream that a resource changed (2025 revisions)."""
    if ctx.protocol_version != MODERN:
        await ctx.session.send_resource_updated("test://watched-resource")
    return says("said that the resource changed")


async def _slow(ctx: Context, arguments: Json) -> Json:
    """Sleeps until it is cancelled or the seconds are over."""
    with contextlib.suppress(TimeoutError):
        await asyncio.sleep(float(arguments.get("seconds", 1)))
    return says("slept")


_WORDS: Json = {"type": "string"}
TOOLS = (
    Tool("test_tool_with_logging", "Logs three times", _with_logging, takes()),
    Tool("test_tool_with_progress", "Reports progress", _with_progress, takes()),
    Tool("test_sampling", "Asks the model", _sampling, takes("prompt", prompt=_WORDS)),
    Tool("test_elicitation", "Asks the user", _elicitation, takes("message", message=_WORDS)),
    Tool("test_elicitation_sep1034_defaults", "Asks with defaults", _elicit_defaults, takes()),
    Tool("test_elicitation_sep1330_enums", "Asks with enums", _elicit_enums, takes()),
    Tool("test_reconnection", "Cuts its own stream", _reconnection, takes()),
    Tool("test_missing_capability", "Needs sampling", _missing_capability, takes()),
    Tool("test_streaming_elicitation", "Streams, then asks", _streaming_elicitation, takes()),
    Tool("test_logging_tool", "Logs if that is wanted", _logging_tool, takes()),
    Tool("test_trigger_tool_change", "Says that tools changed", _trigger_tools, takes()),
    Tool("test_trigger_prompt_change", "Says that prompts changed", _trigger_prompts, takes()),
    Tool("test_trigger_resource_update", "Says that a resource changed", _watch, takes()),
    Tool("test_slow", "Sleeps", _slow, takes(seconds={"type": "number"})),
)


async def set_level(ctx: Context, params: Any) -> Json:
    """Answer `logging/setLevel`; every tool logs at `info`, so there is nothing to remember."""
    return {}


async def subscribe(ctx: Context, params: Any) -> Json:
    """Answer `resources/subscribe` and `resources/unsubscribe`."""
    return {}
