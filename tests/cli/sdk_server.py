"""A server of the official SDK's, on the standard streams."""

from __future__ import annotations

from mcp.server import MCPServer

server = MCPServer("from the SDK", version="7")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


if __name__ == "__main__":
    server.run("stdio")
