// A handle that moves a row of a list, with the pointer or with the arrow keys.

import { html } from "./html.js";
import { icon } from "./icon.js";
import { SHARED } from "./texts/shared.js";

/**
 * Returns the handle of a row. It moves the row among its neighbours: the children of the row's parent with class `row`.
 * @param {string} key
 * @param {string} label Accessible name, such as "Move work".
 * @param {number} at Index of the row.
 * @param {(to: number) => void} move Moves the row to that index.
 */
export const dragHandle = (key, label, at, move) => html`
  <button type="button" class="handle bare" data-key=${key} aria-label=${SHARED.dragLabel(label)} title=${SHARED.dragHint}
    @keydown=${(/** @type {KeyboardEvent} */ event) => step(event, at, move)}
    @pointerdown=${(/** @type {PointerEvent} */ event) => drag(event, at, move)}>${icon("grip-vertical")}</button>`;

/**
 * @param {KeyboardEvent} event
 * @param {number} at
 * @param {(to: number) => void} move
 */
function step(event, at, move) {
  const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  const row = event.currentTarget instanceof Element ? event.currentTarget.closest(".row") : null;
  if (by === undefined || !row) return;
  event.preventDefault();
  const to = at + by;
  if (to >= 0 && to < rowsOf(row).length) move(to);
}

/** @param {Element} row */
const rowsOf = (row) => [...(row.parentElement?.children ?? [])].filter((one) => one.classList.contains("row"));

/**
 * @param {PointerEvent} event
 * @param {number} at
 * @param {(to: number) => void} move
 */
function drag(event, at, move) {
  const handle = event.currentTarget;
  const row = handle instanceof HTMLElement ? handle.closest(".row") : null;
  if (!(handle instanceof HTMLElement) || !row || event.button !== 0) return;
  handle.setPointerCapture(event.pointerId);
  const rows = rowsOf(row);
  let to = at;
  const mark = () => rows.forEach((one, n) => {
    one.classList.toggle("dragged", n === at);
    one.classList.toggle("drop-before", n === to && to < at);
    one.classList.toggle("drop-after", n === to && to > at);
  });
  const follow = (/** @type {PointerEvent} */ { clientY }) => {
    const over = rows.findIndex((one) => clientY < one.getBoundingClientRect().bottom);
    to = over === -1 ? rows.length - 1 : over;
    mark();
  };
  const drop = (/** @type {PointerEvent} */ { type }) => {
    handle.removeEventListener("pointermove", follow);
    handle.removeEventListener("pointerup", drop);
    handle.removeEventListener("pointercancel", drop);
    rows.forEach((one) => one.classList.remove("dragged", "drop-before", "drop-after"));
    if (type === "pointerup" && to !== at) move(to);
  };
  handle.addEventListener("pointermove", follow);
  handle.addEventListener("pointerup", drop);
  handle.addEventListener("pointercancel", drop);
  mark();
}
