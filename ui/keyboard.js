// Keyboard navigation besides Tab: the arrows move between rows and pages, Home and End go to the first and last, and Escape
// cancels.
//
// - Text fields, select boxes, lists, the strip, handles and scrolling texts keep their own keys.

import { controls, isThere, leaving } from "./focus.js";

const OWN_KEYS = "input:not([type='checkbox']), select, textarea, pre, [role='listbox'], [role='slider'], .handle";

/** @type {Record<string, (at: number, last: number) => number>} */
const STEPS = {
  ArrowDown: (at, last) => Math.min(at + 1, last),
  ArrowUp: (at) => Math.max(at - 1, 0),
  Home: () => 0,
  End: (_, last) => last,
};

/** Starts handling the window's keys. */
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
 * Returns the control that a key moves to: the same control in another row, or the first control in that row.
 * @param {HTMLElement} on
 * @param {string} key
 */
function stepped(on, key) {
  const step = STEPS[key];
  const items = on.closest("[data-menu]");
  if (step && items) {
    const all = controls(items).filter(isThere);
    return all[step(all.indexOf(on), all.length - 1)];
  }
  const line = on.closest("#nav li, main .row");
  if (!step || !line) return undefined;
  const lines = [...document.querySelectorAll(line.matches("li") ? "#nav li" : "main .row")].filter((one) => controls(one).some(isThere));
  const target = lines[step(lines.indexOf(line), lines.length - 1)];
  if (!target || target === line) return undefined;
  const all = controls(target).filter(isThere);
  return all.find((one) => kind(one) === kind(on)) ?? all[0];
}

/**
 * Returns the start of a control's key, which identifies its action.
 * @param {HTMLElement} one
 */
const kind = (one) => one.dataset.key?.split(":")[0];
