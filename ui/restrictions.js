// Lockdown, pauses, session denials and expired questions.
//
// - Nothing here allows. A reopened question is answered in its own dialog, and lifting a restriction grants nothing.

import { actButton, forget } from "./action_button.js";
import * as backend from "./backend.js";
import { html, nothing, repeat } from "./html.js";
import * as parts from "./parts.js";
import { focusOn } from "./state.js";

/** @typedef {import("./types.js").MissedQuestion} MissedQuestion */
/** @typedef {import("./types.js").Denial} Denial */

/**
 * Returns the lockdown buttons. Locking down needs no confirmation, because it is an emergency brake.
 * @param {import("./types.js").Status} status
 */
export const lockdown = ({ lockdown: on, sessions }) => html`
  ${on ? parts.button("lockdown-on", "Locked down", () => {}, { off: true }) : lockDown()}
  ${on ? undo() : nothing}
  ${sessions > 0 ? lockDownAndEnd() : nothing}`;

const lockDown = () =>
  actButton({
    key: "lockdown",
    ready: "Lock down",
    going: "Locking\u2026",
    done: "Locked down",
    failed: "Not locked down",
    again: true,
    kind: "stop",
    act: async () => {
      await backend.lockDown(true, false);
      focusOn("lockdown-off");
    },
  });

const undo = () =>
  actButton({
    key: "lockdown-off",
    ready: "Undo",
    label: "Undo lockdown",
    going: "Undoing\u2026",
    done: "Lockdown ended",
    failed: "Not undone",
    again: true,
    act: () => backend.lockDown(false, false),
  });

const lockDownAndEnd = () =>
  actButton({
    key: "lockdown-end",
    ready: "Lock down and end all sessions",
    going: "Locking\u2026",
    done: "Locked down",
    failed: "Not locked down",
    again: true,
    says: "All servers are stopped and their sessions' permissions end. Agents that restart a server can do what rules and standing permissions allow, and nothing that would ask you.",
    act: () => backend.lockDown(true, true),
  });

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

/** @param {MissedQuestion[]} missed */
export const missedRows = (missed) =>
  missed.length === 0 ? nothing : html`
    <h2>Nobody answered in time</h2>
    <p class="lead-in quiet">You didn't answer in time, so these were denied. If the agent tries again, you'll be asked again.</p>
    ${parts.group(repeat(missed, (one) => one.id, missedRow))}`;

/** @param {MissedQuestion} one */
const missedRow = (one) =>
  parts.row(
    html`
      <div>${parts.pair(parts.client(one.client), one.server)}</div>
      ${one.lines.map((line) => html`<div class="path">${parts.foreign(line)}</div>`)}
      ${parts.facts(parts.foreign(one.reason), keptFor(one))}
      ${one.state === "allowed-late" ? html`<p class="small">You allowed it. If the agent repeats exactly this call, it runs once.</p>` : nothing}
      ${one.state === "shown-again" ? html`<p class="small">The question is open in its own window.</p>` : nothing}`,
    html`${one.state === "missed" ? decide(one) : nothing}${one.state === "shown-again" ? nothing : drop(one)}`,
  );

/** @param {MissedQuestion} one */
const keptFor = ({ kept_seconds: left }) => (left === null ? nothing : left < 60 ? "expires in less than a minute" : `expires in ${Math.ceil(left / 60)} min`);

/** @param {MissedQuestion} one */
const decide = (one) =>
  actButton({
    key: `again:${one.id}`,
    ready: "Ask me now",
    label: `Ask me now: ${one.client}, ${one.lines[0] ?? one.server}`,
    going: "Asking you\u2026",
    done: "Answered",
    failed: "Not asked",
    again: true,
    act: () => backend.askAgain(one.id),
  });

/** @param {MissedQuestion} one */
function drop(one) {
  const allowed = one.state === "allowed-late";
  return actButton({
    key: `forget:${one.id}`,
    ready: allowed ? "Undo my yes" : "Forget it",
    label: `${allowed ? "Undo my yes" : "Forget it"}: ${one.client}, ${one.lines[0] ?? one.server}`,
    going: allowed ? "Revoking\u2026" : "Forgetting\u2026",
    done: allowed ? "Revoked" : "Forgotten",
    failed: allowed ? "Not revoked" : "Not forgotten",
    act: () => backend.forgetQuestion(one.id),
  });
}

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
