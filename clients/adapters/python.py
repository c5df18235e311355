"""The client of PyPI's mcp, which knows both eras of the protocol.

Questions come in as JSON lines; what the client's API made of each goes out as one. What the server asks a person
meanwhile goes out too, and the next line that comes in is what they said.
"""

import json
import sys
from typing import Any

import anyio
from mcp import Client, MCPError, StdioServerParameters
from mcp.types import ElicitRequestParams, ElicitResult, Request, Result


class Anything(Result, extra="allow"):
    """The answer to a method that the client knows nothing about."""


async def ask(client: Client, method: str, params: dict[str, Any]) -> Any:
    match method:
        case "tools/list":
            return await client.list_tools()
        case "tools/call":
            return await client.call_tool(params["name"], params["arguments"])
        case "resources/list":
            return await client.list_resources()
        case "resources/templates/list":
            return await client.list_resource_templates()
        case "resources/read":
            return await client.read_resource(params["uri"])
        case _:
            request = Request[dict[str, Any], str](method=method, params=params)
            return await client.session.send_request(request, Anything)


def plain(model: Any) -> Any:
    """As MCP spells it."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


async def hear() -> Any:
    """The next line; nothing at the end."""
    line = await anyio.to_thread.run_sync(sys.stdin.readline)
    return json.loads(line) if line else None


async def person(_: Any, params: ElicitRequestParams) -> ElicitResult:
    """Answers a form."""
    say({"asked": plain(params)})
    return ElicitResult.model_validate(await hear())


async def main() -> None:
    protocol, transport, target, *args = sys.argv[1:]
    server = StdioServerParameters(command=target, args=args) if transport == "stdio" else target
    mode = "auto" if protocol == "2026-07-28" else "legacy"
    async with Client(server, mode=mode, elicitation_callback=person) as client:
        opened = {
            "protocolVersion": client.protocol_version,
            "capabilities": plain(client.server_capabilities),
            "serverInfo": plain(client.server_info),
        }
        say({"result": opened})
        while question := await hear():
            try:
                say({"result": plain(await ask(client, question["method"], question["params"]))})
            except MCPError as error:
                say({"error": {"code": error.code, "message": error.message}})


anyio.run(main)
