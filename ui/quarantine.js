// Files in quarantine, by session, with restoring and permanently deleting them.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { html, nothing, repeat } from "./html.js";
import * as parts from "./parts.js";
import { putBackWords } from "./sentences.js";

/** @typedef {import("./types.js").LeftFile} LeftFile */
/** @typedef {import("./types.js").SessionRecord} SessionRecord */

/**
 * @param {SessionRecord[]} sessions
 * @param {Set<string>} live Ids of the live sessions.
 */
export const quarantined = (sessions, live) =>
  sessions.length === 0 ? nothing : html`
    <section aria-label="In quarantine" id="quarantine">
      <h2>In quarantine</h2>
      <p class="lead-in quiet">Your own programs would run these files, so they were moved aside. Put back only the ones you asked for.</p>
      ${repeat(sessions, (one) => one.id, (one) => ofSession(one, live.has(one.id)))}
    </section>`;

/**
 * @param {SessionRecord} one
 * @param {boolean} isLive
 */
const ofSession = (one, isLive) => html`
  <h3>${parts.pair(parts.client(one.client), one.server)} <span class="quiet small">${one.ended_ms === null ? "began" : "ended"} ${parts.time(one.ended_ms ?? one.started_ms)}</span></h3>
  ${isLive ? html`<p class="small asks">\u26a0 This session is still active: its server could change a file again after you put it back. End the session first.</p>` : nothing}
  ${parts.group(repeat(one.files, (file) => `${file.path} ${file.moved_to}`, (file) => row(one.id, file, isLive)))}`;

/**
 * @param {string} session
 * @param {LeftFile} file
 * @param {boolean} isLive
 */
const row = (session, file, isLive) =>
  parts.row(
    html`
      ${parts.path(file.shown)}
      ${parts.facts(file.state === "exchanged" ? "This file was replaced when you put the other one back." : `It runs ${file.when}.`, parts.time(file.time_ms))}
      ${file.occupied ? parts.warning("There is another file in its place now.") : nothing}
      ${file.diff ? html`<details><summary data-key="kept-diff:${session}:${file.path}">${file.is_new ? "What is in it" : "What changed"}</summary><pre tabindex="0">${file.diff}</pre></details>` : nothing}
      ${file.moved_to ? html`<div class="facts">kept in ${parts.path(file.moved_to)}</div>` : nothing}`,
    html`
      ${actButton({
        key: `put-back:${session}:${file.path}`,
        ready: "Put back",
        label: `Put back ${file.shown}`,
        going: "Putting back\u2026",
        done: "Put back",
        failed: "Not put back",
        again: true,
        off: isLive,
        says: putBackWords(file),
        act: () => backend.decideFile(session, file.path, file.occupied ? "exchange" : "put-back"),
      })}
      ${actButton({
        key: `delete-kept:${session}:${file.path}`,
        ready: "Delete",
        label: `Delete ${file.shown} from quarantine`,
        going: "Deleting\u2026",
        done: "Deleted",
        failed: "Not deleted",
        again: true,
        says: `${file.shown} will be deleted permanently.`,
        act: () => backend.decideFile(session, file.path, "delete"),
      })}`,
  );
