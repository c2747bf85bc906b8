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
    reason: "You made this rule from a call on record.",
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
  const policy = parsed(text);
  if (policy === null) return null;
  return `${JSON.stringify({ ...policy, rules: [rule, ...policy.rules] }, null, 2)}\n`;
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
