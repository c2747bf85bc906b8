// The state of protection in words. Pure functions.

import { FRAME } from "./texts/frame.js";
import { HOME } from "./texts/home.js";

/** @typedef {import("./types.js").Snapshot} Snapshot */
/** @typedef {import("./status_icon.js").Mood} Mood */

/** Returns the number of servers in use that have no sandbox. @param {import("./types.js").Session[]} sessions */
export const unsandboxed = (sessions) => new Set(sessions.filter((one) => !one.sandboxed && !one.remote).map((one) => one.server)).size;

/**
 * Returns the icon, the label, the title of the home page and a sentence for the state.
 * @param {Snapshot} snapshot
 * @returns {{ mood: Mood, word: string, title: string, text: string }}
 */
export function protectionState({ status, sessions, waiting, clients, recent, changed_servers, changed_tools }) {
  const changed = new Set([...changed_servers, ...changed_tools]).size;
  if (status.protection === "degraded" && status.troubles.length === 0 && changed > 0) {
    const word = FRAME.changed(changed);
    return { mood: "degraded", word, title: word, text: HOME.changedText };
  }
  if (status.protection === "degraded") return { mood: "degraded", word: FRAME.wrong, title: FRAME.wrong, text: HOME.wrongText };
  if (status.lockdown) return { mood: "lockdown", word: FRAME.lockedDown, title: FRAME.lockedDown, text: HOME.lockedText };
  if (sessions.length === 0) {
    const word = clients.length === 0 && recent.length === 0 ? FRAME.notProtected : FRAME.noAgent;
    return { mood: "open", word, title: word, text: "" };
  }
  const open = unsandboxed(sessions);
  if (open > 0) return { mood: "part", word: FRAME.partly, title: HOME.except(open), text: "" };
  return { mood: waiting.length > 0 ? "asking" : "protecting", word: FRAME.protected, title: FRAME.protected, text: "" };
}

/**
 * Returns the line below the state, with the number of agents and of questions.
 * @param {Pick<Snapshot, "sessions" | "waiting">} snapshot
 */
export function connectedLine({ sessions, waiting }) {
  const agents = new Set(sessions.map((one) => one.client.name)).size;
  return [agents > 0 ? FRAME.agents(agents) : "", waiting.length > 0 ? FRAME.asking(waiting.length) : ""].filter(Boolean).join(" \u00b7 ");
}
