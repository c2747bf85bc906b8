// The agent clients on this computer: which start their servers through IronCurtain, and connecting another one.

import { actButton, planPanel } from "../acts.js";
import * as backend from "../backend.js";
import { permissions } from "../grant_list.js";
import { html, nothing, repeat } from "../html.js";
import * as parts from "../parts.js";
import { knownProfiles, loadProfiles } from "../profile_list.js";
import { redraw, state } from "../state.js";
import { count, list } from "../words.js";

/** @typedef {import("../types.js").FoundClient} FoundClient */
/** @typedef {import("../types.js").ClientWish} ClientWish */
/** @typedef {(one: FoundClient) => unknown} Buttons */

/** @type {FoundClient[] | null} */
let found = null;
let problem = "";
/** What is planned, with the wish that it is for.
 * @type {Map<string, { wish: ClientWish, change: import("../types.js").PlannedChange }>} */
const planned = new Map();
/** The plain keys of what is to move, also while they are to stay as they are.
 * @type {Map<string, import("../types.js").PlainSecret[]>} */
const keys = new Map();
/** @type {Map<string, string>} */
const told = new Map();
let server = "";

/** @type {import("../app.js").Page} */
export const clients = {
  id: "clients",
  name: "Clients",
  async load() {
    try {
      found = await backend.foundClients();
      problem = "";
      await loadProfiles();
    } catch (failure) {
      problem = backend.sentence(failure);
    }
  },
  view: (snapshot) => html`
    <h1>Clients</h1>
    ${snapshot.clients.length === 0
      ? parts.empty("Nothing is protected yet.", "No client has started a server through IronCurtain. Connect one of those below.")
      : parts.group(repeat(snapshot.clients, (one) => one.key, seenRow))}
    <h2>On this computer</h2>
    ${problem ? parts.problem(`The clients cannot be looked for: ${problem}`) : nothing}
    ${found === null ? nothing : here(found)}
    <h2>By hand</h2>
    ${howTo(snapshot)}`,
};

/**
 * A client that has connected, by its proof.
 * @param {import("../types.js").KnownClient} one
 */
function seenRow(one) {
  const grants = state.snapshot ? permissions(state.snapshot).filter((grant) => grant.client === one.name).length : 0;
  return parts.row(html`
    <div>${parts.client(one.name, one.key)} ${one.live.length > 0 ? html`<span class="badge allow">connected</span>` : html`<span class="badge note">not running</span>`}</div>
    <div class="facts">proved: ${parts.path(one.key)}</div>
    ${parts.facts(one.servers.length > 0 ? `uses ${list(one.servers)}` : nothing, grants > 0 ? html`<a href="#granted">${count(grants, "permission")}</a>` : "no permissions")}`);
}

/**
 * The clients on this computer for which something holds.
 * @param {(one: FoundClient) => boolean} wanted
 * @param {string} none Said where there is none.
 * @param {string} then
 * @param {Buttons} [buttons] What can be done with each, beside moving its servers.
 */
export function foundRows(wanted, none, then, buttons = allButtons) {
  if (problem) return parts.problem(`The clients cannot be looked for: ${problem}`);
  if (found === null) return nothing;
  const there = found.filter((one) => one.state !== "missing" && wanted(one));
  return there.length === 0 ? parts.empty(none, then) : parts.group(repeat(there, (one) => one.id, (one) => foundRow(one, buttons)));
}

/** @param {FoundClient[]} all */
function here(all) {
  const others = all.filter((one) => one.state === "missing").map((one) => one.name);
  return html`
    ${foundRows(() => true, "No agent client was found.", "Install one, or connect it by hand as described below.")}
    ${others.length > 0 ? html`<p class="small quiet after">Looked for as well: ${list(others)}.</p>` : nothing}`;
}

/** @type {Record<FoundClient["state"], [string, string]>} */
const STATES = {
  missing: ["note", "not here"],
  "not-connected": ["note", "not connected"],
  connected: ["allow", "behind the shield"],
  bypassing: ["ask", "some servers go past the shield"],
  drifted: ["ask", "starts another shim; connect it again"],
  unreadable: ["deny", "its settings cannot be read"],
};

/**
 * @param {FoundClient} one
 * @param {Buttons} buttons
 */
function foundRow(one, buttons) {
  const [kind, words] = STATES[one.state];
  const plan = planned.get(one.id);
  const past = one.entries.filter((entry) => entry.past);
  const note = told.get(one.id);
  return parts.row(
    html`
      <div><b>${one.name}</b> <span class="badge ${kind}">${words}</span></div>
      <div class="facts">${parts.path(one.file)}</div>
      ${one.problem ? parts.warning(one.problem) : nothing}
      ${one.entries.length > 0 ? html`<ul class="small entries">${repeat(one.entries, (entry) => entry.name, (entry) => entryLine(one, entry, plan === undefined))}</ul>` : nothing}
      ${note ? html`<p class="small good" role="status">${note}</p>` : nothing}
      ${plan ? changePanel(one, plan.wish, plan.change) : nothing}`,
    one.state === "unreadable" || plan ? nothing : html`
      ${past.length > 1 ? planButton(one, `move:${one.id}`, { kind: "move", only: null, secrets: true }, "Move all of them\u2026") : nothing}
      ${buttons(one)}`,
  );
}

/** @type {Buttons} */
const allButtons = (one) => html`
  ${planButton(one, `connect:${one.id}`, { kind: "connect" }, one.state === "connected" ? "Connect again\u2026" : "Connect\u2026")}
  ${knownProfiles().map(({ name }) => planButton(one, `profile:${one.id}:${name}`, { kind: "profile", profile: name }, `Give it the profile ${name}\u2026`))}
  ${one.state === "not-connected" ? nothing : planButton(one, `disconnect:${one.id}`, { kind: "disconnect" }, "Disconnect\u2026")}`;

/**
 * A server that a client starts, what that does today, and the choice to move just it.
 * @param {FoundClient} one
 * @param {FoundClient["entries"][number]} entry
 * @param {boolean} isFree
 */
const entryLine = (one, entry, isFree) => html`
  <li><span><code>${entry.name}</code> <span class=${entry.past ? "asks" : "quiet"}>${entry.past ? "\u26a0 " : ""}${parts.foreign(entry.way)}</span></span>
    ${entry.past && isFree ? planButton(one, `move:${one.id}:${entry.name}`, { kind: "move", only: [entry.name], secrets: true }, "Move it\u2026", `Move it\u2026 behind the shield: ${entry.name} of ${one.name}`) : nothing}
  </li>`;

/**
 * @param {FoundClient} one
 * @param {string} key
 * @param {ClientWish} wish
 * @param {string} ready
 * @param {string} [label]
 */
const planButton = (one, key, wish, ready, label = `${ready} ${one.name}`) =>
  actButton({ key, ready, label, going: "Looking\u2026", done: "Looked", failed: "Not possible", again: true, act: () => plan(one.id, wish) });

/**
 * @param {string} id
 * @param {ClientWish} wish
 */
async function plan(id, wish) {
  told.delete(id);
  const change = await backend.planClient(id, wish);
  if (wish.kind !== "move") keys.delete(id);
  else if (wish.secrets) keys.set(id, change.secrets);
  planned.set(id, { wish, change });
  redraw();
}

/**
 * The plain keys of what is to move, each by its place, and the choice where they go.
 * @param {FoundClient} one
 * @param {ClientWish} wish
 */
function keyChoice(one, wish) {
  const known = keys.get(one.id) ?? [];
  if (wish.kind !== "move" || known.length === 0) return nothing;
  const turn = (/** @type {boolean} */ on) => void plan(one.id, { ...wish, secrets: on });
  return html`
    <p class="some">${known.length === 1 ? "A key stands" : "Keys stand"} there in plain words:</p>
    <ul class="small opened">${known.map((key) => html`<li><span><code>${key.place}</code> of ${parts.foreign(key.server)}${wish.secrets ? html`, from now on <code>keyring:${key.name}</code>` : nothing}</span></li>`)}</ul>
    ${parts.tick(`keys:${one.id}`, known.length === 1 ? "Move it to your keyring, which gives it to its server alone" : "Move them to your keyring, which gives each to its server alone", wish.secrets, turn)}
    ${wish.secrets ? nothing : parts.warning("It then stands in IronCurtain's own settings as it is.")}`;
}

/**
 * The whole change, before it is written.
 * @param {FoundClient} one
 * @param {ClientWish} wish
 * @param {import("../types.js").PlannedChange} change
 */
function changePanel(one, wish, change) {
  const leave = () => {
    planned.delete(one.id);
    redraw();
  };
  const isEmpty = change.diff === "" && !change.servers_diff;
  return planPanel(
    `Change of ${one.name}`,
    html`
      ${isEmpty ? html`<p>${one.name} has what it is to have: there is nothing to write.</p>` : html`<p>This is written to ${parts.path(change.file)}. What stood there before is kept, and Disconnect gives it back.</p><pre tabindex="0">${change.diff}</pre>`}
      ${change.servers_diff ? html`<p>And to the servers of IronCurtain:</p><pre tabindex="0">${change.servers_diff}</pre>` : nothing}
      ${keyChoice(one, wish)}
      ${change.left.map((left) => parts.warning(`Stays as it is: ${left}`))}`,
    isEmpty ? null : {
      key: `write:${one.id}`,
      ready: "Write this",
      label: `Write this to the settings of ${one.name}`,
      going: "Writing\u2026",
      done: "Written",
      failed: "Not written",
      act: async () => {
        told.set(one.id, await backend.writeClient(one.id));
        planned.delete(one.id);
        await clients.load?.();
      },
    },
    { key: `leave:${one.id}`, text: "Leave it", press: leave },
  );
}

/** @param {import("../types.js").Snapshot} snapshot */
function howTo({ status, shim }) {
  const name = status.servers.includes(server) ? server : (status.servers[0] ?? "filesystem");
  const entry = JSON.stringify({ mcpServers: { [name]: { command: shim, args: ["--server", name] } } }, null, 2);
  return html`
    <details class="card">
      <summary data-key="by-hand">The entry for a client's settings</summary>
      <p>In the place of a server, have the client start IronCurtain, which starts the server in its sandbox:</p>
      ${parts.field("Server", parts.select("connect-server", name, status.servers.map((one) => [one, one]), (to) => { server = to; redraw(); }))}
      <pre tabindex="0" aria-label="Entry for the client's settings">${entry}</pre>
      <p class="quiet small">Start the client again afterwards; it appears above when it connects.</p>
    </details>`;
}
