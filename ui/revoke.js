// Revokes grants. Access ends at once, and a grant is shown as revoked once this has been verified. Undo requires
// confirmation.

import { actButton, forget } from "./action_button.js";
import * as backend from "./backend.js";
import { redraw, state } from "./state.js";
import { PERMISSIONS } from "./texts/permissions.js";

/** @typedef {import("./types.js").Grant} Grant */

/** Revoked grants, with the time of verification. They stay in view until the page is closed.
 * @type {Map<string, { grant: Grant, at_ms: number, restarted: number, note: string | null }>} */
export const revoked = new Map();

/** Reasons why grants were not revoked, by id.
 * @type {Map<string, string>} */
export const revokeErrors = new Map();

/**
 * Revokes grants and records the outcome of each.
 * @param {string[]} ids
 */
export async function revokeGrants(ids) {
  const before = new Map(state.snapshot?.grants.map((grant) => [grant.id, grant]));
  ids.forEach((id) => revokeErrors.delete(id));
  for (const { grant: id, at_ms, restarted, note, problem } of await backend.revokeGrants(ids)) {
    const grant = before.get(id);
    if (problem !== null || at_ms === null) revokeErrors.set(id, problem ?? PERMISSIONS.unverified);
    else if (grant) revoked.set(id, { grant, at_ms, restarted, note });
  }
  redraw();
}

/**
 * @param {string} id
 * @param {string} path
 * @param {string} [kind]
 */
export const revokeButton = (id, path, kind) =>
  actButton({
    key: `take-back:${id}`,
    kind,
    ...PERMISSIONS.revoke,
    label: PERMISSIONS.revokeLabel(path),
    act: async () => {
      await revokeGrants([id]);
      const problem = revokeErrors.get(id);
      if (problem !== undefined) {
        revokeErrors.delete(id);
        throw new Error(problem);
      }
    },
  });

/**
 * Returns the button that restores a revoked grant after confirmation.
 * @param {Grant} grant
 */
export const undoButton = (grant) =>
  actButton({
    key: `undo:${grant.id}`,
    ...PERMISSIONS.undo,
    label: PERMISSIONS.undoLabel(grant.path),
    says: PERMISSIONS.undoSays(grant),
    act: async () => {
      await backend.restoreGrant(grant.id);
      revoked.delete(grant.id);
      forget(`take-back:${grant.id}`);
    },
  });
