// One installed server as a row, with its details.

import { html, nothing } from "./html.js";
import { openable, show } from "./opened.js";
import * as parts from "./parts.js";
import { changedTools, hasSuspendedTools } from "./server_changed_tools.js";
import { suspendedPanel } from "./server_identity.js";
import { limits } from "./server_limits.js";
import { processes } from "./server_live.js";
import { loginPanel } from "./server_login.js";
import { openings } from "./server_openings.js";
import { checkButton, installButton, updatePanel } from "./server_package.js";
import { removalPanel, removeButton } from "./server_remove.js";
import { reviewButton, tools } from "./server_tools.js";
import { SERVERS } from "./texts/servers.js";

/** @typedef {import("./types.js").Server} Server */

/** Result of the last action, by server. @type {Map<string, string>} */
const results = new Map();

/** Servers whose details were opened because of a decision. @type {Set<string>} */
const decisions = new Set();

/**
 * @param {Server} server
 * @param {() => Promise<void>} reload
 */
export function serverRow(server, reload) {
  const key = `server:${server.name}`;
  // Opens the details once when a decision is needed. The user can close them.
  const isUndecided = server.suspended || hasSuspendedTools(server);
  if (isUndecided && !decisions.has(server.name)) show(key);
  if (isUndecided) decisions.add(server.name);
  else decisions.delete(server.name);
  const done = async (/** @type {string} */ words) => {
    results.set(server.name, words);
    show(key);
    await reload();
  };
  const main = mainAct(server);
  const stopped = server.live.filter((one) => one.trouble).length;
  return openable(key, SERVERS.details(server.name), {
    before: parts.icon(server.remote ? "cloud" : server.sandboxed ? "box" : "triangle-alert", server.sandboxed || server.remote ? "" : "bad"),
    what: html`
      ${parts.title(parts.foreign(server.name), sandbox(server), running(server, stopped), hasSuspendedTools(server) ? parts.dot("bad", SERVERS.toolsChanged) : nothing)}
      ${parts.facts(network(server), SERVERS.sessions(server.live.length), SERVERS.restarts(server.live.reduce((n, one) => n + one.restarts, 0)), server.tools.length === 0 && !server.suspended ? html`<span class="asks">${SERVERS.notReviewed}</span>` : nothing)}`,
    act: html`${main === "install" ? installButton(server, done) : main === "review" ? reviewButton(server, key) : nothing}
      ${parts.menu(`more:${server.name}`, SERVERS.more(server.name), () => html`
        ${main === "review" ? nothing : reviewButton(server, key)}
        ${main === "install" ? nothing : installButton(server, done)}
        ${checkButton(server, key)}
        ${removeButton(server, key)}`)}`,
  }, () => details(server, done, reload));
}

/**
 * Returns the action that the server needs first.
 * @param {Server} server
 */
function mainAct(server) {
  if (server.suspended) return "";
  if (server.can_install && server.version === null && server.live.length === 0) return "install";
  return server.tools.length === 0 ? "review" : "";
}

/** @param {Server} server */
function sandbox({ remote, sandboxed }) {
  if (remote) return parts.chip(SERVERS.remote, "asks");
  return sandboxed ? parts.chip(SERVERS.sandboxed, "good", "shield-check") : parts.chip(SERVERS.notSandboxed, "bad", "shield-off");
}

/**
 * @param {Server} server
 * @param {number} stopped
 */
function running({ suspended, live }, stopped) {
  if (suspended) return parts.dot("bad", SERVERS.changed);
  if (stopped > 0) return parts.dot("bad", SERVERS.stopped(stopped));
  return live.length > 0 ? parts.dot("good", SERVERS.running) : parts.dot("note", SERVERS.idle);
}

/** @param {Server} server */
function network({ remote, sandboxed, network }) {
  if (remote) return nothing;
  if (!sandboxed) return SERVERS.allNetwork;
  return network ? SERVERS.hosts(network.hosts, network.asks) : SERVERS.noNetwork;
}

/**
 * @param {Server} server
 * @param {(words: string) => Promise<void>} done
 * @param {() => Promise<void>} reload
 */
const details = (server, done, reload) => html`
  ${suspendedPanel(server, reload)}
  ${results.get(server.name) ? html`<p class="small good" role="status">${results.get(server.name)}</p>` : nothing}
  ${server.problem ? parts.warning(server.problem) : nothing}
  ${changedTools(server, done)}
  ${removalPanel(server, reload)}
  ${updatePanel(server, done)}
  ${loginPanel(server, done)}
  ${server.description ? html`<p>${server.description}</p>` : nothing}
  <dl>
    <dt>${SERVERS.command}</dt><dd><code>${server.command}</code></dd>
    <dt>${SERVERS.sandbox}</dt><dd>${server.sandboxed ? SERVERS.isSandboxed : html`<span class="bad">${server.remote ? SERVERS.isRemote : SERVERS.isOpen}</span>`}</dd>
    ${server.reaches.map((one) => html`<dt></dt><dd>${one}</dd>`)}
    ${server.version ? html`<dt>${SERVERS.version}</dt><dd>${server.version}</dd>` : nothing}
    ${server.secrets.length > 0 ? html`<dt>${SERVERS.usesSecrets}</dt><dd>${server.secrets.map((one) => html`<code>${one}</code> `)}</dd>` : nothing}
  </dl>
  ${processes(server.name, server.live, reload)}
  ${tools(server, done)}
  ${openings(server, reload)}
  ${limits(server, reload)}`;
