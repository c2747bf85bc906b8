// Formats times, counts, names and paths. Pure functions.

import { TIMES } from "./texts/shared.js";

// Creating a formatter is slower than drawing a row.
const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const DAY_OF = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const WEEKDAY = new Intl.DateTimeFormat(undefined, { weekday: "short", hour: "2-digit", minute: "2-digit" });
const DATE = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const NUMBER = new Intl.NumberFormat("en");

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/**
 * Formats a past time as "just now", "2 min ago", "3 h ago" or a date. Changes at most once a minute.
 * @param {number} then
 * @param {number} now
 */
export function ago(then, now) {
  const past = now - then;
  if (past < MINUTE) return TIMES.now;
  if (past < HOUR) return TIMES.minutesAgo(Math.floor(past / MINUTE));
  if (past < DAY) return TIMES.hoursAgo(Math.floor(past / HOUR));
  return DAY_OF.format(then);
}

/**
 * Formats the remaining time, such as "14 min left".
 * @param {number} then
 * @param {number} now
 */
export function timeLeft(then, now) {
  const rest = then - now;
  if (rest <= 0) return TIMES.ending;
  if (rest < MINUTE) return TIMES.lessThanMinute;
  if (rest < HOUR) return TIMES.minutesLeft(Math.ceil(rest / MINUTE));
  if (rest < DAY) return TIMES.hoursLeft(Math.ceil(rest / HOUR));
  return TIMES.daysLeft(Math.ceil(rest / DAY));
}

/**
 * Formats the full date and time.
 * @param {number} then
 */
export const exact = (then) => EXACT.format(then);

/**
 * Formats the time of day, such as "12:03".
 * @param {number} then
 */
export const clock = (then) => CLOCK.format(then);

/**
 * Formats a past time briefly: "12:03" today, weekday and time in the last week, and the date before that.
 * @param {number} then
 * @param {number} [now]
 */
export function clockOf(then, now = Date.now()) {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  if (then >= midnight) return CLOCK.format(then);
  return then >= midnight - 6 * DAY ? WEEKDAY.format(then) : DATE.format(then);
}

/**
 * Formats a number, such as "4,096".
 * @param {number} n
 */
export const number = (n) => NUMBER.format(n);

/**
 * Formats a count, such as "1 session", "2 sessions" or "2 entries".
 * @param {number} n
 * @param {string} word
 */
export function count(n, word) {
  const many = /[^aeiou]y$/.test(word) ? `${word.slice(0, -1)}ies` : `${word}s`;
  return `${NUMBER.format(n)} ${n === 1 ? word : many}`;
}

/**
 * Joins words, such as "read, write and delete".
 * @param {string[]} words
 */
export function list(words) {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;
}

/**
 * Truncates a text to a number of characters.
 * @param {string} text
 * @param {number} most
 */
export const cut = (text, most) => ([...text].length > most ? `${[...text].slice(0, most - 1).join("")}\u2026` : text);

/** Maximum length of a name in a sentence, in characters. */
const MAX_NAME = 40;

/**
 * Returns a name for a sentence. A long name is truncated. A name that could be read as part of the sentence is quoted.
 * @param {string} name
 * @param {RegExp} plain Names that need no quotes.
 */
export function named(name, plain = /^[\p{L}\p{N}_@/+.\u2026-]+$/u) {
  const shown = cut(name, MAX_NAME);
  return plain.test(shown) ? shown : `\u201c${shown}\u201d`;
}

/** Returns an agent's name for a sentence. It may have spaces. @param {string} name */
export const namedAgent = (name) => named(name, /^[\p{L}\p{N}_+.\u2026 -]+$/u);

/**
 * Returns a path with the home directory as `~`.
 * @param {string} path
 * @param {string} home
 */
export function short(path, home) {
  if (!home || home === "/") return path;
  if (path === home) return "~";
  return path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}

/**
 * Splits a path, with the home directory as `~`, into its start and its last two names.
 * @param {string} path
 * @param {string} home
 * @returns {[string, string]}
 */
export function pathParts(path, home) {
  const shown = short(path, home);
  const names = shown.split("/");
  if (names.length <= 2) return ["", shown];
  return [`${names.slice(0, -2).join("/")}/`, names.slice(-2).join("/")];
}

/**
 * Returns the folder that contains a path, or the path itself if it is a folder.
 * @param {string} path
 * @param {string} kind
 */
export function folderOf(path, kind) {
  if (kind === "folder") return path;
  const at = path.lastIndexOf("/");
  return at > 0 ? path.slice(0, at) : "/";
}
