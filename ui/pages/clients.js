// The programs that start servers through IronCurtain, and how another one is connected.

import { html, nothing, repeat } from "../html.js";
import * as parts from "../parts.js";
import { redraw, state } from "../state.js";
import { count, list } from "../words.js";

let server = "";

/** @type {import("../app.js").Page} */
export const clients = {
  id: "clients",
  name: "Clients",
  view: (snapshot) => html`
    <h1>Clients</h1>
    ${snapshot.clients.length === 0
      ? parts.empty("Nothing is protected yet.", "No client has started a server through IronCurtain. Connect one as described below.")
      : parts.group(repeat(snapshot.clients, (one) => one.key, clientRow))}
    <h2>Connect a client</h2>
    ${howTo(snapshot)}`,
};

/** @param {import("../types.js").KnownClient} one */
function clientRow(one) {
  const grants = state.snapshot?.grants.filter((grant) => grant.client === one.name).length ?? 0;
  return parts.row(html`
    <div>${parts.client(one.name, one.key)} ${one.live.length > 0 ? html`<span class="badge allow">connected</span>` : html`<span class="badge note">not running</span>`}</div>
    <div class="facts">proved: ${parts.path(one.key)}</div>
    ${parts.facts(one.servers.length > 0 ? `uses ${list(one.servers)}` : nothing, grants > 0 ? html`<a href="#granted">${count(grants, "permission")}</a>` : "no permissions")}`);
}

/** @param {import("../types.js").Snapshot} snapshot */
function howTo({ status, shim }) {
  const name = status.servers.includes(server) ? server : (status.servers[0] ?? "filesystem");
  const entry = JSON.stringify({ mcpServers: { [name]: { command: shim, args: ["--server", name] } } }, null, 2);
  return html`
    <div class="group"><div class="row"><div class="what">
      <p>A client reads which servers to start from a settings file of its own. In the place of a server, have it start IronCurtain, which starts the server in its sandbox:</p>
      ${parts.field("Server", parts.select("connect-server", name, status.servers.map((one) => [one, one]), (to) => { server = to; redraw(); }))}
      <pre tabindex="0" aria-label="Entry for the client's settings">${entry}</pre>
      <p class="quiet small">Claude Desktop: claude_desktop_config.json. Claude Code: .mcp.json in a project. Cursor: ~/.cursor/mcp.json. Start the client again afterwards; it appears above when it connects.</p>
    </div></div></div>`;
}
