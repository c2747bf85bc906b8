// Removes a server after showing the consequences. Its entry is kept, and "Put back" restores it.

import { actButton, planPanel } from "./action_button.js";
import * as backend from "./backend.js";
import { permissions } from "./grant_list.js";
import { html, nothing, repeat } from "./html.js";
import { closeMenu } from "./menu.js";
import { show } from "./opened.js";
import * as parts from "./parts.js";
import { planning } from "./plan_slots.js";
import { focusOn, redraw, state } from "./state.js";
import { revokeErrors, revokeGrants } from "./revoke.js";
import { removalWords, SERVERS } from "./texts/servers.js";

/** @typedef {import("./types.js").Server} Server */
/** @typedef {import("./types.js").Grant} Grant */

/** @type {import("./types.js").PlannedRemoval | null} */
let planned = null;
let withGrants = true;
let result = "";
let problem = "";

/**
 * @param {Server} server
 * @param {string} key Key of its row.
 */
export const removeButton = (server, key) =>
  planned?.name === server.name ? nothing : actButton({
    key: `remove:${server.name}`,
    ...SERVERS.remove,
    label: SERVERS.removeLabel(server.name),
    kind: "stop",
    again: true,
    act: async () => {
      result = problem = "";
      withGrants = true;
      planned = await planning("removal", () => backend.planRemoval(server.name));
      closeMenu();
      show(key);
      focusOn(`remove-leave:${server.name}`);
    },
  });

/**
 * Returns the panel in a server's details.
 * @param {Server} server
 * @param {() => Promise<void>} reload
 */
export function removalPanel(server, reload) {
  if (planned?.name !== server.name) return nothing;
  const grants = grantsFor(server.name);
  return planPanel(
    SERVERS.removing(server.name),
    html`
      <h3>${parts.foreign(SERVERS.removing(server.name))}</h3>
      <ul class="small">${removalWords(planned, server.live.length).map((words) => html`<li>${parts.foreign(words)}</li>`)}</ul>
      ${grants.length === 0 ? nothing : html`
        ${parts.tick(`remove-grants:${server.name}`, SERVERS.revokeToo(grants.length), withGrants, (on) => { withGrants = on; redraw(); })}
        ${withGrants ? nothing : parts.warning(SERVERS.laterServer)}`}
      <details><summary data-key="remove-entry:${server.name}">${SERVERS.entry}</summary><pre tabindex="0" aria-label=${SERVERS.entry}>${planned.entry}</pre></details>`,
    {
      key: `remove-now:${server.name}`,
      writes: "removal",
      ...SERVERS.removeNow,
      label: SERVERS.removeNowLabel(server.name),
      act: () => takeOut(grants, reload),
    },
    { key: `remove-leave:${server.name}`, text: SERVERS.cancel, press: () => { planned = null; redraw(); } },
  );
}

/**
 * @param {Grant[]} grants
 * @param {() => Promise<void>} reload
 */
async function takeOut(grants, reload) {
  result = await backend.removeServer();
  planned = null;
  if (withGrants && grants.length > 0) {
    await revokeGrants(grants.map(({ id }) => id));
    const left = grants.filter(({ id }) => revokeErrors.has(id)).length;
    problem = left > 0 ? SERVERS.notAllRevoked(left) : "";
    if (left < grants.length) result += SERVERS.revokedCount(grants.length - left);
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
  ${result ? html`<p class="good" role="status">${result}</p>` : nothing}
  ${problem ? parts.problem(problem) : nothing}
  ${removed.length === 0 ? nothing : html`
    ${parts.section(SERVERS.removed)}
    ${parts.group(repeat(removed, (one) => one.name, (one) => removedRow(one, reload)))}`}`;

/**
 * @param {import("./types.js").RemovedServer} one
 * @param {() => Promise<void>} reload
 */
const removedRow = (one, reload) =>
  parts.row(
    html`${parts.title(parts.foreign(one.name))}
      <details><summary data-key="removed:${one.name}">${SERVERS.removedEntry}</summary><pre tabindex="0" aria-label=${SERVERS.removedEntryOf(one.name)}>${one.entry}</pre></details>`,
    html`
      ${actButton({
        key: `restore:${one.name}`,
        ...SERVERS.putBack,
        label: SERVERS.putBackLabel(one.name),
        again: true,
        act: async () => {
          await backend.restoreServer(one.name);
          result = SERVERS.isBack(one.name);
          await reload();
        },
      })}
      ${parts.menu(`removed-more:${one.name}`, SERVERS.more(one.name), () => actButton({
        key: `forget:${one.name}`,
        ...SERVERS.forget,
        label: SERVERS.forgetLabel(one.name),
        again: true,
        kind: "stop",
        says: SERVERS.forgetSays(one.name),
        act: async () => {
          await backend.forgetServer(one.name);
          result = "";
          closeMenu();
          await reload();
        },
      }))}`,
    parts.icon("archive"),
  );
