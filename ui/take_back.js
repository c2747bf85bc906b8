// Taking grants back: denied at once, "taken back" when that is proved, and an undo that asks again.

import { actButton, forget } from "./acts.js";
import * as backend from "./backend.js";
import { redraw, state } from "./state.js";
import { list } from "./words.js";

/** @typedef {import("./types.js").Grant} Grant */

/** Grants that are gone, with the moment at which that was proved: they stay in view until the page is left.
 * @type {Map<string, { grant: Grant, at_ms: number, restarted: number, note: string | null }>} */
export const gone = new Map();

/** Why grants are not gone, by id.
 * @type {Map<string, string>} */
export const notGone = new Map();

/**
 * Takes grants back, and keeps in view what became of each.
 * @param {string[]} ids
 */
export async function takeBack(ids) {
  const before = new Map(state.snapshot?.grants.map((grant) => [grant.id, grant]));
  ids.forEach((id) => notGone.delete(id));
  for (const { grant: id, at_ms, restarted, note, problem } of await backend.takeBack(ids)) {
    const grant = before.get(id);
    if (problem !== null || at_ms === null) notGone.set(id, problem ?? "nothing proves it");
    else if (grant) gone.set(id, { grant, at_ms, restarted, note });
  }
  redraw();
}

/**
 * @param {string} id
 * @param {string} path
 */
export const takeBackButton = (id, path) =>
  actButton({
    key: `take-back:${id}`,
    ready: "Take back",
    going: "Taking back\u2026",
    done: "Taken back",
    failed: "Not taken back",
    label: `Take back ${path}`,
    act: async () => {
      await takeBack([id]);
      const problem = notGone.get(id);
      if (problem !== undefined) {
        notGone.delete(id);
        throw new Error(problem);
      }
    },
  });

/**
 * Gives again what was taken back, after the person was asked.
 * @param {Grant} grant
 */
export const undoButton = (grant) =>
  actButton({
    key: `undo:${grant.id}`,
    ready: "Undo",
    yes: "Grant it again",
    going: "Granting\u2026",
    done: "Granted again",
    failed: "Not granted",
    label: `Undo: grant ${grant.path} again`,
    says: `${grant.client} may ${list(grant.access)} ${grant.path}${grant.kind === "folder" ? " and all below it" : ""} again, ${lifetimeWords(grant)}.`,
    act: async () => {
      await backend.giveAgain(grant.id);
      gone.delete(grant.id);
      forget(`take-back:${grant.id}`);
    },
  });

/** @param {Grant} grant */
const lifetimeWords = (grant) => (grant.lifetime === "always" ? "until you take it back" : `for ${grant.lifetime}`);
