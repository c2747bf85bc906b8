// Explanations shown before an action. Pure functions.

import { count, list } from "./words.js";

/** @type {[import("./types.js").Lifetime, string][]} */
export const LIFETIMES = [["session", "this session"], ["quarter-hour", "15 minutes"], ["hour", "1 hour"], ["always", "until I revoke it"]];

/**
 * Describes a grant before it is made.
 * @param {import("./types.js").RequestedGrant} whole
 * @param {string} client
 */
export function grantSentence(whole, client) {
  const how = whole.lifetime === "always" ? "until you revoke it" : `for ${LIFETIMES.find(([value]) => value === whole.lifetime)?.[1]}`;
  if (whole.kind === "tool") {
    return whole.what === ""
      ? `The effect of every tool of ${whole.server} depends on its arguments, so you are asked at each call.`
      : `${client} may use ${whole.what} of ${whole.server} without asking, whatever the call says, ${how}.`;
  }
  if (whole.kind === "host") {
    return whole.what === "" ? "Enter the name of the host." : `${client} may connect to ${whole.what} through ${whole.server}, and send it what it knows, ${how}.`;
  }
  if (whole.access.length === 0) return "Choose what it may do.";
  return `What you pick, ${client} may ${list(whole.access)} through ${whole.server}, ${how}. A folder includes everything in it.`;
}

/**
 * Describes the effect of restoring a file from quarantine.
 * @param {Pick<import("./types.js").LeftFile, "shown" | "when" | "occupied">} file
 */
export const putBackWords = (file) =>
  file.occupied
    ? `${file.shown} is put back, and runs ${file.when}, with all your rights. The file in its place goes to quarantine.`
    : `${file.shown} is put back where it was, and runs ${file.when}, with all your rights.`;

/**
 * Describes what removing a server deletes and keeps.
 * @param {import("./types.js").PlannedRemoval} plan
 * @param {number} sessions Number of its live sessions.
 * @returns {string[]}
 */
export function removalWords(plan, sessions) {
  const words = ["Its entry is removed. \u201cPut back\u201d restores it."];
  if (sessions > 0) words.push(`It stops now for ${count(sessions, "session")}; calls in flight fail.`);
  if (plan.clients.length > 0) words.push(`Still set to start it: ${list(plan.clients)}. They will get an error; disconnect it under Agents.`);
  if (plan.profiles.length > 0) words.push(`Still named by the profile ${list(plan.profiles)}.`);
  if (plan.data !== null) words.push(`Its data stays in ${plan.data}.`);
  return words;
}

/**
 * Describes what a new program under a server's name would get, worst first.
 * @param {import("./types.js").Suspended} suspended
 * @returns {string[]}
 */
export function wouldGet({ grants, secrets, data, annotated }) {
  const words = [...grants];
  if (secrets.length > 0) words.push(`use your ${secrets.length === 1 ? "secret" : "secrets"} ${list(secrets)}`);
  if (data !== null) words.push(`read and change the data in ${data}`);
  if (annotated > 0) words.push(`have ${count(annotated, "tool")} count as reviewed`);
  return words;
}

/**
 * Describes how the programs differ, if their names do not show it.
 * @param {import("./types.js").Suspended} suspended
 */
export function changeWords({ before, now, change }) {
  const named = before !== null && before !== now && !change.startsWith("its arguments");
  return named ? "" : `${change.slice(0, 1).toUpperCase()}${change.slice(1)}.`;
}

/** @param {import("./types.js").Suspended} suspended */
export const keepWords = ({ now }) => `${now} gets everything listed above.`;

/**
 * @param {import("./types.js").Suspended} suspended
 * @param {string} name
 */
export function startAfreshWords({ grants, secrets, data, annotated }, name) {
  const words = [];
  if (grants.length > 0) words.push(`${count(grants.length, "permission")} ${grants.length === 1 ? "is" : "are"} revoked.`);
  if (data !== null) words.push("Its data folder is moved aside, not deleted.");
  if (secrets.length > 0) words.push("Its secrets are no longer given to it.");
  if (annotated > 0) words.push("Its tools have to be reviewed again.");
  return [...words, `Then ${name} can start with nothing.`].join(" ");
}
