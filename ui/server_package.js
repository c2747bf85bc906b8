// Installs a server's package, and updates it after showing what changes.

import { actButton, planPanel } from "./action_button.js";
import * as backend from "./backend.js";
import { html, nothing } from "./html.js";
import { closeMenu } from "./menu.js";
import { show } from "./opened.js";
import * as parts from "./parts.js";
import { planning } from "./plan_slots.js";
import { focusOn, redraw } from "./state.js";
import { SERVERS } from "./texts/servers.js";

/** @typedef {import("./types.js").Server} Server */

/** @type {Map<string, import("./types.js").FoundUpdate>} */
const updates = new Map();

/**
 * @param {Server} server
 * @param {(words: string) => Promise<void>} done
 */
export const installButton = (server, done) =>
  !server.can_install || server.version !== null ? nothing : actButton({
    key: `install:${server.name}`,
    ...SERVERS.install,
    label: SERVERS.installLabel(server.name),
    again: true,
    says: SERVERS.installSays(server.name),
    act: async () => done(await backend.installServer(server.name)),
  });

/**
 * @param {Server} server
 * @param {string} key Key of its row.
 */
export const checkButton = (server, key) =>
  server.version === null ? nothing : actButton({
    key: `update:${server.name}`,
    ...SERVERS.check,
    label: SERVERS.checkLabel(server.name),
    again: true,
    act: async () => {
      const found = await planning("update", () => backend.checkForUpdate(server.name));
      // The app keeps only one update at a time.
      updates.clear();
      updates.set(server.name, found);
      closeMenu();
      show(key);
      focusOn(`leave-update:${server.name}`);
    },
  });

/**
 * Returns the panel with the result of the check.
 * @param {Server} server
 * @param {(words: string) => Promise<void>} done
 */
export function updatePanel(server, done) {
  const update = updates.get(server.name);
  if (!update) return nothing;
  const { to, from, note, tools } = update;
  return planPanel(
    SERVERS.check.ready,
    to === null ? html`<p>${SERVERS.newest(from)}</p>` : html`
      <h3>${SERVERS.updateTitle(to)}</h3>
      ${note ? parts.warning(note) : nothing}
      <ul class="small">${tools.length === 0 ? html`<li>${SERVERS.sameTools}</li>` : tools.map((one) => html`<li>${parts.foreign(one)}</li>`)}</ul>`,
    to === null ? null : {
      key: `take:${server.name}`,
      writes: "update",
      ...SERVERS.update,
      ready: SERVERS.updateTo(to),
      says: SERVERS.updateSays(server.name, to, from),
      act: async () => {
        const words = await backend.applyUpdate(server.name);
        updates.delete(server.name);
        await done(words);
      },
    },
    { key: `leave-update:${server.name}`, text: to === null ? SERVERS.done : SERVERS.cancel, press: () => { updates.delete(server.name); redraw(); } },
  );
}
