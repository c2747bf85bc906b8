// The agent clients on this computer: their protection, and connecting another one.

import { actButton, planPanel } from "../action_button.js";
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
/** Planned changes, with the request that each is for.
 * @type {Map<string, { wish: ClientWish, change: import("../types.js").PlannedChange }>} */
const planned = new Map();
/** Unprotected keys of the servers to move, even if the keys are not moved.
 * @type {Map<string, import("../types.js").PlainSecret[]>} */
const keys = new Map();
/** @type {Map<string, string>} */
const told = new Map();
let server = "";

/** @type {import("../app.js").Page} */
export const clients = {
  id: "clients",
  name: "Clients",
  icon: "bot",
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
    ${problem ? parts.problem(`Looking for clients failed: ${problem}`) : nothing}
    ${found === null ? nothing : here(found)}
    <h2>By hand</h2>
    ${howTo(snapshot)}`,
};

/**
 * Returns the row of a client that has connected.
 * @param {import("../types.js").KnownClient} one
 */
function seenRow(one) {
  const grants = state.snapshot ? permissions(state.snapshot).filter((grant) => grant.client === one.name).length : 0;
  return parts.row(html`
    <div>${parts.client(one.name, one.key)} ${one.live.length > 0 ? html`<span class="badge allow">connected</span>` : html`<span class="badge note">not running</span>`}</div>
    <div class="facts">proved: ${parts.path(one.key)}</div>
    ${parts.facts(one.servers.length > 0 ? `uses ${list(one.servers)}` : nothing, grants > 0 ? html`<a href="#permissions">${count(grants, "permission")}</a>` : "no permissions")}`);
}

/**
 * Returns the rows of the clients that match.
 * @param {(one: FoundClient) => boolean} wanted
 * @param {string} none Title if none match.
 * @param {string} then
 * @param {Buttons} [buttons] Buttons of each client, besides those of its servers.
 */
export function foundRows(wanted, none, then, buttons = allButtons) {
  if (problem) return parts.problem(`Looking for clients failed: ${problem}`);
  if (found === null) return nothing;
  const there = found.filter((one) => one.state !== "missing" && wanted(one));
  return there.length === 0 ? parts.empty(none, then) : parts.group(repeat(there, (one) => one.id, (one) => foundRow(one, buttons)));
}

/** @param {FoundClient[]} all */
function here(all) {
  const others = all.filter((one) => one.state === "missing").map((one) => one.name);
  return html`
    ${foundRows(() => true, "No agent client was found.", "Install one, or connect it by hand as described below.")}
    ${others.length > 0 ? html`<p class="small quiet after">Not installed: ${list(others)}.</p>` : nothing}`;
}

/** @type {Record<FoundClient["state"], [string, string]>} */
const STATES = {
  missing: ["note", "not installed"],
  "not-connected": ["note", "not connected"],
  connected: ["allow", "protected"],
  bypassing: ["ask", "some servers are not protected"],
  drifted: ["ask", "starts another IronCurtain; connect it again"],
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
      ${past.length > 1 ? planButton(one, `move:${one.id}`, { kind: "move", only: null, secrets: true }, "Protect all of them\u2026") : nothing}
      ${buttons(one)}`,
  );
}

/** @type {Buttons} */
const allButtons = (one) => html`
  ${planButton(one, `connect:${one.id}`, { kind: "connect" }, one.state === "connected" ? "Connect again\u2026" : "Connect\u2026")}
  ${knownProfiles().map(({ name }) => planButton(one, `profile:${one.id}:${name}`, { kind: "profile", profile: name }, `Give it the profile ${name}\u2026`))}
  ${one.state === "not-connected" ? nothing : planButton(one, `disconnect:${one.id}`, { kind: "disconnect" }, "Disconnect\u2026")}`;

/**
 * Returns the row of a client's server, with a button to move only this server.
 * @param {FoundClient} one
 * @param {FoundClient["entries"][number]} entry
 * @param {boolean} isFree
 */
const entryLine = (one, entry, isFree) => html`
  <li><span><code>${entry.name}</code> <span class=${entry.past ? "asks" : "quiet"}>${entry.past ? "\u26a0 " : ""}${parts.foreign(entry.way)}</span></span>
    ${entry.past && isFree ? planButton(one, `move:${one.id}:${entry.name}`, { kind: "move", only: [entry.name], secrets: true }, "Protect it\u2026", `Protect it\u2026 ${entry.name} of ${one.name}`) : nothing}
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
 * Lists the unprotected keys of the servers to move, with the choice where to store them.
 * @param {FoundClient} one
 * @param {ClientWish} wish
 */
function keyChoice(one, wish) {
  const known = keys.get(one.id) ?? [];
  if (wish.kind !== "move" || known.length === 0) return nothing;
  const turn = (/** @type {boolean} */ on) => void plan(one.id, { ...wish, secrets: on });
  return html`
    <p class="some">${known.length === 1 ? "A key is" : "Keys are"} stored there unprotected:</p>
    <ul class="small opened">${known.map((key) => html`<li><span><code>${key.place}</code> of ${parts.foreign(key.server)}${wish.secrets ? html`, from now on <code>keyring:${key.name}</code>` : nothing}</span></li>`)}</ul>
    ${parts.tick(`keys:${one.id}`, known.length === 1 ? "Move it to your keyring, which gives it to its server alone" : "Move them to your keyring, which gives each to its server alone", wish.secrets, turn)}
    ${wish.secrets ? nothing : parts.warning("It is then stored unprotected in IronCurtain's own settings.")}`;
}

/**
 * Returns the panel with the whole change before it is written.
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
      ${isEmpty ? html`<p>${one.name} is already set up: there is nothing to change.</p>` : html`<p>This is written to ${parts.path(change.file)}. The previous settings are kept, and Disconnect restores them.</p><pre tabindex="0">${change.diff}</pre>`}
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
    { key: `leave:${one.id}`, text: "Cancel", press: leave },
  );
}

/** @param {import("../types.js").Snapshot} snapshot */
function howTo({ status, shim }) {
  const name = status.servers.includes(server) ? server : (status.servers[0] ?? "filesystem");
  const entry = JSON.stringify({ mcpServers: { [name]: { command: shim, args: ["--server", name] } } }, null, 2);
  return html`
    <details class="card">
      <summary data-key="by-hand">Connect another client by hand</summary>
      <p>Replace the server's entry with this one, which starts the server through IronCurtain:</p>
      ${parts.field("Server", parts.select("connect-server", name, status.servers.map((one) => [one, one]), (to) => { server = to; redraw(); }))}
      <pre tabindex="0" aria-label="Entry for the client's settings">${entry}</pre>
      <p class="quiet small">Then restart the client. It appears above when it connects.</p>
    </details>`;
}
