// Removes a server after showing the consequences. Its entry is kept, and "Put back" restores it.

import { actButton, planPanel } from "./action_button.js";
import * as backend from "./backend.js";
import { permissions } from "./grant_list.js";
import { html, nothing, repeat } from "./html.js";
import * as parts from "./parts.js";
import { removalWords } from "./sentences.js";
import { redraw, state } from "./state.js";
import { revokeErrors, revokeGrants } from "./revoke.js";
import { count } from "./words.js";

/** @typedef {import("./types.js").Server} Server */
/** @typedef {import("./types.js").Grant} Grant */

/** @type {import("./types.js").PlannedRemoval | null} */
let planned = null;
let withGrants = true;
let told = "";
let problem = "";

/** @param {Server} server */
export const removeButton = (server) =>
  planned?.name === server.name ? nothing : actButton({
    key: `remove:${server.name}`,
    ready: "Remove\u2026",
    label: `Remove\u2026 ${server.name}`,
    going: "Looking\u2026",
    done: "Looked",
    failed: "Not possible",
    again: true,
    act: async () => {
      told = problem = "";
      withGrants = true;
      planned = await backend.planRemoval(server.name);
    },
  });

/**
 * Returns the panel in a server's card.
 * @param {Server} server
 * @param {() => Promise<void>} reload
 */
export function removalPanel(server, reload) {
  if (planned?.name !== server.name) return nothing;
  const grants = grantsFor(server.name);
  return planPanel(
    `Taking out ${server.name}`,
    html`
      <h3>Taking out ${parts.foreign(server.name)}</h3>
      <ul class="small">${removalWords(planned, server.live.length).map((words) => html`<li>${words}</li>`)}</ul>
      ${grants.length === 0 ? nothing : html`
        ${parts.tick(`remove-grants:${server.name}`, `Revoke its ${count(grants.length, "permission")} too`, withGrants, (on) => { withGrants = on; redraw(); })}
        ${withGrants ? nothing : parts.warning("A later server with the same name would get them.")}`}
      <details><summary data-key="remove-entry:${server.name}">Its entry</summary><pre tabindex="0" aria-label="Its entry">${planned.entry}</pre></details>`,
    {
      key: `remove-now:${server.name}`,
      ready: "Take it out",
      label: `Take it out: ${server.name}`,
      going: "Taking it out\u2026",
      done: "Taken out",
      failed: "Not taken out",
      act: () => takeOut(grants, reload),
    },
    { key: `remove-leave:${server.name}`, text: "Cancel", press: () => { planned = null; redraw(); } },
  );
}

/**
 * @param {Grant[]} grants
 * @param {() => Promise<void>} reload
 */
async function takeOut(grants, reload) {
  told = await backend.removeServer();
  planned = null;
  if (withGrants && grants.length > 0) {
    await revokeGrants(grants.map(({ id }) => id));
    const left = grants.filter(({ id }) => revokeErrors.has(id)).length;
    problem = left > 0 ? `${count(left, "permission")} could not be revoked; see What you granted.` : "";
    if (left < grants.length) told += ` ${count(grants.length - left, "permission")} revoked.`;
  }
  await reload();
}

/** @param {string} server */
const grantsFor = (server) => (state.snapshot ? permissions(state.snapshot) : []).filter((grant) => grant.server === server && grant.ending === null);

/**
 * Returns the list of removed servers.
 * @param {import("./types.js").RemovedServer[]} removed
 * @param {() => Promise<void>} reload
 */
export const removedList = (removed, reload) => html`
  ${told ? html`<p class="good" role="status">${told}</p>` : nothing}
  ${problem ? parts.problem(problem) : nothing}
  ${removed.length === 0 ? nothing : html`
    <h2>Taken out</h2>
    ${parts.group(repeat(removed, (one) => one.name, (one) => removedRow(one, reload)))}`}`;

/**
 * @param {import("./types.js").RemovedServer} one
 * @param {() => Promise<void>} reload
 */
const removedRow = (one, reload) =>
  parts.row(
    html`<div><b>${parts.foreign(one.name)}</b></div>
      <details><summary data-key="removed:${one.name}">Its entry, as it was</summary><pre tabindex="0" aria-label="The entry of ${one.name}">${one.entry}</pre></details>`,
    html`
      ${actButton({
        key: `restore:${one.name}`,
        ready: "Put back",
        label: `Put back ${one.name}`,
        going: "Putting back\u2026",
        done: "Put back",
        failed: "Not put back",
        again: true,
        act: async () => {
          await backend.restoreServer(one.name);
          told = `${one.name} is back as it was. Sessions that begin from now on can have it.`;
          await reload();
        },
      })}
      ${actButton({
        key: `forget:${one.name}`,
        ready: "Forget it",
        label: `Forget it: ${one.name}`,
        going: "Forgetting\u2026",
        done: "Forgotten",
        failed: "Not forgotten",
        again: true,
        says: `The entry of ${one.name} is deleted permanently and cannot be put back.`,
        act: async () => {
          await backend.forgetServer(one.name);
          told = "";
          await reload();
        },
      })}`,
  );
