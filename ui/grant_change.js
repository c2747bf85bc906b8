// Changes the terms of a grant: less access, a folder within it, or another lifetime.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { accessTicks } from "./grant_form.js";
import { html } from "./html.js";
import * as parts from "./parts.js";
import { redraw } from "./state.js";
import { LIFETIMES, PERMISSIONS } from "./texts/permissions.js";

/** @typedef {import("./types.js").Grant} Grant */
/** @typedef {import("./types.js").Access} Access */

/** @typedef {{ access: Access[], lifetime: "" | import("./types.js").Lifetime }} Wanted */

/** Chosen terms, by grant. @type {Map<string, Wanted>} */
const chosen = new Map();

/**
 * @param {Grant} grant
 * @param {() => void} close
 */
export function changePanel(grant, close) {
  const held = /** @type {Access[]} */ (grant.access);
  const wanted = chosen.get(grant.id) ?? { access: held, lifetime: "" };
  const set = (/** @type {Partial<Wanted>} */ change) => {
    chosen.set(grant.id, { ...wanted, ...change });
    redraw();
  };
  const less = wanted.access.length < held.length;
  const terms = () => ({ access: less ? wanted.access : null, lifetime: wanted.lifetime || null, part: false });
  /** @type {[string, string][]} */
  const times = [["", PERMISSIONS.asNow(grant.lifetime)], ...LIFETIMES.filter(([value]) => value !== "session")];
  return html`
    <div class="panel" role="group" aria-label=${PERMISSIONS.changeGroup(grant.path)}>
      <div class="form">
        ${accessTicks(`less:${grant.id}`, wanted.access, held, (access) => set({ access }))}
        ${parts.field(PERMISSIONS.lastsFromNow, parts.select(`time:${grant.id}`, wanted.lifetime, times, (to) => set({ lifetime: /** @type {any} */ (to) })))}
      </div>
      <p class="small quiet">${PERMISSIONS.allowMore}</p>
      <div class="both start">
        ${act(grant, PERMISSIONS.change.ready, { ...terms() }, wanted.access.length === 0 || (!less && wanted.lifetime === ""), close)}
        ${grant.kind === "folder" ? act(grant, PERMISSIONS.changePart, { ...terms(), part: true }, wanted.access.length === 0, close) : ""}
        ${parts.button(`close:${grant.id}`, PERMISSIONS.close, close, { leaves: true })}
      </div>
    </div>`;
}

/**
 * @param {Grant} grant
 * @param {string} ready
 * @param {import("./types.js").Terms} terms
 * @param {boolean} off
 * @param {() => void} close
 */
const act = (grant, ready, terms, off, close) =>
  actButton({
    key: `${terms.part ? "part" : "terms"}:${grant.id}`,
    ...PERMISSIONS.change,
    ready,
    again: true,
    off,
    kind: terms.part ? "" : "main",
    act: async () => {
      if (!(await backend.changeGrant(grant.id, terms))) return;
      chosen.delete(grant.id);
      close();
    },
  });
