// Secrets of servers: lists their names, stores and deletes them. A stored secret is never shown again.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { html, live, nothing, repeat } from "./html.js";
import * as parts from "./parts.js";
import { redraw } from "./state.js";
import { passphraseForm } from "./secret_file.js";
import { list } from "./words.js";

/** @type {import("./types.js").Secrets | null} */
let found = null;
let problem = "";
let name = "";
let value = "";
/** Unprotected keys in the servers' settings. @type {import("./types.js").PlainSecret[]} */
let plain = [];
let moved = "";

/** Loads the names and the kind of storage. */
export async function loadSecrets() {
  plain = await backend.planSecretMove().catch(() => []);
  try {
    found = await backend.secrets();
    problem = "";
  } catch (failure) {
    found = null;
    problem = backend.sentence(failure);
  }
}

/**
 * Returns whether a secret with this name exists.
 * @param {string} one
 */
export const isKept = (one) => found?.names.includes(one) ?? false;

/** @param {import("./types.js").Server[]} servers */
export function secretList(servers) {
  const needed = [...new Set(servers.flatMap((one) => one.secrets))];
  return html`
    <h2>Secrets</h2>
    <p class="lead-in quiet">Keys that servers need. They are kept in ${PLACES[found?.place ?? "keyring"]} and given to the servers that name them, and to nothing else.</p>
    ${problem ? parts.problem(`Your secrets are unavailable: ${problem}`) : nothing}
    ${found === null ? nothing : found.place === "locked" || found.place === "nowhere" ? passphraseForm(found, needed, reload) : kept(found, needed, servers)}`;
}

/** Descriptions of the kinds of storage. */
const PLACES = {
  keyring: "your desktop's keyring",
  locked: "an encrypted file, which is locked,",
  unlocked: "an encrypted file, unlocked until IronCurtain ends,",
  nowhere: "your desktop's keyring, or in an encrypted file where there is none,",
};

async function reload() {
  await loadSecrets();
  redraw();
}

/**
 * @param {import("./types.js").Secrets} all
 * @param {string[]} needed
 * @param {import("./types.js").Server[]} servers
 */
function kept({ names, place, file }, needed, servers) {
  const wanted = needed.filter((one) => !names.includes(one));
  return html`
    ${wanted.length > 0 ? parts.warning(`Missing: ${list(wanted)}. A server needs ${wanted.length === 1 ? "it" : "them"}.`) : nothing}
    ${names.length === 0 ? parts.empty("No secret is kept.", "Write keyring:NAME where a server wants a key, and keep the key here.") : parts.group(repeat(names, (one) => one, (one) => row(one, servers)))}
    ${plainKeys(place)}
    ${form(names)}
    ${place === "unlocked" ? html`<p class="small quiet">Kept in ${parts.path(file)}.</p>` : nothing}`;
}

/** Lists unprotected keys in the servers' settings, and moves them. */
/** @param {import("./types.js").Secrets["place"]} place */
const plainKeys = (place) => html`
  ${moved ? html`<p class="small good after" role="status">${moved}</p>` : nothing}
  ${plain.length === 0 ? nothing : html`
    <div class="panel" role="group" aria-label="Keys in plain words">
      <p>${plain.length === 1 ? "A key is" : "Keys are"} stored unprotected in your server settings:</p>
      <ul class="small opened">${plain.map((key) => html`<li><span><code>${key.place}</code> of ${parts.foreign(key.server)}</span></li>`)}</ul>
      <div class="both start">${actButton({
        key: "move-secrets",
        ready: place === "keyring" ? "Move to the keyring" : "Move to the encrypted file",
        going: "Moving\u2026",
        done: "Moved",
        failed: "Not moved",
        again: true,
        says: `${place === "keyring" ? "The keyring" : "The encrypted file"} keeps ${plain.length === 1 ? "it" : "them"}, and the settings name ${list(plain.map((key) => `keyring:${key.name}`))} from then on.`,
        act: async () => {
          moved = await backend.writeSecretMove();
          await loadSecrets();
        },
      })}</div>
    </div>`}`;

/**
 * @param {string} one
 * @param {import("./types.js").Server[]} servers
 */
function row(one, servers) {
  const users = servers.filter((server) => server.secrets.includes(one)).map((server) => server.name);
  return parts.row(
    html`<div><code>${one}</code></div>${parts.facts(users.length > 0 ? `used by ${list(users)}` : "no server uses it")}`,
    actButton({
      key: `remove-secret:${one}`,
      ready: "Remove",
      label: `Remove the secret ${one}`,
      going: "Removing\u2026",
      done: "Removed",
      failed: "Not removed",
      says: `${one} is deleted permanently. ${users.length > 0 ? `${list(users)} cannot start without it.` : "No server uses it."}`,
      act: async () => {
        await backend.removeSecret(one);
        await loadSecrets();
      },
    }),
  );
}

/** @param {string[]} names */
const form = (names) => html`
  <div class="form">
    ${parts.field("Name", html`<input type="text" class="mono" autocomplete="off" spellcheck="false" data-key="secret-name" .value=${live(name)} @input=${(/** @type {Event} */ event) => { name = parts.valueOf(event); redraw(); }}>`)}
    ${parts.field("Secret", html`<input type="password" autocomplete="off" data-key="secret-value" .value=${live(value)} @input=${(/** @type {Event} */ event) => { value = parts.valueOf(event); redraw(); }}>`)}
  </div>
  <div class="both start">
    ${actButton({
      key: "set-secret",
      ready: names.includes(name) ? "Replace the secret" : "Keep the secret",
      going: "Keeping\u2026",
      done: "Kept",
      failed: "Not kept",
      again: true,
      kind: "main",
      off: name === "" || value === "",
      act: async () => {
        const typed = value;
        value = "";
        await backend.setSecret(name, typed);
        name = "";
        await loadSecrets();
      },
    })}
  </div>
  <p class="small quiet">Running servers get it when they restart.</p>`;
