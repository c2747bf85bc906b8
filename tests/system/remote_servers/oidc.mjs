// A server that speaks MCP, and the authorization server `oidc-provider` with its own pages at the same address: HOST CERTIFICATE
// KEY. Prints the port, and a port without TLS that controls it: `/tokens` lists all codes and tokens, and `/expire` makes the
// server refuse the access tokens so far.

import { readFileSync } from "node:fs";
import { createServer as createControl } from "node:http";
import { createServer } from "node:https";
import Provider from "../../../target/npm/node_modules/oidc-provider/lib/index.js";

// The test reads only the ports, so that later output would end this process.
console.info = console.error;

const [host, certificate, key] = process.argv.slice(2);
const server = createServer({ cert: readFileSync(certificate), key: readFileSync(key) });
const listening = (one) => new Promise((done) => one.listen(0, "127.0.0.1", () => done(one.address().port)));
const base = `https://${host}:${await listening(server)}`;
const resource = `${base}/mcp`;
const issued = [];
const refused = new Set();

const provider = new Provider(base, {
  clientDefaults: { token_endpoint_auth_method: "none" },
  cookies: { keys: ["only-for-tests"] },
  features: {
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: () => ({ scope: "use", audience: resource, accessTokenFormat: "opaque", accessTokenTTL: 3600 }),
      useGrantedResource: () => true,
    },
  },
  // Without the scope `offline_access`, which would ask for consent each time.
  issueRefreshToken: async (ctx, client) => client.grantTypeAllowed("refresh_token"),
  rotateRefreshToken: true,
  scopes: ["use"],
});
for (const event of ["authorization_code.saved", "access_token.saved", "refresh_token.saved"]) {
  provider.on(event, (token) => issued.push(token.jti));
}

/** The results of the server's methods. */
const results = {
  initialize: () => ({
    protocolVersion: "2025-06-18",
    capabilities: { tools: {} },
    serverInfo: { name: "far", version: "1" },
  }),
  "tools/list": () => ({ tools: [{ name: "say", inputSchema: { type: "object", properties: { text: { type: "string" } } } }] }),
  "tools/call": (params) => ({ content: [{ type: "text", text: params.arguments.text }] }),
};

/** Returns whether a request has an access token for this server. */
async function isLoggedIn(request) {
  const [, value] = /^Bearer (.+)$/.exec(request.headers.authorization ?? "") ?? [];
  const token = value && !refused.has(value) ? await provider.AccessToken.find(value) : undefined;
  return token?.isValid === true && token.aud === resource && token.scopes.has("use");
}

async function serve(request, response) {
  const answer = (status, body, headers = {}) => {
    response.writeHead(status, { "Content-Type": "application/json", ...headers });
    response.end(body === undefined ? "" : JSON.stringify(body));
  };
  if (!(await isLoggedIn(request))) {
    const metadata = `${base}/.well-known/oauth-protected-resource/mcp`;
    return answer(401, undefined, { "WWW-Authenticate": `Bearer resource_metadata="${metadata}", scope="use"` });
  }
  if (request.method !== "POST") return answer(405);
  let text = "";
  for await (const piece of request) text += piece;
  const { id, method, params } = JSON.parse(text);
  return id === undefined ? answer(202) : answer(200, { jsonrpc: "2.0", id, result: results[method](params) });
}

function json(response, value) {
  const body = JSON.stringify(value);
  response.writeHead(200, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) });
  response.end(body);
}

const pages = provider.callback();
server.on("request", (request, response) => {
  switch (new URL(request.url, base).pathname) {
    case "/mcp":
      return serve(request, response);
    case "/.well-known/oauth-protected-resource/mcp":
      return json(response, { resource, authorization_servers: [base], scopes_supported: ["use"] });
    default:
      return pages(request, response);
  }
});
const control = createControl((request, response) => {
  if (request.url === "/expire") issued.forEach((token) => refused.add(token));
  json(response, issued);
});
console.log(new URL(base).port, await listening(control));
