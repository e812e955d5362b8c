"""Results that need input first (2026-07-28, SEP-2322), and how a client's answers are read."""

from __future__ import annotations

from typing import Any

from mcp.shared.exceptions import MCPError

from .everything_content import INVALID_PARAMS, Context, Json, Tool, prompt, says, takes

_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def capabilities(ctx: Context) -> Json:
    """What the client of this request says that it can do (2026-07-28; empty before)."""
    meta = (ctx.params or {}).get("_meta") or {}
    told = meta.get(_CAPABILITIES)
    return told if isinstance(told, dict) else {}


def needs(requests: dict[str, Json], state: str | None = None) -> Json:
    """The result that asks for input."""
    result: Json = {"resultType": "input_required", "inputRequests": requests}
    return result if state is None else {**result, "requestState": state}


def elicitation(message: str, *fields: str, kind: str = "string") -> Json:
    """An input request for a form with these required fields."""
    schema = takes(*fields, **{field: {"type": kind} for field in fields})
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": message, "requestedSchema": schema},
    }


def sampling(words: str) -> Json:
    """An input request for a model's answer."""
    asked = {"role": "user", "content": {"type": "text", "text": words}}
    return {"method": "sampling/createMessage", "params": {"messages": [asked], "maxTokens": 100}}


ROOTS: Json = {"method": "roots/list", "params": {}}


def answer(ctx: Context, key: str) -> Json | None:
    """The client's answer to the input request ``key``; None where there is no usable one."""
    answers = (ctx.params or {}).get("inputResponses")
    found = answers.get(key) if isinstance(answers, dict) else None
    return found if isinstance(found, dict) else None


def accepted(ctx: Context, key: str, field: str) -> Any:
    """What the user entered in ``field``; None where there is nothing."""
    found = answer(ctx, key) or {}
    content = found.get("content")
    return content.get(field) if isinstance(content, dict) else None


def state(ctx: Context) -> str | None:
    """The request state that came back, unsealed."""
    found = (ctx.params or {}).get("requestState")
    return found if isinstance(found, str) else None


async def _ask_name(ctx: Context, arguments: Json) -> Json:
    name = accepted(ctx, "user_name", "name")
    if not isinstance(name, str):
        return needs({"user_name": elicitation("What is your name?", "name")})
    return says(f"Hello, {name}!")


async def _ask_model(ctx: Context, arguments: Json) -> Json:
    found = answer(ctx, "capital_question")
    if found is None:
        return needs({"capital_question": sampling("What is the capital of France?")})
    return says(f"The model said: {found.get('content')}")


async def _ask_roots(ctx: Context, arguments: Json) -> Json:
    found = answer(ctx, "client_roots")
    if found is None:
        return needs({"client_roots": ROOTS})
    return says(f"The roots: {[root.get('uri') for root in found.get('roots', [])]}")


async def _confirm(ctx: Context, arguments: Json) -> Json:
    if state(ctx) is None or accepted(ctx, "confirm", "ok") is None:
        asked = elicitation("Please confirm", "ok", kind="boolean")
        return needs({"confirm": asked}, "confirming")
    if state(ctx) != "confirming":
        raise MCPError(INVALID_PARAMS, "the state is not the one that was handed out")
    return says("state-ok")


async def _ask_all(ctx: Context, arguments: Json) -> Json:
    asked = {
        "user_name": elicitation("What is your name?", "name"),
        "greeting": sampling("Generate a greeting"),
        "client_roots": ROOTS,
    }
    open_ones = {key: request for key, request in asked.items() if answer(ctx, key) is None}
    return needs(open_ones, "asked for three") if open_ones else says("All three are there")


async def _rounds(ctx: Context, arguments: Json) -> Json:
    if state(ctx) == "round-1" and (name := accepted(ctx, "step1", "name")):
        color = elicitation("Step 2: What is your favorite color?", "color")
        return needs({"step2": color}, f"round-2 {name}")
    if (state(ctx) or "").startswith("round-2 ") and (color := accepted(ctx, "step2", "color")):
        return says(f"{(state(ctx) or '').removeprefix('round-2 ')} likes {color}")
    return needs({"step1": elicitation("Step 1: What is your name?", "name")}, "round-1")


async def _ask_what_can_be_asked(ctx: Context, arguments: Json) -> Json:
    asked = {
        "elicitation": ("name", elicitation("What is your name?", "name")),
        "sampling": ("greeting", sampling("Generate a greeting")),
        "roots": ("client_roots", ROOTS),
    }
    declared = capabilities(ctx)
    wanted = {key: request for can, (key, request) in asked.items() if can in declared}
    if not wanted or any(answer(ctx, key) is not None for key in wanted):
        return says("nothing left to ask")
    return needs(wanted)


async def get_prompt(ctx: Context, params: Any) -> Json:
    """Answer `prompts/get`; one of the prompts asks for input first."""
    arguments = dict(params.arguments or {})
    if params.name == "test_input_required_result_prompt":
        context = accepted(ctx, "user_context", "context")
        if context is None:
            asked = elicitation("What context should the prompt use?", "context")
            return needs({"user_context": asked})
        arguments["context"] = context
    return prompt(params.name, arguments)


_NAME = "test_input_required_result_"
TOOLS = (
    Tool(f"{_NAME}elicitation", "Asks for a name", _ask_name, takes()),
    Tool(f"{_NAME}sampling", "Asks the model", _ask_model, takes()),
    Tool(f"{_NAME}list_roots", "Asks for the roots", _ask_roots, takes()),
    Tool(f"{_NAME}request_state", "Asks, with a state", _confirm, takes()),
    Tool(f"{_NAME}tampered_state", "Asks, with a sealed state", _confirm, takes()),
    Tool(f"{_NAME}multiple_inputs", "Asks for three things", _ask_all, takes()),
    Tool(f"{_NAME}multi_round", "Asks twice", _rounds, takes()),
    Tool(f"{_NAME}capabilities", "Asks what can be asked", _ask_what_can_be_asked, takes()),
)
