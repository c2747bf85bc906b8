// Lists, creates, changes and removes profiles. A profile is a set of servers behind one entry of a client.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { html, live, nothing, repeat } from "./html.js";
import { closeMenu } from "./menu.js";
import * as parts from "./parts.js";
import { focusOn, redraw } from "./state.js";
import { SERVERS } from "./texts/servers.js";
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
  ${profiles.length === 0 ? nothing : html`<p class="quiet some-below">${SERVERS.profilesText}</p>`}
  ${problem ? parts.problem(SERVERS.profilesUnreadable(problem)) : nothing}
  ${profiles.length === 0 ? draft.open === "" ? nothing : parts.group(parts.row(parts.emptyState("layers", SERVERS.noProfiles, newButton("main")))) : parts.group(repeat(profiles, (one) => one.name, (one) => row(one, servers)))}
  ${draft.open === "" ? editor(servers) : profiles.length === 0 ? nothing : html`<div class="both start after">${newButton("")}</div>`}`;

/** @param {string} kind */
const newButton = (kind) => parts.button("profile-new", SERVERS.newProfile, () => begin("", "", []), { kind });

/**
 * @param {Profile} one
 * @param {string[]} servers
 */
const row = (one, servers) =>
  parts.row(
    html`
      ${parts.title(parts.foreign(one.name))}
      ${parts.facts(list(one.servers), one.clients.length > 0 ? SERVERS.givenTo(one.clients) : html`${SERVERS.givenToNone}; <a href="#agents">${SERVERS.give}</a>`)}
      ${one.missing.length > 0 ? parts.warning(SERVERS.noLonger(one.missing)) : nothing}
      ${draft.open === one.name ? editor(servers) : nothing}`,
    draft.open === one.name ? nothing : html`
      ${parts.button(`profile-change:${one.name}`, SERVERS.changeProfile, () => begin(one.name, one.name, one.servers), { label: SERVERS.changeProfileLabel(one.name) })}
      ${parts.menu(`profile-more:${one.name}`, SERVERS.more(one.name), () => actButton({
        key: `profile-remove:${one.name}`,
        ...SERVERS.removeProfile,
        label: SERVERS.removeProfileLabel(one.name),
        again: true,
        kind: "stop",
        says: SERVERS.removeProfileSays(one.clients),
        act: async () => {
          await backend.deleteProfile(one.name);
          closeMenu();
          await loadProfiles();
        },
      }))}`,
    parts.icon("layers"),
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
    <div class="panel" role="group" aria-label=${draft.open ? SERVERS.profile(draft.open) : SERVERS.aNewProfile}>
      ${draft.open ? nothing : parts.field(SERVERS.name, html`<input type="text" autocomplete="off" data-key="profile-name" .value=${live(draft.name)} @input=${(/** @type {Event} */ event) => { draft.name = parts.valueOf(event); redraw(); }}>`, SERVERS.profileName)}
      <fieldset class="field"><legend class="name">${SERVERS.itsServers}</legend>
        <div class="ticks">${all.map((server) => parts.tick(`profile-server:${server}`, server, draft.servers.includes(server), (on) => turn(server, on)))}</div>
      </fieldset>
      <div class="both start">
        ${actButton({
          key: "profile-save",
          ...SERVERS.profileSaving,
          ready: draft.open ? SERVERS.profileChange : SERVERS.profileMake,
          again: true,
          kind: "main",
          off: draft.name.trim() === "" || draft.servers.length === 0,
          act: async () => {
            await backend.changeProfile(draft.name.trim(), draft.servers);
            draft.open = null;
            await loadProfiles();
          },
        })}
        ${parts.button("profile-leave", SERVERS.cancel, () => begin(null, "", []), { leaves: true })}
      </div>
    </div>`;
}
