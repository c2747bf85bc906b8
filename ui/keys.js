// Keys beside Tab: the arrows go from row to row and from page to page, Home and End to the first and the last, and Escape
// leaves what was begun.
//
// - A field, a list to choose from and a text to scroll keep the keys that they have by themselves.

import { controls, isThere, leaving } from "./focus.js";

const OWN_KEYS = "input:not([type='checkbox']), select, textarea, pre";

/** @type {Record<string, (at: number, last: number) => number>} */
const STEPS = {
  ArrowDown: (at, last) => Math.min(at + 1, last),
  ArrowUp: (at) => Math.max(at - 1, 0),
  Home: () => 0,
  End: (_, last) => last,
};

/** Follows the keys of the window. */
export function followKeys() {
  addEventListener("keydown", (event) => {
    const on = event.target;
    if (!(on instanceof HTMLElement) || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.isComposing) return;
    const to = event.key === "Escape" ? leaving(on) : on.matches(OWN_KEYS) ? undefined : stepped(on, event.key);
    if (!to) return;
    event.preventDefault();
    if (event.key === "Escape") to.click();
    else to.focus();
  });
}

/**
 * The control that a key leads to: the same one of another row, or its first.
 * @param {HTMLElement} on
 * @param {string} key
 */
function stepped(on, key) {
  const step = STEPS[key];
  const line = on.closest("nav li, main .row");
  if (!step || !line) return undefined;
  const lines = [...document.querySelectorAll(line.matches("li") ? "nav li" : "main .row")].filter((one) => controls(one).some(isThere));
  const there = lines[step(lines.indexOf(line), lines.length - 1)];
  if (!there || there === line) return undefined;
  const all = controls(there).filter(isThere);
  return all.find((one) => kind(one) === kind(on)) ?? all[0];
}

/**
 * The beginning of a control's key, which says what it does.
 * @param {HTMLElement} one
 */
const kind = (one) => one.dataset.key?.split(":")[0];
