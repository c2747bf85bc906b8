// Secrets of servers: their names, keeping one, and forgetting one. What was typed is never shown again.

import { actButton } from "./acts.js";
import * as backend from "./backend.js";
import { html, live, nothing, repeat } from "./html.js";
import * as parts from "./parts.js";
import { redraw } from "./state.js";
import { list } from "./words.js";

/** @type {string[] | null} */
let names = null;
let problem = "";
let name = "";
let value = "";
/** Keys that stand in the settings of servers as they are. @type {import("./types.js").PlainSecret[]} */
let plain = [];
let moved = "";

/** Asks the keyring for the names. */
export async function loadSecrets() {
  plain = await backend.planSecretMove().catch(() => []);
  try {
    names = await backend.secrets();
    problem = "";
  } catch (failure) {
    names = null;
    problem = backend.sentence(failure);
  }
}

/** @param {import("./types.js").Server[]} servers */
export function secretList(servers) {
  const wanted = [...new Set(servers.flatMap((one) => one.secrets))].filter((one) => !names?.includes(one));
  return html`
    <h2>Secrets</h2>
    <p class="lead-in quiet">Keys that servers need. They are kept in your desktop's keyring and given to the servers that name them, and to nothing else.</p>
    ${problem ? parts.problem(`The keyring cannot be asked: ${problem}`) : nothing}
    ${names !== null && wanted.length > 0 ? parts.warning(`Not there yet, and a server needs it: ${list(wanted)}.`) : nothing}
    ${names === null ? nothing : names.length === 0 ? parts.empty("No secret is kept.", "Write keyring:NAME where a server wants a key, and keep the key here.") : parts.group(repeat(names, (one) => one, (one) => row(one, servers)))}
    ${plainKeys()}
    ${names === null ? nothing : form()}`;
}

/** The keys that stand in the settings of servers, by their places, and moving them. */
const plainKeys = () => html`
  ${moved ? html`<p class="small good after" role="status">${moved}</p>` : nothing}
  ${plain.length === 0 ? nothing : html`
    <div class="panel" role="group" aria-label="Keys in plain words">
      <p>${plain.length === 1 ? "A key stands" : "Keys stand"} in the settings of your servers in plain words:</p>
      <ul class="small opened">${plain.map((key) => html`<li><span><code>${key.place}</code> of ${parts.foreign(key.server)}</span></li>`)}</ul>
      <div class="both start">${actButton({
        key: "move-secrets",
        ready: "Move to the keyring",
        going: "Moving\u2026",
        done: "Moved",
        failed: "Not moved",
        again: true,
        says: `The keyring keeps ${plain.length === 1 ? "it" : "them"}, and the settings name ${list(plain.map((key) => `keyring:${key.name}`))} from then on.`,
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
    html`<div><code>${one}</code></div>${parts.facts(users.length > 0 ? `used by ${list(users)}` : "no server names it")}`,
    actButton({
      key: `remove-secret:${one}`,
      ready: "Remove",
      label: `Remove the secret ${one}`,
      going: "Removing\u2026",
      done: "Removed",
      failed: "Not removed",
      says: `The keyring forgets ${one} for good. ${users.length > 0 ? `${list(users)} cannot start without it.` : "No server names it."}`,
      act: async () => {
        await backend.removeSecret(one);
        await loadSecrets();
      },
    }),
  );
}

const form = () => html`
  <div class="form">
    ${parts.field("Name", html`<input type="text" class="mono" autocomplete="off" spellcheck="false" data-key="secret-name" .value=${live(name)} @input=${(/** @type {Event} */ event) => { name = parts.valueOf(event); redraw(); }}>`)}
    ${parts.field("Secret", html`<input type="password" autocomplete="off" data-key="secret-value" .value=${live(value)} @input=${(/** @type {Event} */ event) => { value = parts.valueOf(event); redraw(); }}>`)}
  </div>
  <div class="both start">
    ${actButton({
      key: "set-secret",
      ready: names?.includes(name) ? "Replace the secret" : "Keep the secret",
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
  <p class="small quiet">Servers that run get it when they are started again.</p>`;
