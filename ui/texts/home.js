// Texts of the home page.

import { count, list, named, namedAgent, number } from "../words.js";

/** Names shown of a list; the others are counted. */
const MAX_NAMES = 3;

/** @param {string[]} names */
const first = (names) => (names.length > MAX_NAMES ? [...names.slice(0, MAX_NAMES - 1).map((name) => named(name)), `${names.length - MAX_NAMES + 1} more`] : names.map((name) => named(name)));

/** @param {{ agent: string, servers: string[] }[]} all */
const ofAgents = (all) => list(all.map(({ agent, servers }) => `${list(first(servers))} (${namedAgent(agent)})`));

/** @param {{ agent: string, servers: string[] }[]} all */
const isOne = (all) => all.length === 1 && all[0]?.servers.length === 1;

export const HOME = {
  except: (/** @type {number} */ n) => `Protected, except ${count(n, "server")}`,
  bypassOnly: (/** @type {number} */ n) => `${count(n, "server")} ${n === 1 ? "bypasses" : "bypass"} IronCurtain`,
  reachAll: (/** @type {{ agent: string, servers: string[] }[]} */ all) => `${ofAgents(all)} can reach everything you can.`,
  direct: (/** @type {{ agent: string, servers: string[] }[]} */ all) => `${ofAgents(all)} ${isOne(all) ? "is connected without IronCurtain, and sees what is sent to it" : "are connected without IronCurtain, and see what is sent to them"}.`,
  unchecked: (/** @type {string[]} */ agents) => `The settings of ${list(agents)} could not be read, so servers there may bypass IronCurtain.`,
  uncheckedAll: "Agents' settings could not be checked, so servers there may bypass IronCurtain.",
  changedText: "Review what changed. Changed programs and tools are blocked until you decide.",
  wrongText: "Calls that cannot be checked or recorded are denied until this is fixed.",
  lockedText: "Everything that would ask you is denied. Your permissions and rules still apply.",
  noAgentText: "An agent appears here when it starts a server through IronCurtain.",
  notProtectedText: "Connect an agent to protect what it starts.",
  needsYou: (/** @type {number} */ n) => `Needs you (${n})`,
  showAll: "Show all",
  review: "Review",
  reviewing: "Asking you\u2026",
  answered: "Answered",
  notAsked: "Not asked",
  reviewLabel: (/** @type {string} */ what) => `Review: ${what}`,
  missed: "Not answered in time: denied. If the agent tries again, you are asked again.",
  allowedLate: "You allowed it. If the agent repeats exactly this call, it runs once.",
  shownAgain: "The question is open in its own window.",
  forget: "Dismiss",
  forgetting: "Dismissing\u2026",
  forgotten: "Dismissed",
  notForgotten: "Not dismissed",
  undo: "Undo my yes",
  undoing: "Revoking\u2026",
  undone: "Revoked",
  notUndone: "Not revoked",
  serverChanged: (/** @type {string} */ name) => `${named(name)} is no longer the program you allowed`,
  serverBlocked: "The new program is blocked until you decide.",
  toolsChanged: (/** @type {string} */ name) => `${named(name)} changed its tools`,
  toolsSuspended: "The changed tools are suspended until you decide.",
  decide: "Decide",
  decideLabel: (/** @type {string} */ name) => `Decide about the server ${name}`,
  left: (/** @type {number} */ n) => `Sessions left ${count(n, "file")} that can run code later`,
  leftText: "Review them, and keep only what you asked for.",
  bypass: (/** @type {number} */ n, /** @type {string} */ agent) => `${number(n)} of ${agent}'s servers ${n === 1 ? "bypasses" : "bypass"} IronCurtain`,
  bypassText: (/** @type {string[]} */ names) => `Started by the agent without IronCurtain: ${list(first(names))}.`,
  protect: "Protect",
  protectLabel: (/** @type {string} */ agent) => `Protect the servers of ${agent}`,
  remedy: "To fix it, run this in a terminal:",
  lastDay: "Last 24 hours",
  recent: "Recent",
  all: "All activity",
  connect: "Connect an agent",
  firstSteps: "First steps",
};
