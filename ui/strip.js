// The 24-hour chart: 96 quarter-hours, each a stack of allowed, asked and denied calls. The chart is a single control, which
// chooses a quarter-hour.

import { html, nothing, svg } from "./html.js";
import { redraw } from "./state.js";
import { STRIP } from "./texts/strip.js";
import { clock } from "./words.js";

export const QUARTER_MS = 15 * 60_000;
const COLUMN = 7;
const BAR = 5;
const HEIGHT = 44;

/** Index of the quarter-hour with the keyboard cursor; -1 for none. */
let at = -1;

/**
 * Returns the chart.
 * @param {import("./types.js").Day} day
 * @param {(from: number, to: number) => void} choose
 * @param {{ from: number, to: number }} [chosen] Period to mark.
 */
export function strip({ from_ms, quarters }, choose, chosen) {
  const most = Math.max(4, ...quarters.map((one) => one[0] + one[1] + one[2]));
  const current = at === -1 ? quarters.length - 1 : at;
  const pick = (/** @type {number} */ n) => choose(from_ms + n * QUARTER_MS, from_ms + (n + 1) * QUARTER_MS);
  const keys = (/** @type {KeyboardEvent} */ event) => {
    const on = at === -1 ? quarters.length - 1 : at;
    const to = moved(event.key, on, quarters.length);
    if (to === undefined) return;
    event.preventDefault();
    if (event.key === "Enter" || event.key === " ") return pick(on);
    at = to;
    redraw();
  };
  const width = quarters.length * COLUMN;
  return html`
    <div class="strip">
      <svg viewBox="0 0 ${width} ${HEIGHT}" preserveAspectRatio="none" role="slider" tabindex="0" data-key="strip" aria-label=${STRIP.label}
        aria-valuemin="0" aria-valuemax=${quarters.length - 1} aria-valuenow=${current} aria-valuetext=${words(quarters[current] ?? [0, 0, 0], from_ms + current * QUARTER_MS)} @keydown=${keys}>
        ${quarters.map((one, n) => column(one, n, most, { isAt: n === at, isChosen: isIn(chosen, from_ms + n * QUARTER_MS), start: from_ms + n * QUARTER_MS, pick }))}
        ${svg`<line class="base" x1="0" x2=${width} y1=${HEIGHT - 0.5} y2=${HEIGHT - 0.5} />`}
      </svg>
      <div class="scale" aria-hidden="true"><span>${STRIP.hour(24)}</span><span>${STRIP.hour(12)}</span><span>${STRIP.now}</span></div>
    </div>`;
}

/** @param {string} key @param {number} on @param {number} all */
function moved(key, on, all) {
  switch (key) {
    case "ArrowLeft":
    case "ArrowDown": return Math.max(0, on - 1);
    case "ArrowRight":
    case "ArrowUp": return Math.min(all - 1, on + 1);
    case "PageDown": return Math.max(0, on - 4);
    case "PageUp": return Math.min(all - 1, on + 4);
    case "Home": return 0;
    case "End": return all - 1;
    case "Enter":
    case " ": return on;
    default: return undefined;
  }
}

/** @param {{ from: number, to: number } | undefined} chosen @param {number} start */
const isIn = (chosen, start) => chosen !== undefined && chosen.from > 0 && start >= chosen.from && (chosen.to === 0 || start < chosen.to);

/** @param {[number, number, number]} one @param {number} start */
const words = ([allowed, asked, denied], start) =>
  `${STRIP.span(clock(start), clock(start + QUARTER_MS))}: ${[STRIP.allowed(allowed), STRIP.asked(asked), STRIP.denied(denied)].join(", ")}`;

/**
 * @param {[number, number, number]} counts
 * @param {number} n
 * @param {number} most
 * @param {{ isAt: boolean, isChosen: boolean, start: number, pick: (n: number) => void }} more
 */
function column(counts, n, most, { isAt, isChosen, start, pick }) {
  const x = n * COLUMN;
  let y = HEIGHT - 1;
  const [allowed, asked, denied] = counts;
  const part = (/** @type {string} */ kind, /** @type {number} */ count) => {
    if (count === 0) return nothing;
    // Keeps even a single call visible.
    const height = Math.max(3, Math.round((count / most) * (HEIGHT - 8)));
    y -= height;
    return svg`<rect class=${kind} x=${x + 1} y=${y} width=${BAR} height=${height} />`;
  };
  return svg`
    <g @click=${() => pick(n)}>
      <rect class="column ${isAt || isChosen ? "chosen" : ""}" x=${x} y="0" width=${COLUMN} height=${HEIGHT}><title>${words(counts, start)}</title></rect>
      ${part("allow", allowed)}${part("ask", asked)}${part("deny", denied)}
    </g>`;
}

/** Returns the day's totals of allowed, asked and denied calls. @param {import("./types.js").Day} day */
export const sums = ({ quarters }) => [0, 1, 2].map((kind) => quarters.reduce((sum, one) => sum + (one[kind] ?? 0), 0));
