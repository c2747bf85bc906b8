// The servers: their access and tools, and adding, installing, updating and reviewing them.

import * as backend from "../backend.js";
import { actButton, planPanel } from "../action_button.js";
import { html, live, nothing, repeat } from "../html.js";
import * as parts from "../parts.js";
import { loadSecrets, secretList } from "../secret_list.js";
import { loadProfiles, profileList } from "../profile_list.js";
import { addForm } from "../server_add.js";
import { liveRows } from "../server_live.js";
import { limits } from "../server_limits.js";
import { openings } from "../server_openings.js";
import { suspendedPanel } from "../server_identity.js";
import { removalPanel, removeButton, removedList } from "../server_remove.js";
import { redraw } from "../state.js";
import { count } from "../words.js";

/** @typedef {import("../types.js").Server} Server */
/** @typedef {import("../types.js").CatalogEntry} CatalogEntry */

/** @type {import("../types.js").Servers | null} */
let found = null;
let problem = "";
/** @type {Map<string, import("../types.js").Proposed>} */
const proposed = new Map();
/** @type {Map<string, import("../types.js").FoundUpdate>} */
const updates = new Map();
/** @type {Map<string, string[]>} */
const told = new Map();
/** @type {Map<string, Record<string, string>>} */
const filled = new Map();

/** @type {import("../app.js").Page} */
export const servers = {
  id: "servers",
  name: "Servers",
  icon: "box",
  async load() {
    try {
      found = await backend.servers();
      problem = "";
      await Promise.all([loadSecrets(), loadProfiles()]);
    } catch (failure) {
      problem = backend.sentence(failure);
    }
  },
  count: ({ changed_servers }) => (changed_servers.length > 0 ? "!" : 0),
  view: (snapshot) => html`
    ${follow(snapshot.changed_servers)}
    <h1>Servers</h1>
    ${problem ? parts.problem(`The servers cannot be read: ${problem}`) : nothing}
    ${found === null ? nothing : list(found)}`,
};

/** The changed servers that the list was read with. */
let changed = "";

/**
 * Reads the list again when a server has changed, or was decided about elsewhere.
 * @param {string[]} names
 */
function follow(names) {
  const now = names.join("\n");
  if (found !== null && now !== changed) void reload();
  changed = now;
  return nothing;
}

async function reload() {
  await servers.load?.();
  redraw();
}

/** @param {import("../types.js").Servers} all */
const list = (all) => html`
  ${all.servers.length === 0 ? parts.empty("No server is set up.", "Add one of those below.") : repeat(toDecideFirst(all.servers), (one) => one.name, card)}
  ${removedList(all.removed, reload)}
  ${profileList(all.servers.map(({ name }) => name))}
  ${secretList(all.servers)}
  <h2>Add a server</h2>
  <p class="lead-in quiet">Each comes with a sandbox tailored to it. Adding a server does not start it.</p>
  ${parts.group(repeat(all.catalog, (one) => one.id, (one) => catalogRow(one, all.servers.some(({ name }) => name === one.id))))}
  <div class="some">${addForm(reload)}</div>
  <p class="small quiet after">Written into ${parts.path(all.file)}.</p>`;

/** @param {Server[]} all */
const toDecideFirst = (all) => [...all.filter((one) => one.suspended), ...all.filter((one) => !one.suspended)];

/** @param {Server} server */
const card = (server) => html`
  <section aria-label=${server.name}>
    <h2>${parts.foreign(server.name)}</h2>
    ${parts.group(html`
      ${suspendedPanel(server, reload)}
      ${parts.row(
        html`
          ${server.description ? html`<div>${server.description}</div>` : nothing}
          <dl>
            <dt>Command</dt><dd><code>${server.command}</code></dd>
            <dt>Sandbox</dt><dd>${server.sandboxed ? "sandboxed: it can see only what is listed here" : html`<span class="bad">\u26a0 ${server.remote ? "remote, cannot be sandboxed: it sees everything that is sent to it" : "not sandboxed: it can do anything you can"}</span>`}</dd>
            ${server.reaches.map((one) => html`<dt></dt><dd>${one}</dd>`)}
            ${server.version ? html`<dt>Version</dt><dd>${server.version}</dd>` : nothing}
            <dt>Runs now</dt><dd>${server.live.length === 0 ? "no" : `for ${count(server.live.length, "session")}`}</dd>
            ${server.secrets.length > 0 ? html`<dt>Secrets</dt><dd>${server.secrets.map((one) => html`<code>${one}</code> `)}</dd>` : nothing}
          </dl>
          ${server.problem ? parts.warning(server.problem) : nothing}
          ${(told.get(server.name) ?? []).map((one) => html`<p class="small">${one}</p>`)}
          ${removalPanel(server, reload)}`,
        html`${installButton(server)}${updateButton(server)}${removeButton(server)}`,
      )}
      ${openings(server, reload)}
      ${limits(server, reload)}
      ${parts.row(tools(server), reviewButton(server))}
      ${liveRows(server.name, server.live, reload)}`)}
  </section>`;

/** @param {Server} server */
function tools(server) {
  const draft = proposed.get(server.name);
  return html`
    ${server.tools.length === 0
      ? parts.warning("Its tools have not been reviewed yet, so agents cannot use them.")
      : html`<details><summary data-key="tools:${server.name}">${count(server.tools.length, "tool")} that agents can call</summary>
          <ul class="tool-list">${server.tools.map((tool) => html`<li><code>${tool.name}</code> <span class="quiet small">${tool.means}</span></li>`)}</ul></details>`}
    ${draft ? proposal(server, draft) : nothing}`;
}

/** @param {Server} server */
const reviewButton = (server) =>
  actButton({
    key: `look:${server.name}`,
    ready: "Review its tools",
    label: `Review its tools: ${server.name}`,
    going: "Looking\u2026",
    done: "Reviewed",
    failed: "Not reviewed",
    again: true,
    says: `${server.name} is started in its sandbox without network or permissions, lists its tools, and is stopped. Nothing is changed.`,
    yes: "Start it and review",
    act: async () => { proposed.set(server.name, await backend.reviewTools(server.name)); },
  });

/**
 * Returns the panel with the proposed annotations of a server's tools.
 * @param {Server} server
 * @param {import("../types.js").Proposed} draft
 */
const proposal = (server, draft) =>
  planPanel(
    `Proposed meaning of the tools of ${server.name}`,
    html`
      <h3>${draft.changes ? "Proposed meaning of its tools" : "Nothing about its tools has changed."}</h3>
      <ul class="tool-list">${draft.tools.map((tool) => html`
        <li><code>${tool.name}</code> <span class="badge note">${tool.change}</span>
          ${tool.differs.length > 0 ? html`<ul class="small asks">${tool.differs.map((one) => html`<li>${parts.foreign(one)}</li>`)}</ul>` : nothing}
          ${tool.left_out ? html`<div class="small asks">refused: ${tool.left_out}</div>` : nothing}
          ${tool.arguments.map((one) => html`<div class="small">${parts.foreign(one.name)}: <b>${one.roles || "no resource"}</b> <span class="quiet">(${one.sure}: ${parts.foreign(one.reason)})</span></div>`)}
        </li>`)}</ul>
      ${draft.gone.length > 0 ? html`<p class="small">Gone: ${draft.gone.join(", ")}</p>` : nothing}`,
    draft.changes ? {
      key: `keep:${server.name}`,
      ready: "Save",
      going: "Writing\u2026",
      done: "Written",
      failed: "Not written",
      says: `Calls of these tools of ${server.name} are checked by this from now on. A wrong entry lets calls through unchecked: review each "guess".`,
      act: async () => {
        told.set(server.name, [await backend.saveTools(server.name)]);
        proposed.delete(server.name);
        await reload();
      },
    } : null,
    { key: `drop:${server.name}`, text: "Cancel", press: () => { proposed.delete(server.name); redraw(); } },
  );

/** @param {Server} server */
const installButton = (server) =>
  server.can_install && server.version === null
    ? actButton({
        key: `install:${server.name}`,
        ready: "Install its package",
        label: `Install its package: ${server.name}`,
        going: "Installing\u2026",
        done: "Installed",
        failed: "Not installed",
        again: true,
        says: `The package of ${server.name} and what it needs are downloaded from its registry and unpacked, but not started.`,
        yes: "Download",
        act: async () => {
          told.set(server.name, [await backend.installServer(server.name)]);
          await reload();
        },
      })
    : nothing;

/** @param {Server} server */
function updateButton(server) {
  if (server.version === null) return nothing;
  const update = updates.get(server.name);
  if (update?.to) {
    return html`
      <div class="panel"><b>Version ${update.to}</b>${update.note ? parts.warning(update.note) : nothing}
        <ul class="small">${update.tools.length === 0 ? html`<li>Its tools are unchanged.</li>` : update.tools.map((one) => html`<li>${one}</li>`)}</ul>
        ${actButton({
          key: `take:${server.name}`,
          ready: `Update to version ${update.to}`,
          going: "Taking\u2026",
          done: "Taken",
          failed: "Not updated",
          again: true,
          says: `New sessions start version ${update.to} of ${server.name}; sessions that run keep ${update.from}. Review changed tools afterwards.`,
          act: async () => {
            told.set(server.name, [await backend.applyUpdate(server.name)]);
            updates.delete(server.name);
            await reload();
          },
        })}
      </div>`;
  }
  return html`
    ${actButton({ key: `update:${server.name}`, ready: "Check for an update", label: `Check for an update: ${server.name}`, going: "Looking\u2026", done: "Looked", failed: "Not looked", again: true, act: async () => { updates.set(server.name, await backend.checkForUpdate(server.name)); } })}
    ${update ? html`<span class="small">${update.from} is the newest.</span>` : nothing}`;
}

/**
 * @param {CatalogEntry} known
 * @param {boolean} there
 */
function catalogRow(known, there) {
  const given = filled.get(known.id) ?? {};
  const fill = (/** @type {string} */ name, /** @type {string} */ value) => {
    filled.set(known.id, { ...given, [name]: value });
    redraw();
  };
  const needed = Object.entries(known.settings);
  return parts.row(
    html`
      <div><b>${known.title}</b></div>
      <div>${known.about}</div>
      ${parts.facts(known.from, known.needs ? `needs ${known.needs}` : nothing)}
      <details><summary data-key="why:${known.id}">Its sandbox</summary><p class="small">${known.why}</p></details>
      ${there ? nothing : needed.map(([name, about]) => parts.field(name, html`<input type="text" class="mono" data-key="set:${known.id}:${name}" .value=${live(given[name] ?? "")} @input=${(/** @type {Event} */ event) => fill(name, parts.valueOf(event))}>`, about))}`,
    there
      ? html`<span class="badge allow">added</span>`
      : actButton({
          key: `add:${known.id}`,
          ready: "Add",
          label: `Add ${known.title}`,
          going: "Adding\u2026",
          done: "Added",
          failed: "Not added",
          off: needed.some(([name]) => !given[name]),
          act: async () => {
            told.set(known.id, await backend.addServer({ id: known.id, name: known.id, settings: given }));
            await reload();
          },
        }),
  );
}
