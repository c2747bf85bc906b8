// One entry of the log on one line: time, verdict, verb and object, agent, and reason.

import { folder } from "./activity_runs.js";
import { html, nothing } from "./html.js";
import * as parts from "./parts.js";
import { state } from "./state.js";
import { ACTIVITY, VERBS } from "./texts/activity.js";
import { clockOf, short } from "./words.js";

/** @typedef {import("./types.js").Call} Call */

/** @typedef {[icon: string, tone: string, words: string]} Mark */

/** @type {Record<string, Mark>} */
const MARKS = { allow: ["check", "good", ACTIVITY.allowed], deny: ["x", "bad", ACTIVITY.denied], escalate: ["circle-question-mark", "asks", ACTIVITY.asked] };

/** @type {Mark} */
const FAILED = ["triangle-alert", "asks", ACTIVITY.allowedFailed];

/**
 * Returns the mark of a call, with a label for screen readers: its decision, and whether an allowed call failed.
 * @param {Call} call
 */
function mark({ decision, succeeded }) {
  const [name, tone, words] = decision === "allow" && succeeded === false ? FAILED : MARKS[decision ?? ""] ?? ["info", "quiet", ""];
  return html`<span class="mark ${tone}">${parts.icon(name, tone)}<span class="unseen">${words ? `${words}, ` : nothing}</span></span>`;
}

/**
 * Returns the reason for the decision, and then the outcome unless the verb already says it. Backquotes around names are for
 * terminals.
 * @param {Call} call
 */
const why = ({ reason, outcome, succeeded }) => [reason, succeeded ? "" : outcome?.toLowerCase()].filter(Boolean).join(" \u00b7 ").replaceAll("`", "");

/**
 * Returns the verb of a call, in a form that states whether the action happened.
 * @param {Call} call
 */
function verb({ verb, decision, succeeded }) {
  const words = VERBS[verb];
  if (!words) return "";
  if (decision === "deny") return ACTIVITY.didNot(words.would);
  if (decision !== "allow") return ACTIVITY.askedTo(words.would);
  return succeeded === false ? ACTIVITY.triedTo(words.would) : words.done;
}

/**
 * Returns the words for several similar calls.
 * @param {number} n
 * @param {Call} call One of them.
 */
function several(n, { verb, decision }) {
  const many = VERBS[verb]?.many ?? "";
  if (decision === "deny") return ACTIVITY.manyDenied(n, many);
  return decision === "escalate" ? ACTIVITY.manyAsked(n, many) : ACTIVITY.many(n, many);
}

/** @param {string} path */
const last = (path) => {
  const [lead, strong] = path.startsWith("/") ? leadAndName(path) : ["", path];
  return html`<span class="path" title=${path}><span class="unseen">${lead}${strong}</span><span class="lead" aria-hidden="true">${lead}</span><b aria-hidden="true">${strong}</b></span>`;
};

/**
 * Splits a path into its folder and its name, as both have to fit on the line.
 * @param {string} path
 */
function leadAndName(path) {
  const shown = short(path, state.snapshot?.home ?? "");
  const at = shown.lastIndexOf("/", shown.length - 2);
  return [shown.slice(0, at + 1), shown.slice(at + 1)];
}

/**
 * Returns what an entry is about: its verb and object, or its sentence.
 * @param {Call} call
 */
export function subject(call) {
  const [first] = call.paths;
  if (call.decision === null || call.verb === "" || (first === undefined && call.tool === null)) return html`<span class="said">${parts.foreign(call.summary)}</span>`;
  if (first === undefined) return html`<span class="verb">${verb({ ...call, verb: "call" })}</span> <code>${call.tool}</code>`;
  const rest = call.paths.length > 1 ? html` <span class="quiet">${ACTIVITY.more(call.paths.length - 1)}</span>` : nothing;
  return html`<span class="verb">${verb(call) || call.tool}</span> ${last(first)}${rest}`;
}

/** Separates the cells for screen readers. */
const PAUSE = html`<span class="unseen">, </span>`;

/**
 * Returns the cells of a line.
 * @param {Call} call
 */
export const cells = (call) => html`
  <span class="when">${clockOf(call.time_ms)}</span>${mark(call)}<span class="about">${subject(call)}</span>
  <span class="who">${PAUSE}${call.client ? html`${parts.agentIcon(call.client, "small")}${parts.foreign(call.client)}` : nothing}</span>
  <span class="why" title=${why(call)}>${PAUSE}${why(call)}</span>`;

/**
 * Returns the cells of the line of several similar calls.
 * @param {Call[]} calls Newest first.
 * @param {boolean} isOpen
 */
export function manyCells(calls, isOpen) {
  const [call] = calls;
  if (!call) return nothing;
  return html`
    <span class="when">${clockOf(call.time_ms)}</span>${mark(call)}
    <span class="about">${parts.icon(isOpen ? "chevron-down" : "chevron-right")} <span class="verb">${several(calls.length, call)}</span> ${last(folder(call))}</span>
    <span class="who">${PAUSE}${call.client ? html`${parts.agentIcon(call.client, "small")}${parts.foreign(call.client)}` : nothing}</span>
    <span class="why" title=${why(call)}>${PAUSE}${why(call)}</span>`;
}
