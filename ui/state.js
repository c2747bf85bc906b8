// All that the window knows, and when it is drawn again.
//
// - A page is drawn once for any number of changes, in the next frame.
// - Nothing is drawn between a press and its release: what was pressed is what acts.

/**
 * @typedef {object} State
 * @property {import("./types.js").Snapshot | null} snapshot
 * @property {unknown} failure Why the app cannot be asked.
 * @property {string} focus Key of the control that gets the focus after the next drawing.
 */

/** @type {State} */
export const state = { snapshot: null, failure: null, focus: "" };

/** @type {() => void} */
let draw = () => {};
let due = false;
let pressed = false;
let late = false;

/**
 * Says how the window is drawn.
 * @param {() => void} how
 */
export function drawWith(how) {
  draw = how;
  addEventListener("pointerdown", () => (pressed = true), true);
  // The click comes after the release, and belongs to what was pressed.
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

/** Draws the window in the next frame. */
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
 * Draws the window, and gives the focus to a control.
 * @param {string} key
 */
export function focusOn(key) {
  state.focus = key;
  redraw();
}

/**
 * Tells screen readers what just happened.
 * @param {string} text
 */
export function say(text) {
  const said = document.getElementById("said");
  if (said) said.textContent = text;
}
