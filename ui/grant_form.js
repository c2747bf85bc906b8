// Grants a folder, file, tool or host in advance, for one agent and a lifetime.

import * as backend from "./backend.js";
import { html, live as liveValue, nothing } from "./html.js";
import * as parts from "./parts.js";
import { grantSentence, LIFETIMES } from "./sentences.js";
import { focusOn, redraw, say } from "./state.js";
import { PERMISSIONS } from "./texts/permissions.js";
import { short } from "./words.js";

/** @typedef {import("./types.js").KnownClient} KnownClient */
/** @typedef {import("./types.js").Access} Access */

/** @type {Access[]} */
const ACCESSES = ["read", "write", "delete"];

/** @type {[string, string][]} */
const KINDS = [["files", PERMISSIONS.kinds.files], ["tool", PERMISSIONS.kinds.tool], ["host", PERMISSIONS.kinds.host]];

/** @type {import("./types.js").RequestedGrant} */
const requested = { client: "", server: "", kind: "folder", what: "", access: ["read"], lifetime: "hour" };
let picking = false;
let told = "";
let problem = "";

/** True while the form is open. */
let adding = false;

/** Returns the button that opens the form. */
export const addButton = () => parts.button("gift", html`${parts.icon("plus")} ${PERMISSIONS.add}`, () => turn(!adding), { label: PERMISSIONS.addTitle, kind: "main", expanded: adding });

/** @param {boolean} on */
function turn(on) {
  adding = on;
  told = problem = "";
  focusOn(on ? "gift-client" : "gift");
}

/** @param {import("./types.js").Snapshot} snapshot */
export function addPanel({ clients, home }) {
  const [first] = clients;
  if (!first || !adding) return nothing;
  const client = clients.find((one) => one.key === requested.client) ?? first;
  const server = client.servers.includes(requested.server) ? requested.server : (client.servers[0] ?? "");
  const live = client.live.includes(server);
  const lifetime = requested.lifetime === "session" && !live ? "hour" : requested.lifetime;
  const tools = client.tools[server] ?? [];
  const what = requested.kind === "tool" ? (tools.includes(requested.what) ? requested.what : (tools[0] ?? "")) : requested.kind === "host" ? requested.what.trim() : "";
  const whole = { ...requested, client: client.key, server, lifetime, what };
  return html`
    <div class="card" role="group" aria-label=${PERMISSIONS.addTitle}>
      ${parts.section(PERMISSIONS.addTitle, parts.iconButton("gift-close", "x", PERMISSIONS.close, () => turn(false), { leaves: true }))}
      <div class="form">
        ${parts.field(PERMISSIONS.agent, parts.select("gift-client", client.key, clients.map((one) => [one.key, one.name]), (to) => set({ client: to })), html`${PERMISSIONS.verified} ${parts.path(client.key)}`)}
        ${parts.field(PERMISSIONS.server, parts.select("gift-server", server, client.servers.map((name) => [name, name]), (to) => set({ server: to })))}
        ${parts.field(PERMISSIONS.what, parts.select("gift-kind", requested.kind === "tool" || requested.kind === "host" ? requested.kind : "files", KINDS, (to) => set({ kind: to === "files" ? "folder" : /** @type {any} */ (to), what: "" })))}
        ${parts.field(PERMISSIONS.lasts, parts.select("gift-lifetime", lifetime, LIFETIMES.filter(([value]) => live || value !== "session"), (to) => set({ lifetime: /** @type {any} */ (to) })))}
        ${whole.kind === "tool" ? tools.length > 0 ? parts.field(PERMISSIONS.tool, parts.select("gift-tool", what, tools.map((name) => [name, name]), (to) => set({ what: to }))) : nothing
          : whole.kind === "host" ? parts.field(PERMISSIONS.host, html`<input type="text" class="mono" autocomplete="off" spellcheck="false" placeholder="api.example.com" data-key="gift-host" .value=${liveValue(requested.what)} @input=${(/** @type {Event} */ event) => set({ what: parts.valueOf(event) })}>`)
          : accessTicks("gift", requested.access, ACCESSES, (access) => set({ access }))}
      </div>
      <p class="says">${grantSentence(whole, client.name)}</p>
      ${whole.kind === "tool" || whole.kind === "host"
        ? what === "" ? nothing : html`<div class="both start">${parts.button("gift-give", PERMISSIONS.grant, () => void give(whole, home), { kind: "main", busy: picking })}</div>`
        : html`<div class="both start">
          ${parts.button("pick-folder", PERMISSIONS.pickFolder, () => void give({ ...whole, kind: "folder" }, home), { kind: "main", busy: picking, off: requested.access.length === 0 })}
          ${parts.button("pick-file", PERMISSIONS.pickFile, () => void give({ ...whole, kind: "file" }, home), { busy: picking, off: requested.access.length === 0 })}
        </div>`}
      ${told ? html`<p class="small good" role="status">${told}</p>` : nothing}
      ${problem ? parts.problem(PERMISSIONS.notGranted(problem)) : nothing}
    </div>`;
}

/**
 * Returns the check boxes of the access.
 * @param {string} key
 * @param {Access[]} chosen
 * @param {Access[]} from
 * @param {(access: Access[]) => void} choose
 */
export const accessTicks = (key, chosen, from, choose) => html`
  <fieldset class="field"><legend class="name">${PERMISSIONS.may}</legend>
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
    if (granted !== null) told = PERMISSIONS.granted(short(granted, home));
    if (told) say(told);
  } catch (failure) {
    problem = backend.sentence(failure);
  }
  picking = false;
  redraw();
}
