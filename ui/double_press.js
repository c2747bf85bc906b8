// Limits a double press to the control on which it started. After a click, another control may be at the same place or have
// the focus, such as "End lockdown" after "Lock down".
//
// - Holding Enter or Space presses a control once.
// - Presses by a screen reader have neither a position nor a key, and always count.

/** Maximum time between the clicks of a double click. */
const AGAIN_MS = 500;
/** Maximum distance between the clicks of a double click, in each direction. */
const NEAR_PX = 8;

/** @type {{ control: string | Element | null, time: number, x: number, y: number }} */
const last = { control: null, time: Number.NEGATIVE_INFINITY, x: 0, y: 0 };

/** True from a press of Enter or Space until the click that it causes. */
let isKeyed = false;

/**
 * Returns true if the pointer is where it was at the last click.
 * @param {MouseEvent} event
 */
const isNear = (event) => Math.max(Math.abs(event.clientX - last.x), Math.abs(event.clientY - last.y)) <= NEAR_PX;

/** Starts ignoring further clicks of a double press on other controls. */
export function followPresses() {
  addEventListener("click", (event) => {
    const byHand = event.detail > 0 || isKeyed;
    isKeyed = false;
    if (!event.isTrusted || !byHand || !(event.target instanceof Element)) return;
    const on = event.target.closest("[data-key]");
    const control = (on instanceof HTMLElement || on instanceof SVGElement ? on.dataset.key : null) ?? event.target;
    const now = performance.now();
    const isAgain = now - last.time < AGAIN_MS && (event.detail === 0 || isNear(event)) && control !== last.control;
    Object.assign(last, { time: now, x: event.clientX, y: event.clientY });
    if (isAgain) {
      event.preventDefault();
      event.stopPropagation();
    } else {
      last.control = control;
    }
  }, true);
  // Scrolling, moving the pointer or another key shows that the next press is meant for its control.
  const forget = () => (last.time = Number.NEGATIVE_INFINITY);
  addEventListener("scroll", forget, true);
  addEventListener("pointermove", (event) => {
    if (!isNear(event)) forget();
  }, true);
  addEventListener("keydown", (event) => {
    const presses = event.key === "Enter" || event.key === " ";
    isKeyed = presses;
    if (!presses) forget();
    else if (event.repeat && event.target instanceof Element && event.target.matches("button, a, summary, input[type='checkbox']")) event.preventDefault();
  }, true);
}
