// The tray's curtain icon as SVG: closed, with a question, crossed out in lockdown, open if nothing is protected, or cracked.

import { html, svg } from "./html.js";

const CLOSED =
  "M3 5.5H21V20C18.5 21.3 17 19.4 15 20.3 13.8 20.9 12.8 20.5 12 20 11.2 20.5 10.2 20.9 9 20.3 7 19.4 5.5 21.3 3 20Z";
const KEYHOLE = "M12 8.6a2.5 2.5 0 0 0-1.3 4.6L9.9 17H14.1L13.3 13.2A2.5 2.5 0 0 0 12 8.6Z";
const LEFT = "M3 5.5H10.5L8 10 10.8 13 8.2 17 9.6 20.5C7.4 19.4 5.5 21.3 3 20Z";
const RIGHT = "M21 5.500H13.200L11 9.700 13.800 12.800 11.200 16.800 12.600 20.400C15 19.400 18.500 21.300 21 20Z";
const DRAWN_LEFT = "M3 5.5H7.500C7.500 11 6.500 16 5.500 20.500 4.500 20.800 3.700 20.500 3 20Z";
const DRAWN_RIGHT = "M21 5.5H16.500C16.500 11 17.500 16 18.500 20.500 19.500 20.800 20.300 20.500 21 20Z";
const RAIL = "M3.1 2.6H20.9a1.5 1.5 0 0 1 0 3H3.1a1.5 1.5 0 0 1 0-3Z";

/** @typedef {"protecting" | "part" | "asking" | "lockdown" | "open" | "degraded"} Mood */

/** @param {Mood} mood */
export const statusIcon = (mood) =>
  html`<svg class="curtain ${mood}" viewBox="0 0 24 24" aria-hidden="true">${svg`<path class="rail" d=${RAIL} />`}${shape(mood)}</svg>`;

/** @param {string} mood */
function shape(mood) {
  if (mood === "degraded") return svg`<path class="cloth" d=${LEFT} /><path class="cloth" d=${RIGHT} />`;
  if (mood === "open") return svg`<path class="cloth" d=${DRAWN_LEFT} /><path class="cloth" d=${DRAWN_RIGHT} />`;
  if (mood === "lockdown") return svg`<path class="cloth" d=${CLOSED} /><path class="cross" d="M5 8 19 19M19 8 5 19" />`;
  return svg`<path class="cloth" d=${CLOSED} /><path class="hole" d=${KEYHOLE} />`;
}
