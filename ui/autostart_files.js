// Autostart files: files left by a session that the user's programs run later. Each can be kept or quarantined.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { html, nothing, repeat } from "./html.js";
import { isOpen, openable, toggle } from "./opened.js";
import * as parts from "./parts.js";
import { AGENTS } from "./texts/agents.js";

/** @typedef {import("./types.js").LeftFile} LeftFile */

/**
 * Returns the row of a session's files, or nothing if there are none.
 * @param {import("./types.js").SessionRecord | undefined} record
 */
export function autostartFiles(record) {
  if (!record || (record.files.length === 0 && record.unfinished.length === 0 && !record.looking)) return nothing;
  const { id, server, files, looking, ended_ms, unfinished } = record;
  const waiting = files.filter((file) => file.state === "left").length;
  const key = `files:${id}`;
  const name = AGENTS.filesOf(waiting || files.length, server);
  return openable(key, AGENTS.details(name), {
    before: parts.icon(waiting > 0 ? "file-warning" : "file", waiting > 0 ? "asks" : ""),
    what: html`
      ${parts.title(waiting > 0 ? AGENTS.files(waiting) : AGENTS.filesDone, looking ? parts.chip(AGENTS.checking) : nothing)}
      ${parts.facts(parts.foreign(server), ended_ms === null ? nothing : html`${AGENTS.ended} ${parts.time(ended_ms)}`, waiting > 0 ? AGENTS.filesText : nothing)}
      ${unfinished.map((why) => html`<p class="asks small" role="alert">${AGENTS.unfinished(why)}</p>`)}`,
    act: waiting > 0 && !isOpen(key) ? parts.button(`review:${id}`, AGENTS.review, () => toggle(key), { label: AGENTS.reviewLabel(name), kind: "main" }) : nothing,
  }, () => html`
    ${waiting > 0 ? html`<p class="quiet small">${AGENTS.filesHelp}</p>` : nothing}
    ${parts.group(repeat(files, (file) => file.path, (file) => fileRow(id, file)), "some")}`);
}

/**
 * @param {string} session
 * @param {LeftFile} file
 */
const fileRow = (session, file) =>
  parts.row(
    html`
      ${parts.path(file.shown)}
      ${parts.facts(sentence(file), parts.time(file.time_ms))}
      ${file.diff ? html`<details><summary data-key="diff:${session}:${file.path}">${file.is_new ? AGENTS.content : AGENTS.changes}</summary><pre tabindex="0">${file.diff}</pre></details>` : nothing}`,
    file.state === "left" ? html`${decision(session, file, "keep", AGENTS.keep, AGENTS.keepLabel)}${decision(session, file, "quarantine", AGENTS.quarantine, AGENTS.quarantineLabel)}` : nothing,
  );

/**
 * Returns the button for a decision about a file.
 * @param {string} session
 * @param {LeftFile} file
 * @param {"keep" | "quarantine"} choice
 * @param {typeof AGENTS.keep} texts
 * @param {(file: string) => string} label
 */
const decision = (session, file, choice, texts, label) =>
  actButton({ key: `${choice}:${session}:${file.path}`, ...texts, label: label(file.shown), act: () => backend.decideFile(session, file.path, choice) });

/**
 * @param {LeftFile} file
 * @returns {string}
 */
function sentence(file) {
  const runs = AGENTS.runs(file.is_new, file.when);
  switch (file.state) {
    case "left": return runs;
    case "kept": return `${runs} ${AGENTS.kept}`;
    case "quarantined": return `${runs} ${file.moved_to ? AGENTS.moved : AGENTS.movedAndGone}`;
    case "returned": return `${runs} ${AGENTS.returned}`;
    case "exchanged": return `${runs} ${AGENTS.exchanged}`;
    case "deleted": return AGENTS.deleted(file.is_new);
    case "put-back": return AGENTS.putBackKeys(file.keys);
  }
}
