// Texts of the permissions page.

import { count, list } from "../words.js";

/** @type {[import("../types.js").Lifetime, string][]} */
export const LIFETIMES = [["session", "this session"], ["quarter-hour", "15 minutes"], ["hour", "1 hour"], ["always", "until I revoke it"]];

/**
 * Describes a permission before it is granted.
 * @param {import("../types.js").RequestedGrant} whole
 * @param {string} client
 */
export function grantSentence(whole, client) {
  const how = whole.lifetime === "always" ? "until you revoke it" : `for ${LIFETIMES.find(([value]) => value === whole.lifetime)?.[1]}`;
  if (whole.kind === "tool") {
    return whole.what === ""
      ? `The effect of every tool of ${whole.server} depends on its arguments, so you are asked at each call.`
      : `${client} may use ${whole.what} of ${whole.server} without asking, with any arguments, ${how}.`;
  }
  if (whole.kind === "host") {
    return whole.what === "" ? "Enter the name of the host." : `${client} may connect to ${whole.what} through ${whole.server}, and send any data to it, ${how}.`;
  }
  if (whole.access.length === 0) return "Choose what it may do.";
  return `${client} may ${list(whole.access)} what you pick, through ${whole.server}, ${how}. A folder includes everything in it.`;
}

export const PERMISSIONS = {
  add: "Add",
  addTitle: "Add a permission",
  close: "Close",
  none: "Nothing is allowed yet. What you allow beyond a single call is listed here.",
  noneYet: "Nothing is allowed yet. Connect an agent first.",
  connect: "Connect an agent",
  noMatch: "Nothing matches.",
  noMatchHint: "Try fewer or different words.",
  find: "Find a permission",
  findHint: "Find a path, agent, server or word",
  order: "Order",
  group: "Group",
  byAgent: "By agent",
  byFolder: "By folder",
  sort: "Sort",
  byName: "By name",
  newest: "Newest first",
  lastUsed: "Last used first",
  ending: "Ending first",
  select: "Select",
  selectDone: "Done",
  selectAll: (/** @type {number} */ n) => `Select ${count(n, "row")} in view`,
  selectOne: (/** @type {string} */ path, /** @type {string} */ agent) => `Select ${path} of ${agent}`,
  more: "More about permissions",
  revoke: { ready: "Revoke", going: "Revoking\u2026", done: "Revoked", failed: "Not revoked" },
  revokeLabel: (/** @type {string} */ path) => `Revoke ${path}`,
  revokeMany: { going: "Revoking\u2026", done: "Revoked", failed: "Not all were revoked" },
  revokeAll: "Revoke all",
  revokeAllLabel: (/** @type {string} */ of) => `Revoke all of ${of}`,
  revokeSelected: (/** @type {number} */ n) => (n === 0 ? "Revoke selected" : `Revoke ${n} selected`),
  revokeEverything: "Revoke everything",
  revokeSays: (/** @type {number} */ n, /** @type {string} */ agents) => `${count(n, "permission")} of ${agents} ${n === 1 ? "is" : "are"} revoked now. Calls that use them are refused or ask you again.`,
  someLeft: (/** @type {number} */ n) => `${count(n, "permission")}; each says why below`,
  unverified: "this could not be verified",
  notRevoked: (/** @type {string} */ why) => `Not revoked: ${why}`,
  beingRevoked: (/** @type {string} */ why) => `Being revoked: ${why}`,
  revokedAt: (/** @type {string} */ time) => `Revoked, verified ${time}`,
  restarted: (/** @type {number} */ n) => `${count(n, "server")} restarted`,
  undo: { ready: "Undo", yes: "Grant it again", going: "Granting\u2026", done: "Granted again", failed: "Not granted" },
  undoLabel: (/** @type {string} */ path) => `Undo: grant ${path} again`,
  undoSays: (/** @type {import("../types.js").Grant} */ { client, access, path, kind, lifetime }) =>
    `${client} may ${list(access)} ${path}${kind === "folder" ? " and everything in it" : ""} again, ${lifetime === "always" ? "until you revoke it" : `for ${lifetime}`}.`,
  details: (/** @type {string} */ path, /** @type {string} */ agent) => `Details of ${path} for ${agent}`,
  through: (/** @type {string} */ server) => `through ${server}`,
  neverUsed: "never used",
  used: "used",
  uses: (/** @type {number} */ n) => count(n, "use"),
  untilRevoked: "until revoked",
  connects: "connect",
  use: "use",
  other: { host: "Hosts", tool: "Tools", single: "Single files and folders" },
  suspended: (/** @type {string} */ why) => `Suspended: ${why}`,
  notNow: (/** @type {string} */ why) => `Does not apply now: ${why}`,
  decide: "Decide",
  decideLabel: (/** @type {string} */ server) => `Decide about the server ${server}`,
  unused: (/** @type {number} */ days) => `Not used for ${count(days, "day")}.`,
  may: "May",
  could: "Could",
  inIt: "and everything in it",
  origin: "Origin",
  lasts: "Lasts",
  activity: "Uses",
  server: "Server",

  // Changing one
  lastsFromNow: "Lasts from now",
  asNow: (/** @type {string} */ lifetime) => `as now: ${lifetime}`,
  changeGroup: (/** @type {string} */ path) => `Change ${path}`,
  allowMore: "To allow more, add a permission, or answer when it asks.",
  change: { ready: "Change it", going: "Changing\u2026", done: "Changed", failed: "Not changed" },
  changePart: "Only a folder within it\u2026",

  // Adding one
  agent: "Agent",
  verified: "verified:",
  what: "What",
  kinds: { files: "a folder or file", tool: "a tool", host: "a host" },
  tool: "Tool",
  host: "Host",
  choose: "Choose\u2026",
  agentGone: "This agent is no longer known. Choose another one.",
  serverGone: "This agent no longer uses the server. Choose another one.",
  sessionGone: "The session has ended. Choose another time.",
  grant: "Grant it",
  pickFolder: "Pick a folder\u2026",
  pickFile: "Pick a file\u2026",
  granted: (/** @type {string} */ what) => `Granted: ${what}`,
  notGranted: (/** @type {string} */ why) => `Not granted: ${why}`,

  // Declined projects
  declined: "You said no",
  declinedText: (/** @type {string} */ server) => `not allowed through ${server}, and you are not asked about the whole folder again`,
  saidNo: "you said no",
};
