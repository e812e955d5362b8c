"""A server made with the official SDK, on pipes. Run as a program."""

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("sdk")


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Count, and report each step."""
    for step in range(to):
        await ctx.report_progress(step, to)
    return f"counted to {to}"


server.run("stdio")
