// Texts of the strip of the last day.

import { count, number } from "../words.js";

export const STRIP = {
  label: "Decisions of the last 24 hours, by quarter-hour. Press an arrow to choose one, and Enter to show it",
  allowed: (/** @type {number} */ n) => `${number(n)} allowed`,
  denied: (/** @type {number} */ n) => `${number(n)} denied`,
  asked: (/** @type {number} */ n) => `${number(n)} asked`,
  span: (/** @type {string} */ from, /** @type {string} */ to) => `${from} to ${to}`,
  now: "now",
  hour: (/** @type {number} */ n) => `${count(n, "hour")} ago`,
};
