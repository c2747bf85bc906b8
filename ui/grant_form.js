// Grants a folder, file, tool or host in advance, for one agent and a lifetime.

import * as backend from "./backend.js";
import { addFailure } from "./failures.js";
import { html, live as liveValue, nothing } from "./html.js";
import * as parts from "./parts.js";
import { focusOn, redraw, say, state } from "./state.js";
import { grantSentence, LIFETIMES, PERMISSIONS } from "./texts/permissions.js";
import { short } from "./words.js";

/** @typedef {import("./types.js").KnownClient} KnownClient */
/** @typedef {import("./types.js").Access} Access */

/** @type {Access[]} */
const ACCESSES = ["read", "write", "delete"];

/** @type {[string, string][]} */
const KINDS = [["files", PERMISSIONS.kinds.files], ["tool", PERMISSIONS.kinds.tool], ["host", PERMISSIONS.kinds.host]];

/** @type {import("./types.js").RequestedGrant} */
const requested = { client: "", server: "", kind: "folder", what: "", access: ["read"], lifetime: "hour" };
let granting = false;
let done = "";
let problem = "";

/** True while the form is open. */
let adding = false;

/** Returns the button that opens the form. */
export const addButton = () => parts.button("gift", html`${parts.icon("plus")} ${PERMISSIONS.add}`, () => turn(!adding), { label: PERMISSIONS.addTitle, kind: "main", expanded: adding });

/** @param {boolean} on */
function turn(on) {
  adding = on;
  done = problem = "";
  if (on) chooseClient(state.snapshot?.clients[0]);
  focusOn(on ? "gift-client" : "gift");
}

/**
 * Chooses an agent, its first server and the first tool. Only the user's choices change them: an agent that connects or
 * disconnects never changes what the form grants.
 * @param {KnownClient | undefined} client
 */
const chooseClient = (client) => set({ client: client?.key ?? "", ...first(client, client?.servers[0] ?? "", requested.kind) });

/**
 * @param {KnownClient | undefined} client
 * @param {string} server
 * @param {import("./types.js").RequestedGrant["kind"]} kind
 */
const first = (client, server, kind) => ({ server, kind, what: kind === "tool" ? (client?.tools[server]?.[0] ?? "") : "" });

/** @param {import("./types.js").Snapshot} snapshot */
export function addPanel({ clients, home }) {
  if (clients.length === 0 || !adding) return nothing;
  const client = clients.find((one) => one.key === requested.client);
  const servers = client?.servers ?? [];
  const isLive = client?.live.includes(requested.server) ?? false;
  const tools = client?.tools[requested.server] ?? [];
  const what = requested.kind === "host" ? requested.what.trim() : requested.kind === "tool" && tools.includes(requested.what) ? requested.what : "";
  const whole = { ...requested, what };
  const missing = client === undefined ? PERMISSIONS.agentGone : !servers.includes(requested.server) ? PERMISSIONS.serverGone : requested.lifetime === "session" && !isLive ? PERMISSIONS.sessionGone : "";
  return html`
    <div class="card" role="group" aria-label=${PERMISSIONS.addTitle}>
      ${parts.section(PERMISSIONS.addTitle, parts.iconButton("gift-close", "x", PERMISSIONS.close, () => turn(false), { leaves: true }))}
      <div class="form">
        ${parts.field(PERMISSIONS.agent, parts.select("gift-client", requested.client, orNone(requested.client, clients.map((one) => [one.key, one.name])), (to) => chooseClient(clients.find((one) => one.key === to))), client ? html`${PERMISSIONS.verified} ${parts.path(client.key)}` : nothing)}
        ${parts.field(PERMISSIONS.server, parts.select("gift-server", requested.server, orNone(requested.server, servers.map((name) => [name, name])), (to) => set(first(client, to, requested.kind))))}
        ${parts.field(PERMISSIONS.what, parts.select("gift-kind", requested.kind === "tool" || requested.kind === "host" ? requested.kind : "files", KINDS, (to) => set(first(client, requested.server, to === "files" ? "folder" : /** @type {any} */ (to)))))}
        ${parts.field(PERMISSIONS.lasts, parts.select("gift-lifetime", requested.lifetime, LIFETIMES.filter(([value]) => isLive || value !== "session" || requested.lifetime === "session"), (to) => set({ lifetime: /** @type {any} */ (to) })))}
        ${whole.kind === "tool" ? tools.length > 0 ? parts.field(PERMISSIONS.tool, parts.select("gift-tool", what, orNone(what, tools.map((name) => [name, name])), (to) => set({ what: to }))) : nothing
          : whole.kind === "host" ? parts.field(PERMISSIONS.host, html`<input type="text" class="mono" autocomplete="off" spellcheck="false" placeholder="api.example.com" data-key="gift-host" .value=${liveValue(requested.what)} @input=${(/** @type {Event} */ event) => set({ what: parts.valueOf(event) })}>`)
          : accessTicks("gift", requested.access, ACCESSES, (access) => set({ access }))}
      </div>
      ${missing || !client ? parts.problem(missing) : html`
        <p class="says">${parts.foreign(grantSentence(whole, client.name))}</p>
        ${give(whole, what, home)}`}
      ${done ? html`<p class="small good" role="status">${done}</p>` : nothing}
      ${problem ? parts.problem(PERMISSIONS.notGranted(problem)) : nothing}
    </div>`;
}

/**
 * Adds an empty choice if the chosen value is not in the list.
 * @param {string} chosen
 * @param {[string, string][]} options
 * @returns {[string, string][]}
 */
const orNone = (chosen, options) => (options.some(([value]) => value === chosen) ? options : [[chosen, PERMISSIONS.choose], ...options]);

/**
 * Returns the buttons that grant the requested access.
 * @param {import("./types.js").RequestedGrant} whole
 * @param {string} what
 * @param {string} home
 */
function give(whole, what, home) {
  const isOff = whole.access.length === 0;
  if (whole.kind === "tool" || whole.kind === "host") {
    return what === "" ? nothing : html`<div class="both start">${parts.button("gift-give", PERMISSIONS.grant, () => void grant(whole, home), { kind: "main", busy: granting })}</div>`;
  }
  return html`
    <div class="both start">
      ${parts.button("pick-folder", PERMISSIONS.pickFolder, () => void grant({ ...whole, kind: "folder" }, home), { kind: "main", busy: granting, off: isOff })}
      ${parts.button("pick-file", PERMISSIONS.pickFile, () => void grant({ ...whole, kind: "file" }, home), { busy: granting, off: isOff })}
    </div>`;
}

/**
 * Returns a check box for each kind of access.
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
  done = problem = "";
  redraw();
}

/**
 * @param {import("./types.js").RequestedGrant} whole
 * @param {string} home
 */
async function grant(whole, home) {
  if (granting) return;
  granting = true;
  done = problem = "";
  redraw();
  try {
    const granted = await backend.grantBeforehand(whole);
    if (granted !== null) done = PERMISSIONS.granted(short(granted, home));
    if (done) say(done);
  } catch (failure) {
    problem = backend.sentence(failure);
    if (!adding) addFailure(PERMISSIONS.notGranted(problem));
  }
  granting = false;
  redraw();
}
