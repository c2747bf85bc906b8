// The state of the window, and scheduling of redraws.
//
// - Any number of changes leads to one redraw, in the next frame.
// - Nothing is redrawn between a press and its release, so that the pressed control is the one that acts.

/**
 * @typedef {object} State
 * @property {import("./types.js").Snapshot | null} snapshot
 * @property {number} received_ms Time at which the snapshot was received.
 * @property {unknown} failure Reason why the app does not respond.
 * @property {string} focus Key of the control that gets the focus after the next redraw.
 */

/** @type {State} */
export const state = { snapshot: null, received_ms: 0, failure: null, focus: "" };

/** @type {() => void} */
let draw = () => {};
let due = false;
let pressed = false;
let late = false;

/**
 * Sets the function that draws the window.
 * @param {() => void} how
 */
export function drawWith(how) {
  draw = how;
  addEventListener("pointerdown", () => (pressed = true), true);
  // The click event follows the release and belongs to the pressed control.
  const released = () => setTimeout(release, 0);
  addEventListener("pointerup", released, true);
  addEventListener("pointercancel", released, true);
  addEventListener("blur", released);
}

function release() {
  pressed = false;
  if (late) redraw();
  late = false;
}

/** Redraws the window in the next frame. */
export function redraw() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    if (pressed) late = true;
    else draw();
  });
}

/**
 * Redraws the window and focuses a control.
 * @param {string} key
 */
export function focusOn(key) {
  state.focus = key;
  redraw();
}

/**
 * Announces a text to screen readers.
 * @param {string} text
 */
export function say(text) {
  const said = document.getElementById("said");
  if (said) said.textContent = text;
}
