// Texts of the frame: the state of protection, the pages and the lockdown.

import { count } from "../words.js";

export const FRAME = {
  title: (/** @type {string} */ page) => `${page} - IronCurtain`,
  pages: { home: "Home", activity: "Activity", agents: "Agents", permissions: "Permissions", servers: "Servers", rules: "Rules", settings: "Settings", welcome: "First steps" },
  protected: "Protected",
  partly: "Partly protected",
  notProtected: "Not protected",
  noAgent: "No agent connected",
  lockedDown: "Locked down",
  unchecked: "Not fully checked",
  wrong: "Something is wrong",
  notConnected: "Not connected",
  changed: (/** @type {number} */ n) => `${count(n, "server")} changed`,
  agents: (/** @type {number} */ n) => count(n, "agent"),
  asking: (/** @type {number} */ n) => `${n} asking`,
  alert: "needs you",
  unreachableTitle: "IronCurtain is not responding",
  unreachableText: "This window cannot show its state until it responds. Quit it from the tray and start it again.",
  noAnswer: "No answer for 10 seconds.",
  pageFailed: "This page cannot be shown. Restart IronCurtain, and report this if it happens again.",
  lockDown: "Lock down",
  lockDownMore: "More ways to lock down",
  locking: "Locking\u2026",
  notLocked: "Not locked down",
  endLockdown: "End lockdown",
  ending: "Ending\u2026",
  ended: "Lockdown ended",
  notEnded: "Not ended",
  lockDownAndEnd: "Lock down and end all sessions",
  lockDownAndEndSays: "All servers are stopped and their sessions' permissions end. Agents that restart a server can do only what rules and permanent permissions allow.",
};
