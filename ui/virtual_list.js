// A list box of lines with equal heights. Only the lines in view exist. It has one tab stop; keys move between the lines.

import { html, render, repeat } from "./html.js";

const LINE_PX = 32;
/** Number of lines drawn above and below those in view. */
const BEYOND = 8;
/** Number of lines scrolled before new ones are drawn. Drawing a few lines in each frame avoids one slow frame. */
const STEP = 6;

/**
 * @template T
 * @typedef {object} Shown
 * @property {T[]} items
 * @property {(item: T) => number} key
 * @property {(item: T) => unknown} cells
 * @property {(item: T) => string} kind CSS class.
 * @property {(item: T) => boolean} isChosen
 * @property {(item: T) => void} press
 * @property {() => void} leave Called by Escape.
 * @property {() => void} end Called when the last lines come into view.
 */

/**
 * @template T
 */
export class VirtualList {
  /** @type {Shown<T> | null} */
  #shown = null;
  /** @type {HTMLElement | null} */
  #scroller = null;
  /** Key of the line with the keyboard cursor. */
  #active = Number.NaN;
  /** Key of the first line in view, and its offset, to keep the view in place when lines are added above. */
  #top = { key: Number.NaN, offset: 0 };
  #drawnTop = 0;

  /** Returns the element that `draw` fills. @param {string} key @param {string} label */
  view(key, label) {
    return html`
      <div class="vlist-frame"><div class="vlist" role="listbox" tabindex="0" data-key=${key} aria-label=${label} @scroll=${() => this.#scrolled()} @keydown=${(/** @type {KeyboardEvent} */ event) => this.#pressed(event)}>
        <div class="vlist-space" role="presentation"><div class="vlist-lines" role="presentation"></div></div>
      </div></div>`;
  }

  /** Draws the lines in view. @param {HTMLElement | null} scroller @param {Shown<T>} shown */
  draw(scroller, shown) {
    if (!scroller) return;
    this.#shown = shown;
    this.#scroller = scroller;
    const space = scroller.firstElementChild;
    if (space instanceof HTMLElement) space.style.height = `${shown.items.length * LINE_PX}px`;
    const at = this.#top.offset === 0 && scroller.scrollTop < LINE_PX ? -1 : shown.items.findIndex((item) => shown.key(item) === this.#top.key);
    if (at > 0) scroller.scrollTop = at * LINE_PX + this.#top.offset;
    this.#lines(true);
  }

  /** Moves the keyboard cursor to a line. @param {number} key */
  activate(key) {
    this.#active = key;
  }

  #scrolled() {
    const { scrollTop } = /** @type {HTMLElement} */ (this.#scroller);
    const first = Math.floor(scrollTop / LINE_PX);
    const item = this.#shown?.items[first];
    this.#top = item === undefined || !this.#shown || scrollTop < LINE_PX ? { key: Number.NaN, offset: 0 } : { key: this.#shown.key(item), offset: scrollTop - first * LINE_PX };
    this.#lines(false);
  }

  /** @param {boolean} changed Draws even if the same lines are in view. */
  #lines(changed) {
    const [shown, scroller] = [this.#shown, this.#scroller];
    const lines = scroller?.firstElementChild?.firstElementChild;
    if (!shown || !scroller || !(lines instanceof HTMLElement)) return;
    const { length } = shown.items;
    const top = Math.floor(scroller.scrollTop / LINE_PX);
    const bottom = top + Math.ceil(scroller.clientHeight / LINE_PX);
    if (!changed && Math.abs(top - this.#drawnTop) < STEP) return;
    this.#drawnTop = top;
    const [first, last] = [Math.max(0, top - BEYOND), Math.min(length, bottom + BEYOND)];
    lines.style.top = `${first * LINE_PX}px`;
    const active = this.#activeIndex();
    render(repeat(shown.items.slice(first, last), shown.key, (item, n) => this.#line(shown, item, first + n, active)), lines);
    if (active >= first && active < last) scroller.setAttribute("aria-activedescendant", id(shown.key(/** @type {T} */ (shown.items[active]))));
    else scroller.removeAttribute("aria-activedescendant");
    if (last === length) shown.end();
  }

  /** @param {Shown<T>} shown @param {T} item @param {number} at @param {number} active */
  #line(shown, item, at, active) {
    const key = shown.key(item);
    const press = () => {
      this.#active = key;
      shown.press(item);
    };
    return html`<div class="line ${shown.kind(item)} ${at === active ? "active" : ""}" role="option" id=${id(key)} data-line=${key} aria-selected=${String(shown.isChosen(item))}
      aria-setsize=${shown.items.length} aria-posinset=${at + 1} @click=${press}>${shown.cells(item)}</div>`;
  }

  #activeIndex() {
    const shown = this.#shown;
    return shown ? Math.max(0, shown.items.findIndex((item) => shown.key(item) === this.#active)) : 0;
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    const [shown, scroller] = [this.#shown, this.#scroller];
    if (!shown || !scroller || event.altKey || event.ctrlKey || event.metaKey) return;
    const [at, last, page] = [this.#activeIndex(), shown.items.length - 1, Math.floor(scroller.clientHeight / LINE_PX) - 1];
    const item = shown.items[at];
    if (event.key === "Escape") return shown.leave();
    if ((event.key === "Enter" || event.key === " ") && item !== undefined) {
      event.preventDefault();
      this.#active = shown.key(item);
      return shown.press(item);
    }
    const steps = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: last };
    const step = steps[/** @type {keyof typeof steps} */ (event.key)];
    if (step === undefined) return;
    event.preventDefault();
    const to = Math.max(0, Math.min(last, step));
    const target = shown.items[to];
    if (target === undefined) return;
    this.#active = shown.key(target);
    const y = to * LINE_PX;
    if (y < scroller.scrollTop) scroller.scrollTop = y;
    else if (y + LINE_PX > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = y + LINE_PX - scroller.clientHeight;
    this.#lines(true);
  }
}

/** @param {number} key */
const id = (key) => `line${key}`;
