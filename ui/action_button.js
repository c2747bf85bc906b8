// Buttons that run an action and show its progress and result.
//
// - An action counts as done only after the app has confirmed it.
// - An action that revokes a lot, or grants something, first explains itself and requires a second press.

import * as backend from "./backend.js";
import { html, nothing } from "./html.js";
import * as parts from "./parts.js";
import { focusOn, redraw, say } from "./state.js";

/**
 * @typedef {object} Act
 * @property {string} key
 * @property {unknown} ready Label of the button; needs an accessible name if it is an icon.
 * @property {string} going
 * @property {string} done
 * @property {string} failed
 * @property {string} [label] Accessible name, if the label alone is ambiguous.
 * @property {string} [says] Explanation shown for confirmation before the action runs.
 * @property {string} [yes] Label of the confirming button, if it differs.
 * @property {string} [kind]
 * @property {boolean} [off]
 * @property {boolean} [again] The action can be repeated.
 * @property {() => Promise<unknown>} act
 */

/** @type {Map<string, { at: "ready" | "sure" | "going" | "done", problem?: string }>} */
const states = new Map();

/**
 * Returns a button with its progress, result or confirmation.
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
 * Returns a panel that shows a plan, with buttons to apply or cancel it.
 * @param {string} label Accessible name of the panel.
 * @param {unknown} shown
 * @param {Act | null} act Null if there is nothing to do.
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
 * Returns the confirmation of an action. Cancel has the focus.
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
        ${parts.button(`${act.key}:no`, "Cancel", leave, { leaves: true })}
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
 * Resets an action, so that it can run again.
 * @param {string} key
 */
export const forget = (key) => states.delete(key);
