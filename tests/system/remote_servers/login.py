"""A server and an authorization server that use the Python SDK. Users log in without a password.

Prints its port. `/tokens` lists all codes and tokens, `/valid` lists the valid tokens, `/expire` expires the access
tokens, and `/revoke` revokes all tokens. `/announce` sends a log message to the client that last called a tool. `/outage`
makes renewals fail and cuts the open streams, `/failed` counts the failed renewals, and `/recovery` ends the outage.
"""

import asyncio
import secrets
import socket
import sys
import time

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.requests import Request
from starlette.responses import JSONResponse, Response


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.issued: list[str] = []
        self.is_out = False
        self.failed = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=secrets.token_hex(20),
            scopes=params.scopes or ["use"],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        self.issued.append(code.code)
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.tokens(authorization_code)

    async def load_refresh_token(self, client, refresh_token):
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        if self.is_out:
            self.failed += 1
            raise RuntimeError("outage")
        del self.refresh[refresh_token.token]
        return self.tokens(refresh_token)

    async def load_access_token(self, token):
        return self.access.get(token)

    async def revoke_token(self, token) -> None:
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def tokens(self, grant: AuthorizationCode | RefreshToken) -> OAuthToken:
        facts = {"client_id": grant.client_id, "scopes": grant.scopes, "resource": grant.resource}
        access = AccessToken(token=secrets.token_hex(20), **facts)
        refresh = RefreshToken(token=secrets.token_hex(20), **facts)
        self.access[access.token] = access
        self.refresh[refresh.token] = refresh
        self.issued += [access.token, refresh.token]
        return OAuthToken(
            access_token=access.token,
            refresh_token=refresh.token,
            expires_in=3600,
            scope=" ".join(grant.scopes),
        )


listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
base = f"http://127.0.0.1:{port}"
provider = Provider()
server = MCPServer(
    "far",
    auth_server_provider=provider,
    auth=AuthSettings(
        issuer_url=base,
        resource_server_url=f"{base}/mcp",
        required_scopes=["use"],
        validate_token_resource=True,
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=["use"], default_scopes=["use"]
        ),
        revocation_options=RevocationOptions(enabled=True),
    ),
)


latest = None


@server.tool()
def say(text: str, ctx: Context) -> str:
    """Returns the text."""
    global latest
    latest = ctx.session
    return text


@server.custom_route("/announce", methods=["GET"])
async def announce(request: Request) -> Response:
    await latest.send_log_message("info", request.query_params["text"])
    return Response()


@server.custom_route("/tokens", methods=["GET"])
async def tokens(request: Request) -> Response:
    return JSONResponse(provider.issued)


@server.custom_route("/valid", methods=["GET"])
async def valid(request: Request) -> Response:
    return JSONResponse([*provider.access, *provider.refresh])


@server.custom_route("/expire", methods=["GET"])
async def expire(request: Request) -> Response:
    provider.access.clear()
    return Response()


@server.custom_route("/revoke", methods=["GET"])
async def revoke(request: Request) -> Response:
    provider.access.clear()
    provider.refresh.clear()
    return Response()


@server.custom_route("/outage", methods=["GET"])
async def outage(request: Request) -> Response:
    provider.is_out = True
    for stream in streams:
        stream.cancel()
    return Response()


@server.custom_route("/failed", methods=["GET"])
async def failed(request: Request) -> Response:
    return JSONResponse(provider.failed)


@server.custom_route("/recovery", methods=["GET"])
async def recovery(request: Request) -> Response:
    provider.is_out = False
    return Response()


streams: set[asyncio.Task[None]] = set()
inner = server.streamable_http_app()


async def app(scope, receive, send) -> None:
    """Serves a request. `/outage` can cut the streams of unsolicited messages."""
    if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] != "/mcp":
        return await inner(scope, receive, send)
    stream = asyncio.ensure_future(inner(scope, receive, send))
    streams.add(stream)
    try:
        await stream
    except asyncio.CancelledError:
        pass
    finally:
        streams.discard(stream)


print(port, flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
sys.exit(0)
