// The menu behind a "…" button. At most one menu is open.
//
// - Its items are buttons of any kind. They show confirmations and progress in the menu.
// - Escape, a press elsewhere, and moving the focus out of the menu close it. The arrow keys move between its items.

import { html, nothing } from "./html.js";
import { icon } from "./icon.js";
import { focusOn, redraw } from "./state.js";

let open = "";

/** @param {string} key */
function turn(key) {
  const isLeft = open === key && document.activeElement?.closest("[data-menu]") !== null;
  open = open === key ? "" : key;
  // The focus moves to the menu's button.
  if (isLeft) focusOn(key);
  else redraw();
}

/** Closes the open menu, for an item that leads elsewhere. */
export function closeMenu() {
  if (open) turn(open);
}

/**
 * Returns a button with its menu.
 * @param {string} key
 * @param {string} label Accessible name, such as "More about git".
 * @param {() => unknown} items Buttons, drawn only while the menu is open.
 * @param {{ text?: unknown, kind?: string, up?: boolean }} [more] `text` replaces the three dots; `up` opens it above.
 */
export const menu = (key, label, items, { text = icon("ellipsis"), kind = "bare", up = false } = {}) => {
  const isOpen = open === key;
  return html`
    <div class="menu ${up ? "up" : ""}" role="group" aria-label=${label} data-menu=${key}>
      <button type="button" class=${kind} data-key=${key} aria-label=${label} aria-expanded=${String(isOpen)} ?data-leaves=${isOpen} @click=${() => turn(key)}>${text}</button>
      ${isOpen ? html`<div class="menu-items">${items()}</div>` : nothing}
    </div>`;
};

/** Starts closing the menu when the pointer or the focus goes elsewhere. */
export function followMenus() {
  const elsewhere = (/** @type {Event} */ { target }) => {
    if (!open || !(target instanceof Element) || target.closest("[data-menu]")?.getAttribute("data-menu") === open) return;
    // The focus follows the user instead of returning to the menu's button.
    open = "";
    redraw();
  };
  addEventListener("pointerdown", elsewhere, true);
  addEventListener("focusin", elsewhere);
}
