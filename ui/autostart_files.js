// Autostart files: files left by a session that the user's programs run later, each with Keep and Quarantine.

import { decideFile } from "./action_button.js";
import { html, nothing, repeat } from "./html.js";
import * as parts from "./parts.js";
import { count } from "./words.js";

/** @typedef {import("./types.js").LeftFile} LeftFile */

/**
 * Returns the list of one session, or nothing if it is empty.
 * @param {import("./types.js").SessionRecord | undefined} record
 */
export function autostartFiles(record) {
  if (!record || (record.files.length === 0 && record.unfinished.length === 0 && !record.looking)) return nothing;
  const waiting = record.files.filter((file) => file.state === "left").length;
  return html`
    <div class="left">
      <h3>${title(record, waiting)}</h3>
      ${waiting > 0 ? html`<p class="quiet small">Your own programs would run these files later. Keep the ones you asked for. Quarantine moves a file aside so that nothing runs it; nothing is deleted.</p>` : nothing}
      ${record.unfinished.map((why) => html`<p class="asks small" role="alert">Not all files could be checked: ${parts.foreign(why)}</p>`)}
      ${record.files.length > 0 ? parts.group(repeat(record.files, (file) => file.path, (file) => fileRow(record.id, file))) : nothing}
    </div>`;
}

/**
 * @param {import("./types.js").SessionRecord} record
 * @param {number} waiting
 */
function title(record, waiting) {
  const looking = record.looking ? " Still checking." : "";
  if (waiting === 0) return `No files of this session are waiting for you.${looking}`;
  return `This session left ${count(waiting, "file")} that can run code later.${looking}`;
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
      ${file.diff ? html`<details><summary data-key="diff:${session}:${file.path}">${file.is_new ? "What is in it" : "What changed"}</summary><pre tabindex="0">${file.diff}</pre></details>` : nothing}`,
    file.state === "left" ? decideFile(session, file) : nothing,
  );

/**
 * @param {LeftFile} file
 * @returns {string}
 */
function sentence(file) {
  const runs = `${file.is_new ? "New" : "Changed"}. It runs ${file.when}.`;
  switch (file.state) {
    case "left": return runs;
    case "kept": return `${runs} You keep it.`;
    case "quarantined": return file.moved_to ? `${runs} It was moved to quarantine, as listed below.` : `${runs} It was moved to quarantine, but no longer exists.`;
    case "returned": return `${runs} You put it back from quarantine.`;
    case "exchanged": return `${runs} You put it back from quarantine; the file it replaced is listed below.`;
    case "deleted": return `${file.is_new ? "New" : "Changed"}. You deleted it from quarantine.`;
    case "put-back": return `Git settings that start programs were changed; IronCurtain put them back: ${file.keys.join(", ")}.`;
  }
}
