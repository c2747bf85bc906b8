// Pauses and session denials.
//
// - Nothing here allows: lifting a restriction grants nothing.

import { actButton, forget } from "./action_button.js";
import * as backend from "./backend.js";
import { html, nothing, repeat } from "./html.js";
import * as parts from "./parts.js";

/** @typedef {import("./types.js").Denial} Denial */

/**
 * Returns the button that pauses or resumes a session.
 * @param {import("./types.js").Session} session
 */
export const pause = (session) =>
  actButton({
    key: `${session.paused ? "resume" : "pause"}:${session.id}`,
    ready: session.paused ? "Resume" : "Pause",
    label: `${session.paused ? "Resume" : "Pause"} ${session.client.name} with ${session.server}`,
    going: session.paused ? "Resuming\u2026" : "Pausing\u2026",
    done: session.paused ? "Resumed" : "Paused",
    failed: session.paused ? "Not resumed" : "Not paused",
    again: true,
    act: async () => {
      await backend.pauseSession(session.id, !session.paused);
      forget(`${session.paused ? "pause" : "resume"}:${session.id}`);
    },
  });

/**
 * Returns the denials that last until the session ends.
 * @param {Denial[]} denied
 */
export const denials = (denied) =>
  denied.length === 0 ? nothing : html`
    <div class="left">
      <h3>Denied until this session ends</h3>
      ${parts.group(repeat(denied, (one) => one.id, denialRow))}
    </div>`;

/** @param {Denial} one */
const denialRow = (one) =>
  parts.row(
    html`<div>${parts.foreign(one.what)}</div>${parts.facts(html`you said no ${parts.time(one.time_ms)}`, one.note ? html`\u201c${parts.foreign(one.note)}\u201d` : nothing)}`,
    askMeAgain(`undeny:${one.id}`, one.what, () => backend.forgetQuestion(one.id)),
  );

/**
 * Returns the button that undoes a denial.
 * @param {string} key
 * @param {string} what
 * @param {() => Promise<void>} act
 */
export const askMeAgain = (key, what, act) =>
  actButton({
    key,
    ready: "Ask me again",
    label: `Ask me again about ${what}`,
    going: "Undoing\u2026",
    done: "You are asked again",
    failed: "Your no was not undone",
    act,
  });
