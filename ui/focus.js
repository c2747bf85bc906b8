// Keeps the keyboard focus in place when the focused control is redrawn, moved, removed or disabled.
//
// - The focus never falls back to the whole window: it stays, or moves to the control that is now at its position or
//   before it.
// - After a press that requires confirmation, the focus moves to Cancel, so that pressing a key twice has no effect.

const CONTROLS = "a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), textarea:not(:disabled), summary, [tabindex]";

/**
 * Returns the controls in a part of the window, in order.
 * @param {Element} part
 */
export const controls = (part) => /** @type {HTMLElement[]} */ ([...part.querySelectorAll(CONTROLS)]);

/**
 * Returns the Cancel button of the group around a control.
 * @param {Element} on
 * @returns {HTMLElement | null | undefined}
 */
export const leaving = (on) => on.closest("[role='group']")?.querySelector("[data-leaves]");

/**
 * Returns whether a control can still have the focus.
 * @param {Element} one
 */
export const isThere = (one) => one instanceof HTMLElement && one.isConnected && one.matches(CONTROLS) && one.checkVisibility();

/**
 * Records the focus before a redraw. Returns a function that restores it afterwards.
 * @param {HTMLElement} page
 * @returns {() => void}
 */
export function keptFocus(page) {
  const had = document.activeElement;
  if (!(had instanceof HTMLElement) || had === page || !page.contains(had)) return () => {};
  const { key } = had.dataset;
  const before = controls(page);
  const earlier = before.slice(0, Math.max(0, before.indexOf(had))).reverse();
  return () => {
    if (document.activeElement === had && isThere(had)) return;
    const now = controls(page);
    const same = key === undefined ? undefined : now.find((one) => one.dataset.key === key && isThere(one));
    const last = earlier.find(isThere);
    const next = now.slice(last ? now.indexOf(last) + 1 : 0).find(isThere);
    const begun = now.find((one) => "leaves" in one.dataset && !before.includes(one) && isThere(one));
    (same ?? begun ?? next ?? last ?? page).focus();
  };
}
