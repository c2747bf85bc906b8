// Creates a rule from a recorded call, and edits the text of the rules. Pure functions.

import { RULES } from "./texts/rules.js";
import { folderOf } from "./words.js";

/** @typedef {{ server: string, tool: string, path: string | null, then: "allow" | "escalate" | "deny", reach: "path" | "folder" | "tool" }} Draft */

const PATHS = ["read-path", "write-path", "delete-path"];

/**
 * Builds the rule of a draft.
 * @param {Draft} draft
 * @param {string[]} taken Names of existing rules.
 */
export function ruleOf({ server, tool, path, then, reach }, taken) {
  const within = path === null || reach === "tool" ? null : reach === "folder" ? folderOf(path, "file") : path;
  return {
    name: freeName(`${then === "escalate" ? "ask" : then}-${server}-${tool}`, taken),
    description: RULES.describes(then, tool, server, within),
    if: { server: [server], tool: [tool], ...(within === null ? {} : { paths: { roles: PATHS, within } }) },
    then,
    reason: RULES.ownReason,
  };
}

/**
 * @param {string} wanted
 * @param {string[]} taken
 */
function freeName(wanted, taken) {
  const base = wanted.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
  for (let n = 1; ; n += 1) {
    const name = n === 1 ? base : `${base}-${n}`;
    if (!taken.includes(name)) return name;
  }
}

/**
 * Returns the rules with a rule added before all others, because the first matching rule decides. Returns null if the text is
 * invalid.
 * @param {string} text
 * @param {object} rule
 */
export function withRule(text, rule) {
  return changed(text, (rules) => [rule, ...rules]);
}

/**
 * Returns the rules in a text, in order, or null if the text is invalid.
 * @param {string} text
 * @returns {{ name: string, description: string, then: string, text: string }[] | null}
 */
export function rulesIn(text) {
  const rules = parsed(text)?.rules;
  if (!rules) return null;
  return rules.map((/** @type {any} */ rule) => ({
    name: String(rule?.name),
    description: String(rule?.description ?? ""),
    then: String(rule?.then),
    text: JSON.stringify(rule, null, 2),
  }));
}

/**
 * Removes the rule with this name from the text.
 * @param {string} text
 * @param {string} name
 */
export const withoutRule = (text, name) => changed(text, (rules) => rules.filter((rule) => rule?.name !== name));

/**
 * Moves a rule by a number of positions; a negative number moves it earlier.
 * @param {string} text
 * @param {string} name
 * @param {number} by
 */
export const movedRule = (text, name, by) =>
  changed(text, (rules) => {
    const from = rules.findIndex((rule) => rule?.name === name);
    const to = from + by;
    if (from < 0 || to < 0 || to >= rules.length) return rules;
    const [rule] = rules.splice(from, 1);
    rules.splice(to, 0, rule);
    return rules;
  });

/**
 * Changes a rule's effect. The new description quotes the old one.
 * @param {string} text
 * @param {string} name
 * @param {string} then
 */
export const ruleThat = (text, name, then) => changed(text, (rules) => rules.map((rule) => (rule?.name === name ? { ...rule, description: described(rule.description, then), then } : rule)));

/**
 * @param {unknown} before
 * @param {string} then
 */
function described(before, then) {
  const was = String(before ?? "").replace(/^.* \(was: (.*)\)$/, "$1");
  return RULES.changedFrom(/** @type {keyof typeof RULES.verbs} */ (then), was);
}

/**
 * @param {string} text
 * @param {(rules: any[]) => any[]} change
 */
function changed(text, change) {
  const policy = parsed(text);
  if (policy === null) return null;
  return `${JSON.stringify({ ...policy, rules: change([...policy.rules]) }, null, 2)}\n`;
}

/**
 * Returns the names of the rules in a text.
 * @param {string} text
 * @returns {string[]}
 */
export const names = (text) => parsed(text)?.rules.map((/** @type {{ name?: unknown }} */ rule) => String(rule?.name)) ?? [];

/** @param {string} text */
function parsed(text) {
  try {
    const policy = JSON.parse(text);
    return Array.isArray(policy?.rules) ? policy : null;
  } catch {
    return null;
  }
}
