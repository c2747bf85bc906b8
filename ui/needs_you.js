// What needs the user: open and expired questions, changed servers, servers that bypass IronCurtain, and autostart files.
//
// - Nothing here can allow a question. A reopened question is answered in its own dialog.

import { actButton } from "./action_button.js";
import { foundClients } from "./agent_connect.js";
import { bypassing } from "./agent_list.js";
import * as backend from "./backend.js";
import { html, nothing, repeat } from "./html.js";
import * as parts from "./parts.js";
import { redraw, state } from "./state.js";
import { HOME } from "./texts/home.js";
import { cut } from "./words.js";

/** @typedef {import("./types.js").MissedQuestion} MissedQuestion */

/** Number of rows shown initially. */
const MAX_ROWS = 5;
/** Maximum length of a question's text, in characters. The dialog shows the full text. */
const MAX_TEXT = 200;
let isWhole = false;

/** Returns the autostart files that await a decision. @param {import("./types.js").Snapshot} snapshot */
const leftFiles = ({ records }) => records.flatMap((one) => one.files).filter((file) => file.state === "left").length;

/** Returns the agents whose own servers bypass IronCurtain, as found by the last search. */
const past = () => foundClients().filter((one) => bypassing(one).length > 0);

/**
 * Returns the number of things that need the user.
 * @param {import("./types.js").Snapshot} snapshot
 */
export const needs = (snapshot) =>
  snapshot.waiting.length + snapshot.questions.missed.length + snapshot.changed_servers.length + snapshot.changed_tools.length + past().length + (leftFiles(snapshot) > 0 ? 1 : 0);

/**
 * Returns a row for each thing that needs the user, the most urgent first.
 * @param {import("./types.js").Snapshot} snapshot
 */
export function needsYou(snapshot) {
  const n = needs(snapshot);
  if (n === 0) return nothing;
  const { waiting, questions, changed_servers, changed_tools } = snapshot;
  const rows = [
    ...waiting.map((one, at) => ({ key: one.id, row: openRow(one, at) })),
    ...changed_servers.map((name) => ({ key: `server:${name}`, row: changedRow(name, HOME.serverChanged(name), HOME.serverBlocked) })),
    ...changed_tools.map((name) => ({ key: `tools:${name}`, row: changedRow(name, HOME.toolsChanged(name), HOME.toolsSuspended) })),
    ...past().map((one) => ({ key: `bypass:${one.id}`, row: bypassRow(one) })),
    // Approvals that still apply come before denied questions.
    ...questions.missed.toSorted((a, b) => Number(b.state === "allowed-late") - Number(a.state === "allowed-late")).map((one) => ({ key: one.id, row: missedRow(one) })),
    ...(leftFiles(snapshot) > 0 ? [{ key: "left", row: leftRow(leftFiles(snapshot)) }] : []),
  ];
  const shown = isWhole ? rows : rows.slice(0, MAX_ROWS);
  return html`
    ${parts.section(HOME.needsYou(n), rows.length > shown.length ? parts.button("needs:all", HOME.showAll, showAll, { kind: "plain" }) : nothing)}
    ${parts.group(repeat(shown, ({ key }) => key, ({ row }) => row))}
    ${questions.missed.some((one) => one.state === "missed") ? html`<p class="small quiet after">${HOME.missed}</p>` : nothing}`;
}

function showAll() {
  isWhole = true;
  redraw();
}

/**
 * @param {import("./types.js").Waiting} one
 * @param {number} at
 */
const openRow = (one, at) =>
  parts.row(
    html`${parts.title(parts.foreign(cut(one.sentence, MAX_TEXT)))}${parts.facts(one.line ? html`<span class="path">${parts.foreign(cut(one.line, MAX_TEXT))}</span>` : nothing, parts.time(one.expires_ms, "left"))}`,
    at === 0 ? parts.button("show", HOME.review, () => void backend.showQuestion(), { kind: "main", label: HOME.reviewLabel(one.sentence) }) : nothing,
    parts.icon("circle-question-mark", "asks"),
  );

/**
 * @param {string} name
 * @param {string} what
 * @param {string} effect
 */
const changedRow = (name, what, effect) =>
  parts.row(
    html`${parts.title(parts.foreign(what))}${parts.facts(effect)}`,
    html`<a class="button" href="#servers/installed/${encodeURIComponent(name)}" data-key="decide:${name}" aria-label=${HOME.decideLabel(name)}>${HOME.decide}</a>`,
    parts.icon("triangle-alert", "bad"),
  );

/** @param {import("./types.js").FoundClient} one */
const bypassRow = (one) =>
  parts.row(
    html`${parts.title(HOME.bypass(bypassing(one).length, one.name))}${parts.facts(parts.foreign(HOME.bypassText(bypassing(one).map((entry) => entry.name))))}`,
    html`<a class="button" href="#agents/${encodeURIComponent(one.name)}" data-key="protect:${one.id}" aria-label=${HOME.protectLabel(one.name)}>${HOME.protect}</a>`,
    parts.icon("shield-off", "bad"),
  );

/** @param {number} files */
const leftRow = (files) =>
  parts.row(
    html`${parts.title(HOME.left(files))}${parts.facts(HOME.leftText)}`,
    html`<a class="button" href="#agents" data-key="left" aria-label=${HOME.reviewLabel(HOME.left(files))}>${HOME.review}</a>`,
    parts.icon("file-warning", "asks"),
  );

/** @param {MissedQuestion} one */
const missedRow = (one) =>
  parts.row(
    html`
      <div class="title">${one.lines.map((line) => html`<span class="path">${parts.foreign(cut(shortened(line), MAX_TEXT))}</span>`)}</div>
      ${parts.facts(parts.pair(parts.foreign(one.client), one.server), one.kept_seconds === null ? nothing : parts.time(state.received_ms + one.kept_seconds * 1000, "left"))}
      ${one.state === "allowed-late" ? html`<p class="small good">${HOME.allowedLate}</p>` : nothing}
      ${one.state === "shown-again" ? html`<p class="small">${HOME.shownAgain}</p>` : nothing}`,
    html`${one.state === "missed" ? review(one) : nothing}${one.state === "shown-again" ? nothing : drop(one)}`,
    parts.icon(one.state === "allowed-late" ? "check" : "clock", one.state === "allowed-late" ? "good" : "asks"),
  );

/** Abbreviates the home directory within a line. @param {string} line */
const shortened = (line) => (state.snapshot ? line.replaceAll(`${state.snapshot.home}/`, "~/") : line);

/** @param {MissedQuestion} one */
const about = (one) => `${one.client}, ${one.lines[0] ?? one.server}`;

/** @param {MissedQuestion} one */
const review = (one) =>
  actButton({
    key: `again:${one.id}`,
    ready: HOME.review,
    label: HOME.reviewLabel(about(one)),
    going: HOME.reviewing,
    done: HOME.answered,
    failed: HOME.notAsked,
    again: true,
    act: () => backend.askAgain(one.id),
  });

/** @param {MissedQuestion} one */
function drop(one) {
  const allowed = one.state === "allowed-late";
  return actButton({
    key: `forget:${one.id}`,
    ready: allowed ? HOME.undo : parts.icon("x"),
    label: `${allowed ? HOME.undo : HOME.forget}: ${about(one)}`,
    going: allowed ? HOME.undoing : HOME.forgetting,
    done: allowed ? HOME.undone : HOME.forgotten,
    failed: allowed ? HOME.notUndone : HOME.notForgotten,
    kind: allowed ? "" : "bare",
    act: () => backend.forgetQuestion(one.id),
  });
}
