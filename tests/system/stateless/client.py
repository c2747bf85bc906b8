"""A client of the Python SDK that starts the server given as arguments and prints what it receives as JSON."""

import asyncio
import json
import os
import sys

import mcp_types as types
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

TOLD = {"asked": [], "news": []}


async def elicit(context, params):
    TOLD["asked"].append(params.message)
    return types.ElicitResult(action="accept", content={"name": "Ada"})


def plain(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


async def follow(client, listening):
    async with client.listen(tools_list_changed=True) as news:
        listening.set()
        async for event in news:
            TOLD["news"].append(type(event).__name__)
            return


async def main(mode, command, *args):
    parameters = StdioServerParameters(command=command, args=list(args), env=dict(os.environ))
    async with Client(stdio_client(parameters), mode=mode, elicitation_callback=elicit) as client:
        TOLD["version"] = client.protocol_version
        TOLD["server"] = plain(client.server_info)
        TOLD["tools"] = plain(await client.list_tools())
        if mode == "auto":
            listening = asyncio.Event()
            following = asyncio.create_task(follow(client, listening))
            await listening.wait()
        TOLD["call"] = plain(await client.call_tool("now", {}))
        TOLD["echo"] = plain(await client.call_tool("echo", {"n": 7, "text": "curtain"}))
        if mode == "auto":
            await asyncio.wait_for(following, 20)


asyncio.run(main(*sys.argv[1:]))
print(json.dumps(TOLD, sort_keys=True))
