// Profiles: sets of servers behind one entry of a client. Lists, creates, changes and removes them.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { html, live, nothing, repeat } from "./html.js";
import * as parts from "./parts.js";
import { focusOn, redraw } from "./state.js";
import { list } from "./words.js";

/** @typedef {import("./types.js").Profile} Profile */

/** @type {Profile[]} */
let profiles = [];
let problem = "";
/** The profile that is being created (`""`) or changed, with its servers. */
const draft = { open: /** @type {string | null} */ (null), name: "", servers: /** @type {string[]} */ ([]) };

/** Loads the profiles. */
export async function loadProfiles() {
  try {
    profiles = await backend.profiles();
    problem = "";
  } catch (failure) {
    problem = backend.sentence(failure);
  }
}

/** Returns the loaded profiles. */
export const knownProfiles = () => profiles;

/** @param {string[]} servers */
export const profileList = (servers) => html`
  <h2>Profiles</h2>
  <p class="lead-in quiet">Sets of servers that a client uses through one entry, such as fewer tools for one agent than for another.</p>
  ${problem ? parts.problem(`The profiles cannot be read: ${problem}`) : nothing}
  ${profiles.length === 0 ? nothing : parts.group(repeat(profiles, (one) => one.name, (one) => row(one, servers)))}
  ${draft.open === "" ? editor(servers) : html`<div class="both start after">${parts.button("profile-new", "Make a profile\u2026", () => begin("", "", []))}</div>`}`;

/**
 * @param {Profile} one
 * @param {string[]} servers
 */
const row = (one, servers) =>
  parts.row(
    html`
      <div><b>${parts.foreign(one.name)}</b>: ${list(one.servers)}</div>
      ${parts.facts(one.clients.length > 0 ? `given to ${list(one.clients)}` : html`given to no client yet; <a href="#agents">give it to one</a>`)}
      ${one.missing.length > 0 ? parts.warning(`No longer exists: ${list(one.missing)}.`) : nothing}
      ${draft.open === one.name ? editor(servers) : nothing}`,
    draft.open === one.name ? nothing : html`
      ${parts.button(`profile-change:${one.name}`, "Change\u2026", () => begin(one.name, one.name, one.servers), { label: `Change\u2026 the profile ${one.name}` })}
      ${actButton({
        key: `profile-remove:${one.name}`,
        ready: "Remove",
        label: `Remove the profile ${one.name}`,
        going: "Removing\u2026",
        done: "Removed",
        failed: "Not removed",
        again: true,
        says: one.clients.length > 0
          ? `${list(one.clients)} cannot start its servers until you reconnect it under Clients. The servers stay.`
          : "No client uses it. The servers stay.",
        act: async () => {
          await backend.deleteProfile(one.name);
          await loadProfiles();
        },
      })}`,
  );

/**
 * @param {string | null} open
 * @param {string} name
 * @param {string[]} servers
 */
function begin(open, name, servers) {
  Object.assign(draft, { open, name, servers: [...servers] });
  if (open === "") focusOn("profile-name");
  else redraw();
}

/** @param {string[]} servers */
function editor(servers) {
  const all = [...new Set([...servers, ...draft.servers])].sort();
  const turn = (/** @type {string} */ server, /** @type {boolean} */ on) => {
    draft.servers = all.filter((one) => (one === server ? on : draft.servers.includes(one)));
    redraw();
  };
  return html`
    <div class="panel" role="group" aria-label=${draft.open ? `The profile ${draft.open}` : "A new profile"}>
      ${draft.open ? nothing : parts.field("Name", html`<input type="text" autocomplete="off" data-key="profile-name" .value=${live(draft.name)} @input=${(/** @type {Event} */ event) => { draft.name = parts.valueOf(event); redraw(); }}>`, "Letters, digits, - and _.")}
      <fieldset class="field"><legend class="name">Its servers</legend>
        <div class="ticks">${all.map((server) => parts.tick(`profile-server:${server}`, server, draft.servers.includes(server), (on) => turn(server, on)))}</div>
      </fieldset>
      <div class="both start">
        ${actButton({
          key: "profile-save",
          ready: draft.open ? "Change it" : "Make it",
          going: "Writing\u2026",
          done: "Written",
          failed: "Not written",
          again: true,
          kind: "main",
          off: draft.name.trim() === "" || draft.servers.length === 0,
          act: async () => {
            await backend.changeProfile(draft.name.trim(), draft.servers);
            draft.open = null;
            await loadProfiles();
          },
        })}
        ${parts.button("profile-leave", "Cancel", () => begin(null, "", []), { leaves: true })}
      </div>
    </div>`;
}
