// The full log, one line per entry, with search, live view, details, check and export.

import { actButton } from "../action_button.js";
import { chooseTime, clearFilter, filterBar, isNarrow, wanted } from "../activity_filter.js";
import { cells, manyCells, subject } from "../activity_line.js";
import { ActivityLog } from "../activity_log.js";
import { lines } from "../activity_runs.js";
import * as backend from "../backend.js";
import { html, nothing } from "../html.js";
import * as parts from "../parts.js";
import { draftRule } from "./rules.js";
import { focusOn, redraw } from "../state.js";
import { strip } from "../strip.js";
import { ACTIVITY } from "../texts/activity.js";
import { FRAME } from "../texts/frame.js";
import { VirtualList } from "../virtual_list.js";
import { clockOf, exact } from "../words.js";

/** @typedef {import("../types.js").Call} Call */
/** @typedef {import("../activity_runs.js").Item} Item */

const log = new ActivityLog();
/** @type {VirtualList<Item>} */
const list = new VirtualList();
let isLive = true;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let typing;
/** Runs of similar calls that are shown in full. @type {Set<number>} */
const open = new Set();
/** Sequence number of the entry whose details are shown; 0 for none. */
let chosen = 0;
/** @type {{ seq: number, details: [string, string][], problem: string } | null} */
let detail = null;
/** The part of the address that was followed last. */
let followed = "";
/** The last check of the record, with its time. @type {import("../types.js").LogCheck & { at_ms: number } | null} */
let check = null;
let written = "";

/** @type {import("../app.js").Page} */
export const activity = {
  id: "activity",
  name: FRAME.pages.activity,
  wide: true,
  follows: true,
  async load() {
    if (isLive || log.calls === null) await log.refresh(wanted);
  },
  view(snapshot, part) {
    follow(part);
    const { calls } = log;
    return html`
      ${parts.heading(ACTIVITY.title, html`<div class="both">${liveButton()}${tools()}</div>`)}
      ${snapshot.day === null ? nothing : strip(snapshot.day, showTime, { from: wanted.from_ms, to: wanted.to_ms })}
      ${filterBar(snapshot, search)}
      ${results()}
      ${log.problem ? parts.problem(ACTIVITY.failed(log.problem)) : nothing}
      ${calls === null ? html`<p class="quiet" role="status">${ACTIVITY.reading}</p>` : calls.length === 0 ? none() : html`
        <div class="log-and-details ${chosen ? "both-shown" : ""}">
          ${list.view("log", ACTIVITY.list)}
          ${chosen ? details(calls.find((one) => one.seq === chosen)) : nothing}
        </div>`}`;
  },
  drawn() {
    const scroller = document.querySelector("#page .vlist");
    list.draw(scroller instanceof HTMLElement ? scroller : null, {
      items: items(),
      key: (item) => item.key,
      cells: ({ calls, isOpen }) => (calls.length > 1 ? manyCells(calls, isOpen) : calls[0] ? cells(calls[0]) : nothing),
      kind: (item) => (item.isPart ? "part" : ""),
      isChosen: (item) => item.key === chosen,
      press,
      leave,
      end: () => void log.older(wanted).then((more) => { if (more) redraw(); }),
    });
  },
};

/**
 * Shows the entries of a period.
 * @param {number} from
 * @param {number} to
 */
export function showTime(from, to) {
  chooseTime(from, to);
  log.reset();
  if (location.hash.startsWith("#activity")) search(0);
  else location.hash = "#activity";
}

/** Lines, and the calls that they were grouped from. @type {{ calls: Call[] | null, items: Item[] }} */
let grouped = { calls: null, items: [] };

/** Returns the lines, grouped again only if the calls or the open runs have changed. */
function items() {
  if (grouped.calls !== log.calls) grouped = { calls: log.calls, items: lines(log.calls ?? [], open) };
  return grouped.items;
}

/** @param {string} part */
function follow(part) {
  if (part === followed) return;
  followed = part;
  if (/^\d+$/.test(part)) choose(Number(part));
}

/** @param {Item} item */
function press({ key, calls }) {
  if (calls.length === 1 && calls[0]) return choose(chosen === calls[0].seq ? 0 : calls[0].seq);
  if (!open.delete(-key)) open.add(-key);
  grouped.calls = null;
  redraw();
}

/** Closes the details. */
function leave() {
  chosen = 0;
  focusOn("log");
}

/** @param {number} seq */
function choose(seq) {
  chosen = seq;
  list.activate(seq);
  redraw();
  if (seq === 0) return;
  const show = (/** @type {[string, string][]} */ details, problem = "") => {
    // The user may have chosen another entry in the meantime.
    if (seq === chosen) detail = { seq, details, problem };
    redraw();
  };
  backend.callDetails(seq).then((found) => show(found), (failure) => show([], backend.sentence(failure)));
}

/** @param {number} after */
function search(after) {
  clearTimeout(typing);
  redraw();
  typing = setTimeout(async () => {
    log.reset();
    await log.refresh(wanted);
    redraw();
  }, after);
}

const liveButton = () =>
  parts.button("live", isLive ? html`${parts.icon("pause")} ${ACTIVITY.pause}` : html`${parts.icon("play")} ${ACTIVITY.resume}`, () => {
    isLive = !isLive;
    if (isLive) void activity.load?.().then(redraw);
    redraw();
  }, { label: isLive ? `${ACTIVITY.live}: ${ACTIVITY.pause}` : `${ACTIVITY.paused}: ${ACTIVITY.resume}` });

const none = () =>
  isNarrow()
    ? parts.emptyState("search", html`${ACTIVITY.noMatch} ${wanted.text ? ACTIVITY.noMatchHint : ""}`, parts.button("clear-all", ACTIVITY.clearAll, () => { clearFilter(); search(0); }))
    : parts.emptyState("activity", ACTIVITY.none);

/** @param {Call | undefined} call */
function details(call) {
  const found = detail?.seq === chosen ? detail : null;
  const fact = (/** @type {string} */ name, /** @type {unknown} */ value) => html`<dt>${name}</dt><dd>${value}</dd>`;
  return parts.sidePanel(ACTIVITY.details, call ? subject(call) : ACTIVITY.details, html`
    ${call ? html`
      <p class="title">${parts.badge(call.decision, call.event)}</p>
      <p>${parts.foreign(call.summary)}</p>
      <dl class="record">
        ${fact(ACTIVITY.when, exact(call.time_ms))}
        ${call.client ? fact(ACTIVITY.agentIs, parts.foreign(call.client)) : nothing}
        ${call.server ? fact(ACTIVITY.serverIs, parts.foreign(call.server)) : nothing}
        ${call.tool ? fact(ACTIVITY.toolIs, html`<code>${call.tool}</code>`) : nothing}
        ${call.paths.length > 0 ? fact(ACTIVITY.paths, call.paths.map((one) => html`<div>${parts.path(one)}</div>`)) : nothing}
        ${call.outcome ? fact(ACTIVITY.outcome, parts.foreign(call.outcome)) : nothing}
      </dl>` : nothing}
    ${found?.problem ? parts.problem(ACTIVITY.detailsFailed(found.problem)) : nothing}
    <dl class="record">${found?.details.map(([name, value]) => fact(name, value.includes("\n") ? html`<pre tabindex="0">${value}</pre>` : parts.foreign(value)))}</dl>
    ${call?.server && call.tool ? html`<div class="both start">${parts.button(`rule:${call.seq}`, ACTIVITY.makeRule, () => draftRule(call))}</div>` : nothing}`, leave);
}

const tools = () => parts.menu("record", ACTIVITY.tools, () => html`
  ${actButton({ key: "check", ready: ACTIVITY.check, going: ACTIVITY.checking, done: ACTIVITY.checked, failed: ACTIVITY.notChecked, again: true, act: checkRecord })}
  ${exportButton("csv", ACTIVITY.exportTable)}${exportButton("jsonl", ACTIVITY.exportLines)}`);

async function checkRecord() {
  // An earlier result no longer counts, even if this check fails.
  check = null;
  check = { ...(await backend.checkLog()), at_ms: Date.now() };
}

/**
 * @param {"csv" | "jsonl"} format
 * @param {string} ready
 */
const exportButton = (format, ready) =>
  actButton({ key: `export:${format}`, ready, going: ACTIVITY.writing, done: ACTIVITY.written, failed: ACTIVITY.notWritten, again: true, act: async () => { written = (await backend.exportActivity({ ...wanted }, format)) ?? written; } });

/** Returns the results of the last check and the last export. */
function results() {
  if (check === null && !written) return nothing;
  const isIntact = check?.intact && !check.problem;
  return html`<p class="small" role="status">
    ${check === null ? nothing : isIntact ? html`<span class="badge allow">${ACTIVITY.intact(check.entries, clockOf(check.at_ms))}</span>` : html`<span class="bad">${parts.icon("triangle-alert")} ${parts.foreign(check.problem ?? ACTIVITY.changed)}</span>`}
    ${written ? html`<span class="good">${ACTIVITY.writtenTo} ${parts.path(written)}</span>` : nothing}</p>`;
}
