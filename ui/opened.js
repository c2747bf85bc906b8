// Tracks the rows whose details are open, and opens the row that the address names.

import { opening } from "./parts.js";
import { redraw } from "./state.js";

/** @type {Set<string>} */
const open = new Set();
/** The address that was followed last, and the key of the row to scroll to. */
let followed = "";
let target = "";

/** @param {string} key */
export const isOpen = (key) => open.has(key);

/** @param {string} key */
export function show(key) {
  open.add(key);
  redraw();
}

/** @param {string} key */
export function toggle(key) {
  if (!open.delete(key)) open.add(key);
  redraw();
}

/**
 * Returns a row whose details open in place.
 * @param {string} key
 * @param {string} label Accessible name of the row's chevron.
 * @param {Parameters<typeof opening>[4]} shown
 * @param {Parameters<typeof opening>[5]} body
 */
export const openable = (key, label, shown, body) => opening(key, label, isOpen(key), () => toggle(key), shown, body);

/**
 * Opens the row that the address names, once.
 * @param {string} page
 * @param {string} part Part of the address after the page's id.
 * @param {string} key Key of the row; empty if the address names none.
 */
export function openFromAddress(page, part, key) {
  const address = `${page}/${part}`;
  if (address === followed) return;
  followed = address;
  if (key === "") return;
  open.add(key);
  target = key;
}

/** Scrolls to the row that the address names, once the row is drawn. */
export function scrollToOpened() {
  const control = target && document.querySelector(`[data-key="${CSS.escape(target)}"]`);
  if (!control) return;
  target = "";
  control.closest(".row")?.scrollIntoView({ block: "nearest" });
}
