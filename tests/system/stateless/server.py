"""A server of the Python SDK that requests a name during a call. With `--alone`, it is stateless."""

import sys
from typing import Annotated

from mcp.server import runner
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel


class Name(BaseModel):
    name: str


async def asked() -> Elicit[Name]:
    return Elicit(message="Who are you?", schema=Name)


server = MCPServer("python", version="1")


@server.tool()
async def now(who: Annotated[Name, Resolve(asked)], ctx: Context) -> str:
    """Says hello."""
    await ctx.notify_tools_changed()
    return f"hello {who.name}"


@server.tool()
def echo(n: int, text: str) -> str:
    """Says it again."""
    return text * n


if "--alone" in sys.argv:

    async def alone(server, read, write, *, lifespan_state, session_id=None, init_options=None, raise_exceptions=False):
        await runner._serve_modern_stream(server, read, write, lifespan_state=lifespan_state, raise_exceptions=False)

    import mcp.server.lowlevel.server as lowlevel

    lowlevel.serve_dual_era_loop = alone

server.run("stdio")
