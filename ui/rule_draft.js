// A rule made from a call on record. Pure functions: the text of the rules in, the text with the rule in.

import { folderOf } from "./words.js";

/** @typedef {{ server: string, tool: string, path: string | null, then: "allow" | "escalate" | "deny", reach: "path" | "folder" | "tool" }} Draft */

const PATHS = ["read-path", "write-path", "delete-path"];
const VERBS = { allow: "Allows", escalate: "Asks about", deny: "Denies" };

/**
 * The rule that a draft says.
 * @param {Draft} draft
 * @param {string[]} taken Names that rules have.
 */
export function ruleOf({ server, tool, path, then, reach }, taken) {
  const within = path === null || reach === "tool" ? null : reach === "folder" ? folderOf(path, "file") : path;
  const about = within === null ? "" : ` in ${within}`;
  return {
    name: freeName(`${then === "escalate" ? "ask" : then}-${server}-${tool}`, taken),
    description: `${VERBS[then]} ${tool} of ${server}${about}.`,
    if: { server: [server], tool: [tool], ...(within === null ? {} : { paths: { roles: PATHS, within } }) },
    then,
    reason: "You made this rule.",
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
 * The text of the rules with a rule before all others: the first that covers a call decides. Null where the text is not
 * understood.
 * @param {string} text
 * @param {object} rule
 */
export function withRule(text, rule) {
  return changed(text, (rules) => [rule, ...rules]);
}

/**
 * The rules in a text, in order. Null where it is not understood.
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
 * The text without the rule of this name.
 * @param {string} text
 * @param {string} name
 */
export const withoutRule = (text, name) => changed(text, (rules) => rules.filter((rule) => rule?.name !== name));

/**
 * The text with a rule one place earlier (-1) or later (1).
 * @param {string} text
 * @param {string} name
 * @param {-1 | 1} by
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
 * The text with another thing that a rule does. What it was said to do before is told as that.
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
  return `${VERBS[/** @type {keyof typeof VERBS} */ (then)]} what it covers (was: ${was})`;
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
 * The names of the rules in a text.
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
