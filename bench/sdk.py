"""What the official SDK's server does with a `tools/call` before the tool's own code runs.

Read off the SDK (2.3): the stdio transport validates the line into a JSON-RPC model; the runner
reads `_meta`, validates the request against the wire types of the protocol version, then the
parameters into the handler's model; the tool validates its arguments into its own model.
"""

from __future__ import annotations

from collections.abc import Callable

from mcp.server.mcpserver.tools.base import Tool
from mcp.types import CallToolRequestParams, RequestParams, jsonrpc_message_adapter
from mcp_types import JSONRPCRequest, methods
from pydantic import BaseModel

VERSION = "2025-11-25"


class Row(BaseModel):
    """One row of a table; the same shape as ROW_SCHEMA in core.py."""

    name: str
    value: int
    ok: bool
    unit: str | None
    tags: list[str]


def find(
    path: str,
    limit: int = 10,
    recursive: bool = False,
    query: str = "",
    tags: list[str] = [],  # noqa: B006  (the SDK makes a schema of it and never calls this)
) -> str:
    """The tool of the 260-byte call."""
    return f"{path}{limit}{recursive}{query}{tags}"


def store(table: str, rows: list[Row], dry_run: bool = False) -> str:
    """The tool of the 10 KB call with rows."""
    return f"{table}{rows}{dry_run}"


def write(path: str, content: str) -> str:
    """The tool of the 10 KB call with a text."""
    return path + content


def reader(name: str) -> Callable[[str], object]:
    """The server's way from a line to validated arguments, for one of the tools above."""
    tools: dict[str, Callable[..., object]] = {"find": find, "store": store, "write": write}
    tool = Tool.from_function(tools[name])
    validate_arguments = tool.fn_metadata.validate_arguments

    def read(line: str) -> object:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        if not isinstance(message, JSONRPCRequest) or message.params is None:
            raise AssertionError("this is a request")
        if "_meta" in message.params:
            RequestParams.model_validate(message.params, by_name=False)
        methods.validate_client_request(message.method, VERSION, message.params)
        params = CallToolRequestParams.model_validate(message.params, by_name=False)
        return validate_arguments(params.arguments or {})

    return read
