// Texts about what the user's organization manages.

import { count } from "../words.js";

/** Returns a duration such as "2 hours". @param {number} minutes */
function duration(minutes) {
  if (minutes % 1440 === 0) return count(minutes / 1440, "day");
  return minutes % 60 === 0 ? count(minutes / 60, "hour") : count(minutes, "minute");
}

/** @param {import("../types.js").ServerPattern} pattern */
const server = ({ name, package: code, url }) => [name && `\`${name}\` (by name)`, code && `\`${code}\``, url && `\`${url}\``].filter(Boolean).join(" with ");

/** @param {import("../types.js").ServerPattern[]} patterns */
const servers = (patterns) => patterns.map(server).join(", ");

const WITHOUT = { deny: "every call is denied", ask: "you are asked about every call" };

export const ORGANIZATION = {
  section: "Organization",
  setBy: (/** @type {string} */ name) => `Set by ${name}`,
  open: (/** @type {string} */ name) => `What ${name} manages`,
  rulesOf: (/** @type {string} */ revision) => `Rules: revision ${revision}`,
  settingsOf: (/** @type {number} */ settings) => count(settings, "setting"),
  nothing: "manages nothing yet",
  /** What applies while no rules can be used. */
  without: (/** @type {keyof typeof WITHOUT} */ decision, /** @type {string | null} */ problem) => (problem === null ? `Its rules are not downloaded yet, so ${WITHOUT[decision]}.` : `Its rules cannot be used, so ${WITHOUT[decision]}: ${problem}`),
  record: {
    organization: "receives your record",
    chosen: "you chose who receives your record",
    nobody: "your record is not exported",
  },
  settings: {
    enforceSandbox: "A server that needs a sandbox does not start without one.",
    forbidUnsandboxed: "No server starts without a sandbox.",
    network: {
      never: "Servers and runs have no network. Remote servers do not start.",
      ask: "You are asked about every host that a server or run connects to.",
    },
    allowed: (/** @type {import("../types.js").ServerPattern[]} */ patterns) => (patterns.length === 0 ? "No server starts." : `Only these servers start: ${servers(patterns)}.`),
    denied: (/** @type {import("../types.js").ServerPattern[]} */ patterns) => `These servers do not start: ${servers(patterns)}.`,
    maxGrant: (/** @type {number} */ minutes) => `Every permission ends after ${duration(minutes)} at the latest.`,
    export: (/** @type {string | null} */ url) => `Nothing starts until your record is exported${url === null ? "" : ` to \`${url}\``}.`,
    paths: { full: "Your record is exported with full paths.", hashed: "Your record is exported with hashes instead of paths.", none: "Your record is exported without paths." },
  },
  export: {
    missing: (/** @type {string} */ name) => `${name} requires the export: nothing starts without it.`,
    otherCollector: (/** @type {string} */ name, /** @type {string} */ url) => `Nothing starts until you stop this export and start the one to \`${url}\`, which ${name} requires.`,
    required: (/** @type {string} */ name) => `${name} requires the export: without it, no server and no run starts.`,
    isRequired: "required",
  },
  rules: {
    section: (/** @type {string} */ name) => `Rules of ${name}`,
    text: "Only your organization can change these. The stricter of its decision and yours applies.",
    own: "Your rules",
  },
};
