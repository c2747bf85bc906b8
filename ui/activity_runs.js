// Collapses runs of similar calls. Pure functions.

import { folderOf } from "./words.js";

/** @typedef {import("./types.js").Call} Call */
/** @typedef {{ key: number, calls: Call[], isPart: boolean, isOpen: boolean }} Item One line: a call, or a run of several. */

/** Minimum number of calls in a collapsed run. */
const LEAST = 3;

/**
 * Returns the folder of a call's first path, or its tool if it has none.
 * @param {Call} call
 */
export const folder = ({ paths: [first], tool }) => (first === undefined ? (tool ?? "") : first.startsWith("/") ? folderOf(first, "file") : first);

/** @param {Call} a @param {Call} b */
const isSimilar = (a, b) =>
  a.decision !== null && a.decision === b.decision && a.client === b.client && a.server === b.server && a.verb === b.verb &&
  a.reason === b.reason && a.outcome === b.outcome && folder(a) === folder(b);

/**
 * Groups calls into lines. A run is identified by its oldest call, so that new calls extend it.
 * @param {Call[]} calls Newest first.
 * @param {Set<number>} open Runs that are shown in full.
 * @returns {Item[]}
 */
export function lines(calls, open) {
  /** @type {Item[]} */
  const items = [];
  let start = 0;
  while (start < calls.length) {
    let end = start + 1;
    const first = /** @type {Call} */ (calls[start]);
    while (end < calls.length && isSimilar(first, /** @type {Call} */ (calls[end]))) end += 1;
    const run = calls.slice(start, end);
    const key = run[run.length - 1]?.seq ?? 0;
    const isOpen = open.has(key);
    if (run.length < LEAST) items.push(...run.map((call) => ({ key: call.seq, calls: [call], isPart: false, isOpen: false })));
    else {
      // Negative, because the run and its oldest call are different lines.
      items.push({ key: -key, calls: run, isPart: false, isOpen });
      if (isOpen) items.push(...run.map((call) => ({ key: call.seq, calls: [call], isPart: true, isOpen: false })));
    }
    start = end;
  }
  return items;
}
