"""A client of the Python SDK that requests the newest protocol version first, as it does by default."""

import asyncio
import os
import sys

from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client


def cause(problem):
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    return problem


async def main(shim, server):
    parameters = StdioServerParameters(command=shim, args=["--server", server], env=dict(os.environ))
    try:
        async with Client(stdio_client(parameters)) as client:
            tools = await client.list_tools()
            print(client.protocol_version, len(tools.tools))
    except BaseException as problem:
        print(cause(problem))


asyncio.run(main(*sys.argv[1:]))
