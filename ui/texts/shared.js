// Texts of components that several pages use.

export const SHARED = {
  cancel: "Cancel",
  dismiss: "Dismiss",
  planChanged: "the plan has changed; review it again",
  decisions: { allow: "Allowed", deny: "Denied", escalate: "Asked" },
  with: "with",
  closeDetails: "Close details",
  pagerLabel: "Pages of the list",
  newer: "Newer",
  older: "Older",
  range: (/** @type {number} */ from, /** @type {number} */ to, /** @type {number | null} */ all) => `${from} to ${to}${all === null ? "" : ` of ${all.toLocaleString("en")}`}`,
  dragLabel: (/** @type {string} */ label) => `${label}: press the up or down arrow`,
  dragHint: "Drag, or press an arrow key",
};

/** Relative times. */
export const TIMES = {
  now: "just now",
  minutesAgo: (/** @type {number} */ n) => `${n} min ago`,
  hoursAgo: (/** @type {number} */ n) => `${n} h ago`,
  ending: "ending",
  lessThanMinute: "less than a minute left",
  minutesLeft: (/** @type {number} */ n) => `${n} min left`,
  hoursLeft: (/** @type {number} */ n) => `${n} h left`,
  daysLeft: (/** @type {number} */ n) => (n === 1 ? "1 day left" : `${n} days left`),
};
