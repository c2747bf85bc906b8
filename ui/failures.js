// Failures of actions whose button is no longer drawn, such as in a closed menu or on another page. Each failure stays in
// view until the user dismisses it.

import { html, nothing, repeat } from "./html.js";
import * as parts from "./parts.js";
import { redraw } from "./state.js";
import { SHARED } from "./texts/shared.js";

/** @type {{ id: number, text: string }[]} */
let failures = [];
let next = 0;

/** Shows a failure. @param {string} text */
export function addFailure(text) {
  failures = [...failures, { id: next, text }];
  next += 1;
  redraw();
}

/** Returns the failures, newest last. */
export const failureList = () =>
  failures.length === 0 ? nothing : html`
    <div class="failures">${repeat(failures, ({ id }) => id, ({ id, text }) => html`
      <div class="card bad-card" role="alert">
        <p class="bad">${parts.icon("triangle-alert")} ${parts.coded(text)}</p>
        ${parts.iconButton(`failure:${id}`, "x", SHARED.dismiss, () => dismiss(id))}
      </div>`)}</div>`;

/** @param {number} id */
function dismiss(id) {
  failures = failures.filter((one) => one.id !== id);
  redraw();
}
