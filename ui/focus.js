// The place of the keyboard when what had the focus is drawn anew, moves, goes away, or cannot be pressed any more.
//
// - It never falls back to the whole window: it stays, or goes to what stands there now, or to what stands before it.

const CONTROLS = "a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), textarea:not(:disabled), summary, [tabindex]";

/**
 * What has the focus can be reached still.
 * @param {Element} one
 */
const isThere = (one) => one instanceof HTMLElement && one.isConnected && one.matches(CONTROLS) && one.checkVisibility();

/**
 * Notes what has the focus before a page is drawn. Returns what puts it where it belongs afterwards.
 * @param {HTMLElement} page
 * @returns {() => void}
 */
export function keptFocus(page) {
  const had = document.activeElement;
  if (!(had instanceof HTMLElement) || had === page || !page.contains(had)) return () => {};
  const { key } = had.dataset;
  const before = [...page.querySelectorAll(CONTROLS)];
  const earlier = before.slice(0, Math.max(0, before.indexOf(had))).reverse();
  return () => {
    if (document.activeElement === had && isThere(had)) return;
    const now = /** @type {HTMLElement[]} */ ([...page.querySelectorAll(CONTROLS)]);
    const same = key === undefined ? undefined : now.find((one) => one.dataset.key === key && isThere(one));
    const last = /** @type {HTMLElement | undefined} */ (earlier.find(isThere));
    const next = now.slice(last ? now.indexOf(last) + 1 : 0).find(isThere);
    (same ?? next ?? last ?? page).focus();
  };
}
