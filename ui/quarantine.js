// Lists quarantined files by session, and restores or permanently deletes them.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { html, nothing, repeat } from "./html.js";
import { openable } from "./opened.js";
import * as parts from "./parts.js";
import { AGENTS } from "./texts/agents.js";

/** @typedef {import("./types.js").LeftFile} LeftFile */
/** @typedef {import("./types.js").SessionRecord} SessionRecord */

/**
 * @param {SessionRecord[]} sessions
 * @param {Set<string>} live Ids of the live sessions.
 */
export const quarantined = (sessions, live) =>
  sessions.length === 0 ? nothing : html`
    <section class="agent" aria-label=${AGENTS.inQuarantine}>
      ${parts.group(openable("quarantine", AGENTS.details(AGENTS.inQuarantine), {
        before: parts.icon("archive"),
        what: html`${parts.title(AGENTS.inQuarantine, html`<span class="count quiet">${sessions.reduce((n, one) => n + one.files.length, 0)}</span>`)}${parts.facts(AGENTS.inQuarantineText)}`,
      }, () => html`<p class="small quiet">${AGENTS.quarantineHelp}</p>${repeat(sessions, (one) => one.id, (one) => ofSession(one, live.has(one.id)))}`))}
    </section>`;

/**
 * @param {SessionRecord} one
 * @param {boolean} isLive
 */
const ofSession = (one, isLive) => html`
  <h3 class="some">${parts.pair(parts.client(one.client), one.server)} <span class="quiet small">${one.ended_ms === null ? AGENTS.sessionBegan : AGENTS.ended} ${parts.time(one.ended_ms ?? one.started_ms)}</span></h3>
  ${isLive ? parts.warning(AGENTS.stillActive) : nothing}
  ${parts.group(repeat(one.files, (file) => `${file.path} ${file.moved_to}`, (file) => row(one.id, file, isLive)), "some")}`;

/**
 * @param {string} session
 * @param {LeftFile} file
 * @param {boolean} isLive
 */
const row = (session, file, isLive) =>
  parts.row(
    html`
      ${parts.path(file.shown)}
      ${parts.facts(file.state === "exchanged" ? AGENTS.replaced : AGENTS.willRun(file.when), parts.time(file.time_ms))}
      ${file.occupied ? parts.warning(AGENTS.occupied) : nothing}
      ${file.diff ? html`<details><summary data-key="kept-diff:${session}:${file.path}">${file.is_new ? AGENTS.content : AGENTS.changes}</summary><pre tabindex="0">${file.diff}</pre></details>` : nothing}
      ${file.moved_to ? html`<div class="facts">${AGENTS.keptIn} ${parts.path(file.moved_to)}</div>` : nothing}`,
    html`
      ${actButton({
        key: `put-back:${session}:${file.path}`,
        ...AGENTS.putBack,
        label: AGENTS.putBackLabel(file.shown),
        again: true,
        off: isLive,
        says: AGENTS.putBackSays(file),
        act: () => backend.decideFile(session, file.path, file.occupied ? "exchange" : "put-back"),
      })}
      ${actButton({
        key: `delete-kept:${session}:${file.path}`,
        ...AGENTS.deleteKept,
        ready: parts.icon("trash-2"),
        yes: AGENTS.deleteKept.ready,
        label: AGENTS.deleteKeptLabel(file.shown),
        again: true,
        kind: "stop",
        says: AGENTS.deleteKeptSays(file.shown),
        act: () => backend.decideFile(session, file.path, "delete"),
      })}`,
  );
