// The servers page in four parts: installed servers, adding one, secrets, and profiles.

import * as backend from "../backend.js";
import { html, nothing, repeat } from "../html.js";
import { openFromAddress, scrollToOpened } from "../opened.js";
import * as parts from "../parts.js";
import { loadProfiles, profileList } from "../profile_list.js";
import { loadSecrets, missingSecrets, secretList } from "../secret_list.js";
import { addForm } from "../server_add.js";
import { catalog } from "../server_catalog.js";
import { removedList } from "../server_remove.js";
import { hasSuspendedTools } from "../server_changed_tools.js";
import { serverRow } from "../server_row.js";
import { redraw } from "../state.js";
import { FRAME } from "../texts/frame.js";
import { SERVERS } from "../texts/servers.js";

/** @typedef {import("../types.js").Server} Server */

/** @type {import("../types.js").Servers | null} */
let found = null;
let problem = "";
/** Number of the latest request. */
let asked = 0;

/** @type {import("../app.js").Page} */
export const servers = {
  id: "servers",
  name: FRAME.pages.servers,
  async load() {
    await Promise.all([loadServers(), loadSecrets(), loadProfiles()]);
  },
  count: ({ changed_servers, changed_tools }) => (changed_servers.length + changed_tools.length > 0 ? "!" : 0),
  view(snapshot, part) {
    follow(snapshot);
    const [tab, ...name] = part.split("/");
    openFromAddress("servers", part, tab === "installed" && name.length > 0 ? `server:${name.join("/")}` : "");
    const current = tab === "add" || tab === "secrets" || tab === "profiles" ? tab : "installed";
    return html`
      ${parts.heading(FRAME.pages.servers)}
      ${problem ? parts.problem(SERVERS.unreadable(problem)) : nothing}
      ${found === null ? nothing : html`
        ${parts.tabs(SERVERS.tabsLabel, [
          ["servers/installed", SERVERS.tabs.installed, found.servers.length],
          ["servers/add", SERVERS.tabs.add],
          ["servers/secrets", SERVERS.tabs.secrets, missingSecrets(found.servers).length],
          ["servers/profiles", SERVERS.tabs.profiles],
        ], `servers/${current}`)}
        <h2 class="unseen">${SERVERS.tabs[current]}</h2>
        ${PARTS[current](found)}`}`;
  },
  drawn: scrollToOpened,
};

/** The changed servers and the sessions when the list was last loaded. */
let shown = "";

/**
 * Reloads the list when a server or a session has changed, or when the user has decided about a server elsewhere.
 * @param {import("../types.js").Snapshot} snapshot
 */
function follow({ changed_servers, changed_tools, sessions }) {
  const now = JSON.stringify([changed_servers, changed_tools, sessions.map(({ id, trouble }) => [id, trouble])]);
  if (found !== null && now !== shown) void loadServers().then(redraw);
  shown = now;
}

async function loadServers() {
  const number = ++asked;
  const answer = await backend.outcome(backend.servers());
  // A later request has a newer answer.
  if (number !== asked) return;
  found = answer.value ?? found;
  problem = answer.problem;
}

async function reload() {
  await servers.load?.();
  redraw();
}

/** @type {Record<"installed" | "add" | "secrets" | "profiles", (all: import("../types.js").Servers) => unknown>} */
const PARTS = {
  installed: (all) => html`
    ${all.servers.length === 0
      ? parts.group(parts.row(parts.emptyState("box", SERVERS.none, html`<a class="button main" href="#servers/add" data-key="add-first">${SERVERS.noneAct}</a>`)))
      : parts.group(repeat(worstFirst(all.servers), (one) => one.name, (one) => serverRow(one, reload)))}
    ${removedList(all.removed, reload)}`,
  add: (all) => html`${addForm(reload)}${catalog(all, reload)}`,
  secrets: (all) => secretList(all.servers),
  profiles: (all) => profileList(all.servers.map(({ name }) => name)),
};

/** Returns the servers that need a decision, those without a sandbox, and the others. @param {Server[]} all */
function worstFirst(all) {
  const rank = (/** @type {Server} */ one) => (one.suspended || hasSuspendedTools(one) ? 0 : !one.sandboxed && !one.remote ? 1 : 2);
  return all.toSorted((a, b) => rank(a) - rank(b));
}
