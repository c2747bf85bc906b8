// The place of the keyboard when what had the focus is drawn anew, moves, goes away, or cannot be pressed any more.
//
// - It never falls back to the whole window: it stays, or goes to what stands there now, or to what stands before it.
// - Where a press began something that waits for another one, it goes to what leaves that: a key that is pressed twice does nothing.

const CONTROLS = "a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), textarea:not(:disabled), summary, [tabindex]";

/**
 * The controls in a part of the window, in order.
 * @param {Element} part
 */
export const controls = (part) => /** @type {HTMLElement[]} */ ([...part.querySelectorAll(CONTROLS)]);

/**
 * The button that leaves what was begun around a control.
 * @param {Element} on
 * @returns {HTMLElement | null | undefined}
 */
export const leaving = (on) => on.closest("[role='group']")?.querySelector("[data-leaves]");

/**
 * What has the focus can be reached still.
 * @param {Element} one
 */
export const isThere = (one) => one instanceof HTMLElement && one.isConnected && one.matches(CONTROLS) && one.checkVisibility();

/**
 * Notes what has the focus before a page is drawn. Returns what puts it where it belongs afterwards.
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
