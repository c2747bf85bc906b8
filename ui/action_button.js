// Buttons that run an action and show its progress and result.
//
// - An action counts as done only after the app has confirmed it.
// - An action that revokes a lot, or grants something, first explains itself and requires a second press. If the explanation
//   changes, the confirmation closes.
// - The result of an action is forgotten once its button is no longer drawn. A failure is then shown at the top of the page.

import * as backend from "./backend.js";
import { addFailure } from "./failures.js";
import { html, nothing } from "./html.js";
import * as parts from "./parts.js";
import { isCurrentPlan, planVersion } from "./plan_slots.js";
import { focusOn, redraw, say } from "./state.js";
import { SHARED } from "./texts/shared.js";

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
 * @property {string} [writes] Kind of the plan that the action writes.
 * @property {() => Promise<unknown>} act Resolves to `CANCELLED` if the user cancelled the action while it ran.
 */

/**
 * @typedef {object} ActionState
 * @property {"ready" | "sure" | "going" | "done"} at
 * @property {string} [says] Explanation that is being confirmed.
 * @property {string} [problem]
 * @property {string} [unseen] Failure that has not been drawn yet, as a complete sentence.
 */

/** Result of an action that the user cancelled. */
export const CANCELLED = Symbol("cancelled");

/** @type {Map<string, ActionState>} */
const states = new Map();
/** Keys of the buttons in the latest drawing. @type {Set<string>} */
const drawn = new Set();

/**
 * Draws the page, then discards the results of buttons that were not drawn. A button that appears again has no result.
 * @param {() => void} draw
 */
export function drawingButtons(draw) {
  drawn.clear();
  draw();
  for (const [key, { at, unseen }] of states) {
    if (at === "going" || drawn.has(key)) continue;
    states.delete(key);
    if (unseen) addFailure(unseen);
  }
}

/**
 * Returns a button with its progress, result or confirmation.
 * @param {Act} act
 */
export function actButton(act) {
  const { key, ready, going, done, failed, label, says, kind, off } = act;
  /** @type {ActionState} */
  const found = states.get(key) ?? { at: "ready" };
  drawn.add(key);
  found.unseen = undefined;
  if (found.at === "done" && !act.again) return html`<span class="badge allow" data-key=${key} tabindex="-1">${done}</span>`;
  const plan = act.writes === undefined ? 0 : planVersion(act.writes);
  if (found.at === "sure" && says && found.says === says) return sure(act, says, plan);
  const busy = found.at === "going";
  const press = says ? () => begin(key, says) : () => run(act, plan);
  return html`
    ${parts.button(key, busy ? going : ready, press, { label, kind, off, busy })}
    ${found.problem ? html`<span class="small bad" role="alert">${failed}: ${parts.coded(found.problem)}</span>` : nothing}`;
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

/**
 * Starts the confirmation of an action.
 * @param {string} key
 * @param {string} says
 */
export function begin(key, says) {
  states.set(key, { at: "sure", says });
  focusOn(`${key}:no`);
}

/**
 * Returns the confirmation of an action that another control starts, or nothing.
 * @param {Act & { says: string }} act
 * @param {string} control Key of that control, which gets the focus after Cancel.
 */
export function confirmation(act, control) {
  drawn.add(act.key);
  const found = states.get(act.key);
  // The other control shows a failure.
  if (found) found.unseen = undefined;
  return found?.at === "sure" ? sure(act, act.says, 0, control) : nothing;
}

/**
 * Returns the confirmation of an action. Cancel has the focus.
 * @param {Act} act
 * @param {string} says
 * @param {number} plan
 * @param {string} [control] Key of the control that gets the focus after Cancel.
 */
function sure(act, says, plan, control = act.key) {
  const leave = () => {
    states.delete(act.key);
    focusOn(control);
  };
  return html`
    <div class="sure" role="group" aria-label=${says}>
      <p>${says}</p>
      <div class="both">
        ${parts.button(`${act.key}:no`, SHARED.cancel, leave, { leaves: true })}
        ${parts.button(`${act.key}:yes`, act.yes ?? act.ready, () => run(act, plan), { kind: act.kind ?? "main" })}
      </div>
    </div>`;
}

/** @param {Act} action @param {number} plan Version of the plan that was drawn. */
async function run({ key, act, done, failed, label, ready, writes }, plan) {
  // The drawn button stays pressable until the next frame.
  if (states.get(key)?.at === "going") return;
  states.set(key, { at: "going" });
  redraw();
  const what = label ?? ready;
  try {
    if (writes !== undefined && !isCurrentPlan(writes, plan)) throw new Error(SHARED.planChanged);
    const result = await act();
    if (result === CANCELLED) {
      states.delete(key);
    } else {
      states.set(key, { at: "done" });
      say(`${done}: ${what}`);
    }
  } catch (failure) {
    const problem = backend.sentence(failure);
    states.set(key, { at: "ready", problem, unseen: `${failed}: ${typeof what === "string" ? `${what}: ` : ""}${problem}` });
    say(`${failed}: ${what}`);
  }
  redraw();
}

/**
 * Resets an action, so that it can run again.
 * @param {string} key
 */
export const forget = (key) => states.delete(key);
