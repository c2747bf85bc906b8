// Connects agents, protects their servers and gives them profiles. Each change is shown in full before it is written.

import { actButton, planPanel } from "./action_button.js";
import { bypassing } from "./agent_list.js";
import * as backend from "./backend.js";
import { addFailure } from "./failures.js";
import { html, nothing, repeat } from "./html.js";
import { closeMenu } from "./menu.js";
import { openable } from "./opened.js";
import * as parts from "./parts.js";
import { planning } from "./plan_slots.js";
import { knownProfiles, loadProfiles } from "./profile_list.js";
import { focusOn, redraw } from "./state.js";
import { AGENTS } from "./texts/agents.js";
import { findBypasses } from "./bypasses.js";

/** @typedef {import("./types.js").FoundClient} FoundClient */
/** @typedef {import("./types.js").ClientWish} ClientWish */

/** @type {FoundClient[]} */
let found = [];
let isLoaded = false;
let hasLooked = false;
let problem = "";
/** Number and start time of the latest search, and the number of searches in progress. */
const search = { number: 0, began_ms: 0, going: 0 };
/** Minimum interval between two searches after changes, as for the tray. */
const SEARCH_MS = 10_000;
/** Planned changes, each with its request.
 * @type {Map<string, { wish: ClientWish, change: import("./types.js").PlannedChange }>} */
const planned = new Map();
/** Unprotected keys of the servers to move, whether or not the keys are moved too.
 * @type {Map<string, import("./types.js").PlainSecret[]>} */
const keys = new Map();
/** @type {Map<string, string>} */
const results = new Map();
let server = "";

/** Looks for the agents on this computer. */
export async function loadClients() {
  await searchClients();
  if (!problem) await loadProfiles();
}

/** Searches again if the last search is old, because the app is not notified when an agent's settings change. */
export async function refreshClients() {
  if (!hasLooked || search.going > 0 || Date.now() - search.began_ms < SEARCH_MS) return;
  await searchClients();
  redraw();
}

async function searchClients() {
  const number = ++search.number;
  search.began_ms = Date.now();
  search.going += 1;
  const { value, problem: why } = await backend.outcome(backend.foundClients());
  search.going -= 1;
  // A search that started later has a newer result.
  if (number !== search.number) return;
  problem = why;
  if (value) {
    found = value;
    isLoaded = true;
  }
  hasLooked = true;
}

/** Returns `true` once the search for agents has completed, even if it failed. */
export const hasLookedForClients = () => hasLooked;

export const foundClients = () => found;

/** Finds the bypasses of the live sessions and of the agents' settings. @param {import("./types.js").Snapshot} snapshot */
export const currentBypasses = ({ sessions }) => findBypasses(sessions, found);

/**
 * Returns the agents whose settings could not be read, or null if none could be. Their servers may bypass IronCurtain.
 * @returns {string[] | null}
 */
export const uncheckedAgents = () => (problem ? null : found.filter((one) => one.state === "unreadable").map((one) => one.name));

export const lookProblem = () => (problem ? parts.problem(AGENTS.lookFailed(problem)) : nothing);

/**
 * Returns the rows of the matching agents for the welcome page.
 * @param {(one: FoundClient) => boolean} wanted
 * @param {string} none
 * @param {string} then
 * @param {boolean} onlyServers True to offer only protecting the agents' servers.
 */
export function foundRows(wanted, none, then, onlyServers = false) {
  if (problem) return lookProblem();
  if (!isLoaded) return nothing;
  const installed = found.filter((one) => one.state !== "missing" && wanted(one));
  return installed.length === 0 ? parts.empty(none, then) : parts.group(repeat(installed, (one) => one.id, (one) => connectRow(one, onlyServers)));
}

/**
 * Returns the row of an installed agent.
 * @param {FoundClient} one
 * @param {boolean} [onlyServers]
 */
export const connectRow = (one, onlyServers = false) => html`
  ${parts.row(
    html`
      ${parts.title(one.name, one.state === "connected" || (one.state === "bypassing" && !onlyServers) ? parts.dot("good", AGENTS.connected) : nothing)}
      <div class="facts">${parts.path(one.file)}</div>
      ${onlyServers ? html`<ul class="small entries">${bypassing(one).map((entry) => html`
        <li><span><code>${parts.foreign(entry.name)}</code> <span class="asks">${parts.foreign(entry.way)}</span></span>
          ${planned.has(one.id) ? nothing : planButton(one, `move:${one.id}:${entry.name}`, { kind: "move", only: [entry.name], secrets: true }, AGENTS.protectOne, AGENTS.protectOneLabel(entry.name, one.name))}
        </li>`)}</ul>` : nothing}`,
    onlyServers && bypassing(one).length < 2 ? nothing : html`${mainButton(one, !onlyServers)}${onlyServers ? nothing : connectMenu(one)}`,
    parts.agentIcon(one.name),
  )}
  ${settingsPanel(one)}`;

/**
 * Returns an agent's main button.
 * @param {FoundClient} one
 * @param {boolean} [connects] True to offer only connecting.
 */
export function mainButton(one, connects = false) {
  if (planned.has(one.id) || one.state === "unreadable") return nothing;
  if (bypassing(one).length > 0 && !connects) return planButton(one, `move:${one.id}`, { kind: "move", only: null, secrets: true }, AGENTS.protectAll, undefined, "main");
  if (one.state === "not-connected") return planButton(one, `connect:${one.id}`, { kind: "connect" }, AGENTS.connect);
  return one.state === "drifted" ? planButton(one, `connect:${one.id}`, { kind: "connect" }, AGENTS.connectAgain) : nothing;
}

/** @param {FoundClient | null} one */
export function connectMenu(one) {
  if (!one || planned.has(one.id) || one.state === "unreadable") return nothing;
  const isNew = one.state === "not-connected";
  if (isNew && knownProfiles().length === 0) return nothing;
  return parts.menu(`client:${one.id}`, AGENTS.more(one.name), () => html`
    ${isNew || one.state === "drifted" ? nothing : planButton(one, `connect:${one.id}`, { kind: "connect" }, AGENTS.connectAgain)}
    ${knownProfiles().map(({ name }) => planButton(one, `profile:${one.id}:${name}`, { kind: "profile", profile: name }, AGENTS.giveProfile(name)))}
    ${isNew ? nothing : planButton(one, `disconnect:${one.id}`, { kind: "disconnect" }, AGENTS.disconnect)}`);
}

/**
 * @param {FoundClient} one
 * @param {string} key
 * @param {ClientWish} wish
 * @param {string} ready
 * @param {string} [label]
 * @param {string} [kind]
 */
export const planButton = (one, key, wish, ready, label = `${ready} ${one.name}`, kind = "") =>
  actButton({ key, ready, label, kind, ...AGENTS.planning, again: true, act: () => plan(one.id, wish) });

/**
 * @param {string} id
 * @param {ClientWish} wish
 */
async function plan(id, wish) {
  results.delete(id);
  const change = await planning(`client:${id}`, () => backend.planClient(id, wish));
  if (wish.kind !== "move") keys.delete(id);
  else if (wish.secrets) keys.set(id, change.secrets);
  const isFirst = !planned.has(id);
  planned.set(id, { wish, change });
  closeMenu();
  if (isFirst) focusOn(`leave:${id}`);
  else redraw();
}

/**
 * Returns the row that shows a problem with an agent's settings, the last result, or the planned change.
 * @param {FoundClient | null} one
 */
export function settingsPanel(one) {
  if (!one) return nothing;
  const plan = planned.get(one.id);
  const note = results.get(one.id);
  if (!plan && !note && !one.problem) return nothing;
  return parts.row(html`
    ${one.problem ? parts.warning(one.problem) : nothing}
    ${note ? html`<p class="small good" role="status">${note}</p>` : nothing}
    ${plan ? changePanel(one, plan.wish, plan.change) : nothing}`);
}

/**
 * Lists the unprotected keys of the servers to move, and lets the user choose where to store them.
 * @param {FoundClient} one
 * @param {ClientWish} wish
 */
function keyChoice(one, wish) {
  const known = keys.get(one.id) ?? [];
  if (wish.kind !== "move" || known.length === 0) return nothing;
  const turn = (/** @type {boolean} */ on) => plan(one.id, { ...wish, secrets: on }).catch((failure) => {
    addFailure(`${AGENTS.planning.failed}: ${backend.sentence(failure)}`);
  });
  return html`
    <p class="some">${AGENTS.keysFound(known.length)}</p>
    <ul class="small opened">${known.map((key) => html`<li><span><code>${key.place}</code> ${AGENTS.keyOf} ${parts.foreign(key.server)}${wish.secrets ? html`, ${AGENTS.keyBecomes} <code>${AGENTS.keyName(key.name)}</code>` : nothing}</span></li>`)}</ul>
    ${parts.tick(`keys:${one.id}`, AGENTS.moveKeys(known.length), wish.secrets, turn)}
    ${wish.secrets ? nothing : parts.warning(AGENTS.keysStay)}`;
}

/**
 * Returns the panel that shows the full change before it is written.
 * @param {FoundClient} one
 * @param {ClientWish} wish
 * @param {import("./types.js").PlannedChange} change
 */
function changePanel(one, wish, change) {
  const leave = () => {
    planned.delete(one.id);
    redraw();
  };
  const isEmpty = change.diff === "" && !change.servers_diff;
  return planPanel(
    AGENTS.planOf(one.name),
    html`
      ${isEmpty ? html`<p>${AGENTS.nothingToChange(one.name)}</p>` : html`<p>${AGENTS.writtenTo} ${parts.path(change.file)}. ${AGENTS.restorable}</p><pre tabindex="0">${change.diff}</pre>`}
      ${change.servers_diff ? html`<p>${AGENTS.andServers}</p><pre tabindex="0">${change.servers_diff}</pre>` : nothing}
      ${keyChoice(one, wish)}
      ${change.left.map((left) => parts.warning(AGENTS.staysAsIs(left)))}`,
    isEmpty ? null : {
      key: `write:${one.id}`,
      writes: `client:${one.id}`,
      ...AGENTS.write,
      label: AGENTS.writeLabel(one.name),
      act: async () => {
        results.set(one.id, await backend.writeClient(one.id));
        planned.delete(one.id);
        await loadClients();
      },
    },
    { key: `leave:${one.id}`, text: AGENTS.cancel, press: leave },
  );
}

/** @param {import("./types.js").Snapshot} snapshot */
export function byHand({ status, shim }) {
  const name = status.servers.includes(server) ? server : (status.servers[0] ?? "filesystem");
  const entry = () => JSON.stringify({ mcpServers: { [name]: { command: shim, args: ["--server", name] } } }, null, 2);
  return openable("by-hand", AGENTS.byHand, { what: parts.title(AGENTS.byHand), before: parts.icon("plug") }, () => html`
    <p>${AGENTS.byHandText}</p>
    ${parts.field(AGENTS.byHandServer, parts.select("connect-server", name, status.servers.map((one) => [one, one]), (to) => { server = to; redraw(); }))}
    <pre tabindex="0" aria-label=${AGENTS.byHandEntry}>${entry()}</pre>`);
}
