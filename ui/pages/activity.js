// The whole activity log: search, check and export.

import { actButton } from "../action_button.js";
import * as backend from "../backend.js";
import { callRow } from "../activity_row.js";
import { html, live, nothing, repeat } from "../html.js";
import * as parts from "../parts.js";
import { draftRule } from "./rules.js";
import { redraw } from "../state.js";
import { count } from "../words.js";

/** @typedef {import("../types.js").Call} Call */

/** Rows per page. */
const STEP = 100;
/** Delay of the search after the last key press. */
const TYPING_MS = 200;

/** @type {import("../types.js").Wanted} */
const wanted = { text: "", decision: "", server: "", path: "", days: 0 };
let skip = 0;
/** @type {import("../types.js").Calls | null} */
let found = null;
let problem = "";
let asked = 0;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let typing;
/** @type {Set<number>} */
const open = new Set();
/** @type {import("../types.js").LogCheck | null} */
let check = null;
let written = "";

/** @type {import("../app.js").Page} */
export const activity = {
  id: "activity",
  name: "Activity",
  icon: "activity",
  follows: true,
  async load() {
    const number = ++asked;
    try {
      const answer = await backend.activity({ ...wanted }, skip, STEP);
      if (number !== asked) return;
      [found, problem] = [answer, ""];
    } catch (failure) {
      if (number === asked) problem = backend.sentence(failure);
    }
  },
  view: (snapshot) => html`
    <h1>Activity</h1>
    ${filters(snapshot.status.servers)}
    ${problem ? parts.problem(`Searching the record failed: ${problem}`) : nothing}
    ${found === null ? html`<p class="quiet" role="status">Reading the record\u2026</p>` : rows(found)}
    <h2>The record</h2>
    ${record()}`,
};

/** @param {import("../types.js").Calls} calls */
const rows = ({ calls, more }) => html`
  ${calls.length === 0
    ? isNarrow()
      ? parts.empty("Nothing on record matches.", "Try fewer or other words. Whole words match; end a word with * to match its beginning.")
      : parts.empty("Nothing happened yet.", "Every call of an agent is listed here, allowed or not.")
    : parts.group(repeat(calls, (call) => call.seq, row), "log")}
  ${parts.pager("activity", skip, calls.length, more ? null : skip + calls.length, STEP, (to) => { skip = to; search(0); })}`;

/** @param {Call} call */
const row = (call) =>
  callRow(call, {
    open: open.has(call.seq),
    toggle: () => {
      if (!open.delete(call.seq)) open.add(call.seq);
      redraw();
    },
    acts: call.server && call.tool ? parts.button(`rule:${call.seq}`, "Make a rule from this\u2026", () => draftRule(call)) : nothing,
  });

const isNarrow = () => wanted.text !== "" || wanted.decision !== "" || wanted.server !== "" || wanted.path !== "" || wanted.days !== 0;

/** @param {string[]} servers */
const filters = (servers) => html`
  <div class="tools">
    <input type="search" class="grow" data-key="find" aria-label="Find in the whole record" placeholder="Words of a path, tool, agent or reason"
      .value=${live(wanted.text)} @input=${(/** @type {Event} */ event) => set({ text: parts.valueOf(event) }, TYPING_MS)}>
    ${parts.select("decision", wanted.decision, [["", "Any decision"], ["allow", "Allowed"], ["deny", "Denied"], ["escalate", "Asked"]], (to) => set({ decision: /** @type {any} */ (to) }), "Decision")}
    ${parts.select("server", wanted.server, [["", "Any server"], .../** @type {[string, string][]} */ (servers.map((name) => [name, name]))], (to) => set({ server: to }), "Server")}
    ${parts.select("days", String(wanted.days), [["0", "Any time"], ["1", "Last day"], ["7", "Last week"], ["30", "Last month"]], (to) => set({ days: Number(to) }), "Time")}
    <input type="search" class="grow" data-key="path" aria-label="In this folder, or this file" placeholder="In this folder: ~/Documents"
      .value=${live(wanted.path)} @input=${(/** @type {Event} */ event) => set({ path: parts.valueOf(event) }, TYPING_MS)}>
  </div>`;

/**
 * @param {Partial<typeof wanted>} change
 * @param {number} [after]
 */
function set(change, after = 0) {
  Object.assign(wanted, change);
  skip = 0;
  search(after);
}

/** @param {number} after */
function search(after) {
  clearTimeout(typing);
  typing = setTimeout(async () => {
    await activity.load?.();
    redraw();
  }, after);
}

const record = () =>
  parts.group(html`
    ${parts.row(
      html`<div>Every decision is recorded before it takes effect. If anybody edits the record, "Check the record" shows it.</div><div class="small" role="status">${checkWords()}</div>`,
      actButton({ key: "check", ready: "Check the record", going: "Checking\u2026", done: "Checked", failed: "Not checked", again: true, act: async () => { check = await backend.checkLog(); } }),
    )}
    ${parts.row(
      html`<div>Export these entries: ${isNarrow() ? "the entries that match" : "the whole record"}.</div>${written ? html`<div class="small good" role="status">Written to ${parts.path(written)}</div>` : nothing}`,
      html`${exportButton("csv", "As a table\u2026")}${exportButton("jsonl", "As JSON lines\u2026")}`,
    )}`);

/**
 * @param {"csv" | "jsonl"} format
 * @param {string} ready
 */
const exportButton = (format, ready) =>
  actButton({ key: `export:${format}`, ready, going: "Writing\u2026", done: "Written", failed: "Not written", again: true, act: async () => { written = (await backend.exportActivity({ ...wanted }, format)) ?? written; } });

function checkWords() {
  if (check === null) return nothing;
  if (check.intact && !check.problem) return html`<span class="badge allow">${count(check.entries, "entry")}, all unchanged</span>`;
  return html`<span class="bad">\u26a0 ${check.problem ?? "the record was changed"}</span>`;
}
