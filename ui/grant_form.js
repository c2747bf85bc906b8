// Grants a folder, file, tool or host in advance, for one agent and a lifetime.

import * as backend from "./backend.js";
import { html, live as liveValue, nothing } from "./html.js";
import * as parts from "./parts.js";
import { grantSentence, LIFETIMES } from "./sentences.js";
import { redraw, say } from "./state.js";
import { short } from "./words.js";

/** @typedef {import("./types.js").KnownClient} KnownClient */
/** @typedef {import("./types.js").Access} Access */

/** @type {Access[]} */
export const ACCESSES = ["read", "write", "delete"];

/** @type {[string, string][]} */
const KINDS = [["files", "a folder or file"], ["tool", "a tool"], ["host", "a host"]];

/** @type {import("./types.js").RequestedGrant} */
const requested = { client: "", server: "", kind: "folder", what: "", access: ["read"], lifetime: "hour" };
let picking = false;
let told = "";
let problem = "";

/** @param {import("./types.js").Snapshot} snapshot */
export function grantForm({ clients, home }) {
  const [first] = clients;
  if (!first) return nothing;
  const client = clients.find((one) => one.key === requested.client) ?? first;
  const server = client.servers.includes(requested.server) ? requested.server : (client.servers[0] ?? "");
  const live = client.live.includes(server);
  const lifetime = requested.lifetime === "session" && !live ? "hour" : requested.lifetime;
  const tools = client.tools[server] ?? [];
  const what = requested.kind === "tool" ? (tools.includes(requested.what) ? requested.what : (tools[0] ?? "")) : requested.kind === "host" ? requested.what.trim() : "";
  const whole = { ...requested, client: client.key, server, lifetime, what };
  return html`
    <details class="card">
      <summary data-key="gift">Add a permission\u2026</summary>
      <div class="form">
        ${parts.field("Agent", parts.select("gift-client", client.key, clients.map((one) => [one.key, one.name]), (to) => set({ client: to })), html`verified: ${parts.path(client.key)}`)}
        ${parts.field("Server", parts.select("gift-server", server, client.servers.map((name) => [name, name]), (to) => set({ server: to })))}
        ${parts.field("What", parts.select("gift-kind", requested.kind === "tool" || requested.kind === "host" ? requested.kind : "files", KINDS, (to) => set({ kind: to === "files" ? "folder" : /** @type {any} */ (to), what: "" })))}
        ${parts.field("Lasts", parts.select("gift-lifetime", lifetime, LIFETIMES.filter(([value]) => live || value !== "session"), (to) => set({ lifetime: /** @type {any} */ (to) })))}
        ${whole.kind === "tool" ? tools.length > 0 ? parts.field("Tool", parts.select("gift-tool", what, tools.map((name) => [name, name]), (to) => set({ what: to }))) : nothing
          : whole.kind === "host" ? parts.field("Host", html`<input type="text" class="mono" autocomplete="off" spellcheck="false" placeholder="api.example.com" data-key="gift-host" .value=${liveValue(requested.what)} @input=${(/** @type {Event} */ event) => set({ what: parts.valueOf(event) })}>`)
          : accessTicks("gift", requested.access, ACCESSES, (access) => set({ access }))}
      </div>
      <p class="says">${grantSentence(whole, client.name)}</p>
      ${whole.kind === "tool" || whole.kind === "host"
        ? what === "" ? nothing : html`<div class="both start">${parts.button("gift-give", "Grant it", () => void give(whole, home), { kind: "main", busy: picking })}</div>`
        : html`<div class="both start">
          ${parts.button("pick-folder", "Pick a folder\u2026", () => void give({ ...whole, kind: "folder" }, home), { kind: "main", busy: picking, off: requested.access.length === 0 })}
          ${parts.button("pick-file", "Pick a file\u2026", () => void give({ ...whole, kind: "file" }, home), { busy: picking, off: requested.access.length === 0 })}
        </div>`}
      ${told ? html`<p class="small good" role="status">${told}</p>` : nothing}
      ${problem ? parts.problem(`Not granted: ${problem}`) : nothing}
    </details>`;
}

/**
 * Returns the check boxes of the access.
 * @param {string} key
 * @param {Access[]} chosen
 * @param {Access[]} from
 * @param {(access: Access[]) => void} choose
 */
export const accessTicks = (key, chosen, from, choose) => html`
  <fieldset class="field"><legend class="name">May</legend>
    <div class="ticks">${from.map((one) =>
      parts.tick(`${key}:${one}`, one, chosen.includes(one), (on) => choose(from.filter((other) => (other === one ? on : chosen.includes(other))))),
    )}</div>
  </fieldset>`;

/** @param {Partial<import("./types.js").RequestedGrant>} change */
function set(change) {
  Object.assign(requested, change);
  told = problem = "";
  redraw();
}

/**
 * @param {import("./types.js").RequestedGrant} whole
 * @param {string} home
 */
async function give(whole, home) {
  picking = true;
  told = problem = "";
  redraw();
  try {
    const granted = await backend.grantBeforehand(whole);
    if (granted !== null) told = `Granted: ${short(granted, home)}`;
    if (told) say(told);
  } catch (failure) {
    problem = backend.sentence(failure);
  }
  picking = false;
  redraw();
}
