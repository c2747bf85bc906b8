// The activity page's filter: search words, verdicts, and a chip for each other filter.

import { html, live, nothing } from "./html.js";
import * as parts from "./parts.js";
import { QUARTER_MS } from "./strip.js";
import { ACTIVITY } from "./texts/activity.js";
import { STRIP } from "./texts/strip.js";
import { clockOf } from "./words.js";

/** @typedef {import("./types.js").Wanted} Wanted */

/** Delay of the search after the last key press. */
const TYPING_MS = 200;
const HOUR_MS = 4 * QUARTER_MS;
/** @type {[string, string][]} */
const TIMES = [["0", ACTIVITY.anyTime], ["1", ACTIVITY.lastHour], ["24", ACTIVITY.lastDay], ["168", ACTIVITY.lastWeek], ["720", ACTIVITY.lastMonth]];

/** @type {() => Wanted} */
const nothingWanted = () => ({ text: "", decision: "", server: "", client: "", path: "", from_ms: 0, to_ms: 0 });

export const wanted = nothingWanted();
/** Chosen period in hours, as in `TIMES`. */
let hours = 0;

export const isNarrow = () => Object.values(wanted).some(Boolean);

/** Filters by a period. @param {number} from @param {number} to */
export function chooseTime(from, to) {
  hours = 0;
  Object.assign(wanted, { from_ms: from, to_ms: to });
}

/**
 * Returns the filter.
 * @param {import("./types.js").Snapshot} snapshot
 * @param {(after: number) => void} search Called after a change, with a delay.
 */
export function filterBar(snapshot, search) {
  const set = (/** @type {Partial<Wanted>} */ change, after = 0) => {
    Object.assign(wanted, change);
    search(after);
  };
  const verdict = (/** @type {Wanted["decision"]} */ decision, /** @type {string} */ text) =>
    parts.filterChip(`verdict:${decision}`, text, wanted.decision === decision, () => set({ decision: wanted.decision === decision ? "" : decision }));
  return html`
    <div class="tools filter" role="group" aria-label=${ACTIVITY.filters}>
      <input type="search" class="grow" data-key="find" aria-label=${ACTIVITY.find} placeholder=${ACTIVITY.findHint}
        .value=${live(wanted.text)} @input=${(/** @type {Event} */ event) => set({ text: parts.valueOf(event) }, TYPING_MS)}>
      ${verdict("allow", ACTIVITY.allowed)}${verdict("escalate", ACTIVITY.asked)}${verdict("deny", ACTIVITY.denied)}
      ${parts.menu("filter", ACTIVITY.filters, () => more(snapshot, set), { text: html`${parts.icon("funnel")} ${ACTIVITY.filters}`, kind: "" })}
    </div>
    ${chips(set)}`;
}

/**
 * @param {import("./types.js").Snapshot} snapshot
 * @param {(change: Partial<Wanted>, after?: number) => void} set
 */
function more({ status, clients }, set) {
  const time = (/** @type {string} */ to) => {
    hours = Number(to);
    set({ from_ms: hours === 0 ? 0 : Date.now() - hours * HOUR_MS, to_ms: 0 });
  };
  const named = (/** @type {string[]} */ names) => /** @type {[string, string][]} */ (names.map((name) => [name, name]));
  return html`
    ${parts.field(ACTIVITY.agent, parts.select("client", wanted.client, [["", ACTIVITY.anyAgent], ...named([...new Set(clients.map((one) => one.name))])], (to) => set({ client: to })))}
    ${parts.field(ACTIVITY.server, parts.select("server", wanted.server, [["", ACTIVITY.anyServer], ...named(status.servers)], (to) => set({ server: to })))}
    ${parts.field(ACTIVITY.time, parts.select("time", String(hours), TIMES, time))}
    ${parts.field(ACTIVITY.folder, html`<input type="search" data-key="path" placeholder=${ACTIVITY.folderHint} .value=${live(wanted.path)} @input=${(/** @type {Event} */ event) => set({ path: parts.valueOf(event) }, TYPING_MS)}>`)}`;
}

/** @param {(change: Partial<Wanted>) => void} set */
function chips(set) {
  /** @type {[string, string, Partial<Wanted>][]} */
  const all = [
    ["client", wanted.client, { client: "" }],
    ["server", wanted.server, { server: "" }],
    ["path", wanted.path, { path: "" }],
    ["time", timeWords(), { from_ms: 0, to_ms: 0 }],
  ];
  const on = all.filter(([, text]) => text !== "");
  if (on.length === 0) return nothing;
  return html`<div class="tools">${on.map(([key, text, change]) => html`
    <button type="button" class="filter-chip" data-key="clear:${key}" aria-label=${ACTIVITY.clear(text)} @click=${() => { if (key === "time") hours = 0; set(change); }}>${parts.foreign(text)}${parts.icon("x")}</button>`)}</div>`;
}

function timeWords() {
  if (wanted.from_ms === 0) return "";
  const listed = TIMES.find(([value]) => Number(value) === hours && hours > 0);
  return listed ? listed[1] : STRIP.span(clockOf(wanted.from_ms), clockOf(wanted.to_ms));
}

/** Removes all filters. */
export function clearFilter() {
  hours = 0;
  Object.assign(wanted, nothingWanted());
}
