// Servers' secrets: lists the names of the secrets, and stores and deletes secrets. A stored secret is never shown again.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { html, live, nothing, repeat } from "./html.js";
import * as parts from "./parts.js";
import { planning } from "./plan_slots.js";
import { focusOn, redraw } from "./state.js";
import { passphraseForm } from "./secret_file.js";
import { SERVERS } from "./texts/servers.js";

/** @type {import("./types.js").Secrets | null} */
let found = null;
let problem = "";
let name = "";
let value = "";
/** Unprotected keys in the servers' settings. @type {import("./types.js").PlainSecret[]} */
let plain = [];
/** Reason why the search for unprotected keys failed. */
let plainProblem = "";
let moved = "";

/** Loads the names and the kind of storage. */
export async function loadSecrets() {
  try {
    plain = await planning("secrets", backend.planSecretMove);
    plainProblem = "";
  } catch (failure) {
    plain = [];
    plainProblem = backend.sentence(failure);
  }
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
const neededBy = (servers) => [...new Set(servers.flatMap((one) => one.secrets))];

/** Returns the missing secrets that servers need. @param {import("./types.js").Server[]} servers */
export const missingSecrets = (servers) => (found === null ? [] : neededBy(servers).filter((one) => !isKept(one)));

/** @param {import("./types.js").Server[]} servers */
export function secretList(servers) {
  const needed = neededBy(servers);
  return html`
    ${found === null ? nothing : html`<p class="quiet some-below">${SERVERS.places[found.place]}</p>`}
    ${plainProblem ? parts.problem(SERVERS.plainUnknown(plainProblem)) : nothing}
    ${problem ? parts.problem(SERVERS.secretsUnavailable(problem)) : nothing}
    ${found === null ? nothing : found.place === "locked" || found.place === "nowhere" ? passphraseForm(found, needed, reload) : kept(found, needed, servers)}`;
}

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
    ${wanted.length > 0 ? html`<div class="some-below">${parts.warning(SERVERS.missing(wanted))}</div>` : nothing}
    ${names.length === 0 ? parts.group(parts.row(parts.emptyState("lock", SERVERS.noSecrets, parts.button("secret-first", SERVERS.addSecret, () => focusOn("secret-name"))))) : parts.group(repeat(names, (one) => one, (one) => row(one, servers)))}
    ${plainKeys(place)}
    ${form(names)}
    ${place === "unlocked" ? html`<p class="small quiet">${SERVERS.keptIn} ${parts.path(file)}.</p>` : nothing}`;
}

/**
 * Lists unprotected keys in the servers' settings, and moves them.
 * @param {import("./types.js").Secrets["place"]} place
 */
const plainKeys = (place) => html`
  ${moved ? html`<p class="small good after" role="status">${moved}</p>` : nothing}
  ${plain.length === 0 ? nothing : html`
    <div class="card asks-card after" role="group" aria-label=${SERVERS.plainTitle}>
      <p class="asks">${parts.icon("triangle-alert")} ${SERVERS.plainText(plain.length)}</p>
      <ul class="small opened">${plain.map((key) => html`<li><span><code>${key.place}</code> ${SERVERS.of} ${parts.foreign(key.server)}</span></li>`)}</ul>
      <div class="both start">${actButton({
        key: "move-secrets",
        writes: "secrets",
        ...SERVERS.move,
        ready: place === "keyring" ? SERVERS.moveToKeyring : SERVERS.moveToFile,
        again: true,
        says: SERVERS.moveSays(place === "keyring", plain.map((key) => `keyring:${key.name}`)),
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
    html`${parts.title(html`<code>${one}</code>`)}${parts.facts(SERVERS.usedBy(users))}`,
    actButton({
      key: `remove-secret:${one}`,
      ...SERVERS.removeSecret,
      label: SERVERS.removeSecretLabel(one),
      says: SERVERS.removeSecretSays(one, users),
      act: async () => {
        await backend.removeSecret(one);
        await loadSecrets();
      },
    }),
    parts.icon("lock"),
  );
}

/** @param {string[]} names */
const form = (names) => html`
  ${parts.section(SERVERS.addSecret)}
  <div class="card">
  <div class="form">
    ${parts.field(SERVERS.name, html`<input type="text" class="mono" autocomplete="off" spellcheck="false" data-key="secret-name" .value=${live(name)} @input=${(/** @type {Event} */ event) => { name = parts.valueOf(event); redraw(); }}>`)}
    ${parts.field(SERVERS.secret, html`<input type="password" autocomplete="off" data-key="secret-value" .value=${live(value)} @input=${(/** @type {Event} */ event) => { value = parts.valueOf(event); redraw(); }}>`)}
  </div>
  <div class="both start">
    ${actButton({
      key: "set-secret",
      ...SERVERS.keep,
      ready: names.includes(name) ? SERVERS.replace : SERVERS.keepNew,
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
  <p class="small quiet">${SERVERS.afterRestart}</p>
  </div>`;
