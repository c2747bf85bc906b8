// Texts of the question page, besides those that the app sends.

/** @type {[import("../types.js").Reach, (denial: string) => string][]} */
export const DENIALS = [
  ["call", () => "Deny this call"],
  ["waiting", () => "Deny this call and everything else the agent is waiting for"],
  ["session", (denial) => `Deny ${denial} until this session ends`],
  ["pause", () => "Deny, and pause the agent until you resume it"],
];

export const QUESTION = {
  details: "All details",
  answer: "Your answer",
  denials: "More ways to deny",
  note: "Message to the agent",
  deny: "Deny",
  more: (/** @type {number} */ n) => `${n} more waiting`,
  outcome: (/** @type {string} */ outcome) => `\u2192 ${outcome}`,
};
