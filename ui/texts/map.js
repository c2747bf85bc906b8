// Texts of the map of who can reach what.

import { count, list } from "../words.js";

export const MAP = {
  label: "Who can reach what",
  sandboxed: "in a sandbox",
  open: "not sandboxed",
  bypass: (/** @type {number} */ n) => (n === 1 ? "bypasses IronCurtain" : "bypass IronCurtain"),
  bypassing: "bypassing IronCurtain",
  servers: (/** @type {number} */ n) => count(n, "server"),
  remote: "on another computer",
  paused: "paused",
  stopped: "stopped",
  all: "everything you can reach",
  computer: "all unprotected files",
  sent: "what is sent to it",
  scratch: "its own scratch folder only",
  more: (/** @type {string} */ n) => `and ${n} more`,
  moreAgents: (/** @type {number} */ n) => `and ${count(n, "more agent")}`,
  asking: "asking you",
  reachesAll: "can reach everything",
  reachesAllNarrow: ["can reach", "everything"],
  asks: (/** @type {string} */ name) => `${name} is asking you`,
  access: list,
  connect: "connect",
  reaches: (/** @type {string} */ what, /** @type {string[]} */ access) => (access.length > 0 ? `${what}: ${list(access)}` : what),
  sentence: (/** @type {string} */ agent, /** @type {string} */ server, /** @type {string} */ how, /** @type {string} */ what) => `${agent} uses ${server}, ${how}: ${what}.`,
};
