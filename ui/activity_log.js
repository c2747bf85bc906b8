// The loaded part of the log: the newest entries that match, kept current, and older ones on demand.

import * as backend from "./backend.js";

/** @typedef {import("./types.js").Call} Call */

/** Maximum number of entries that one request loads: the newest ones, or older ones. */
const NEWEST = 200;
const OLDER = 500;

export class ActivityLog {
  /** @type {Call[] | null} Newest first; null before the first answer. */
  calls = null;
  problem = "";
  /** @type {number | null} */
  #next = null;
  #asked = 0;
  /** Number of filter changes so far. Older entries are discarded if this number changed while they were loading. */
  #filter = 0;
  #isLoading = false;

  /** Discards the loaded entries, because the filter has changed. */
  reset() {
    this.#asked += 1;
    this.#filter += 1;
    this.#isLoading = false;
    this.calls = null;
    this.#next = null;
  }

  /** Loads the newest entries. @param {import("./types.js").Wanted} wanted */
  async refresh(wanted) {
    const number = ++this.#asked;
    try {
      const { calls, next } = await backend.activity({ ...wanted }, null, NEWEST);
      if (number !== this.#asked) return;
      this.problem = "";
      const seen = new Set(calls.map((one) => one.seq));
      const known = this.calls ?? [];
      const isJoined = known.some((one) => seen.has(one.seq));
      if (next === null || !isJoined) [this.calls, this.#next] = [calls, next];
      else this.calls = [...calls, ...known.slice(known.findLastIndex((one) => seen.has(one.seq)) + 1)];
    } catch (failure) {
      if (number === this.#asked) this.problem = backend.sentence(failure);
    }
  }

  /** Loads older entries. Returns whether the list or the error has changed. @param {import("./types.js").Wanted} wanted */
  async older(wanted) {
    if (this.#isLoading || this.#next === null || !this.calls) return false;
    this.#isLoading = true;
    const filter = this.#filter;
    try {
      const { calls, next } = await backend.activity({ ...wanted }, this.#next, OLDER);
      if (filter !== this.#filter) return false;
      const seen = new Set(this.calls.map((one) => one.seq));
      this.calls = [...this.calls, ...calls.filter((one) => !seen.has(one.seq))];
      this.#next = next;
      return true;
    } catch (failure) {
      if (filter !== this.#filter) return false;
      this.problem = backend.sentence(failure);
      return true;
    } finally {
      if (filter === this.#filter) this.#isLoading = false;
    }
  }
}
