// Buttons that change something: what they say before, meanwhile and afterwards.
//
// - "Done" is said only after the app has answered that it is done.
// - Whatever takes away much, or gives, first says in a sentence what it will do, and asks for a second press.

import * as backend from "./backend.js";
import { html, nothing } from "./html.js";
import * as parts from "./parts.js";
import { focusOn, redraw, say } from "./state.js";

/**
 * @typedef {object} Act
 * @property {string} key
 * @property {string} ready The words on the button.
 * @property {string} going
 * @property {string} done
 * @property {string} failed
 * @property {string} [label] The button's name, where its words alone do not say what of.
 * @property {string} [says] What it will do: asked before it is done.
 * @property {string} [yes] The words of the second press, where they differ.
 * @property {string} [kind]
 * @property {boolean} [off]
 * @property {boolean} [again] It can be done again.
 * @property {() => Promise<unknown>} act
 */

/** @type {Map<string, { at: "ready" | "sure" | "going" | "done", problem?: string }>} */
const states = new Map();

/**
 * A button with everything it says.
 * @param {Act} act
 */
export function actButton(act) {
  const { key, ready, going, done, failed, label, says, kind, off } = act;
  const found = states.get(key) ?? { at: "ready" };
  if (found.at === "done" && !act.again) return html`<span class="badge allow" data-key=${key} tabindex="-1">${done}</span>`;
  if (found.at === "sure" && says) return sure(act, says);
  const busy = found.at === "going";
  const press = says ? () => begin(key) : () => run(act);
  return html`
    ${parts.button(key, busy ? going : ready, press, { label, kind, off, busy })}
    ${found.problem ? html`<span class="small bad" role="alert">${failed}: ${found.problem}</span>` : nothing}`;
}

/**
 * What was planned, shown whole before it is done, and the two ways on.
 * @param {string} label The panel's name.
 * @param {unknown} shown
 * @param {Act | null} act None where there is nothing to do.
 * @param {{ key: string, text: string, press: () => void }} leave
 */
export const planPanel = (label, shown, act, leave) => html`
  <div class="panel" role="group" aria-label=${label}>
    ${shown}
    <div class="both start">
      ${act ? actButton({ ...act, again: true, kind: "main" }) : nothing}
      ${parts.button(leave.key, leave.text, leave.press, { leaves: true })}
    </div>
  </div>`;

/** @param {string} key */
function begin(key) {
  states.set(key, { at: "sure" });
  focusOn(`${key}:no`);
}

/**
 * The sentence, and the two ways on. Leaving it has the focus.
 * @param {Act} act
 * @param {string} says
 */
function sure(act, says) {
  const leave = () => {
    states.delete(act.key);
    focusOn(act.key);
  };
  return html`
    <div class="sure" role="group" aria-label=${says}>
      <p>${says}</p>
      <div class="both">
        ${parts.button(`${act.key}:no`, "Leave it", leave, { leaves: true })}
        ${parts.button(`${act.key}:yes`, act.yes ?? act.ready, () => run(act), { kind: act.kind ?? "main" })}
      </div>
    </div>`;
}

/** @param {Act} act */
async function run({ key, act, done, failed, label, ready }) {
  states.set(key, { at: "going" });
  redraw();
  const what = label ?? ready;
  try {
    await act();
    states.set(key, { at: "done" });
    say(`${done}: ${what}`);
  } catch (failure) {
    states.set(key, { at: "ready", problem: backend.sentence(failure) });
    say(`${failed}: ${what}`);
  }
  redraw();
}

/**
 * Forgets what became of an act, so that it can be done anew.
 * @param {string} key
 */
export const forget = (key) => states.delete(key);

/**
 * @param {import("./types.js").Session} session
 */
export const endSession = (session) =>
  actButton({
    key: `end:${session.id}`,
    ready: "End session",
    going: "Ending\u2026",
    done: "Ended",
    failed: "Not ended",
    label: `End session of ${session.client.name} with ${session.server}`,
    act: () => backend.endSession(session.id),
  });

/**
 * @param {import("./types.js").Session} session
 */
export const restartServer = (session) =>
  actButton({
    key: `restart:${session.id}`,
    ready: "Restart its server",
    going: "Restarting\u2026",
    done: "Restarted",
    failed: "Not restarted",
    label: `Restart its server: ${session.server} of ${session.client.name}`,
    again: true,
    says: `The process of ${session.server} is ended and started again. Calls under way fail; the session and what you granted stay.`,
    act: () => backend.restartServer(session.id),
  });

/**
 * Keep and Quarantine of a file that a session left.
 * @param {string} session
 * @param {import("./types.js").LeftFile} file
 */
export const decideLeft = (session, file) => html`
  <div class="both">
    ${actButton({
      key: `keep:${session}:${file.path}`,
      ready: "Keep",
      going: "Keeping\u2026",
      done: "Kept",
      failed: "Not kept",
      label: `Keep ${file.shown}`,
      act: () => backend.decideLeft(session, file.path, "keep"),
    })}
    ${actButton({
      key: `quarantine:${session}:${file.path}`,
      ready: "Quarantine",
      going: "Moving\u2026",
      done: "In quarantine",
      failed: "Not moved",
      label: `Quarantine ${file.shown}`,
      act: () => backend.decideLeft(session, file.path, "quarantine"),
    })}
  </div>`;
