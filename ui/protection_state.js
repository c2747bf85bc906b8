// The state of protection in words. Pure functions.
//
// - Protection is claimed only for what was checked. The sentence for each state names every known bypass of
//   IronCurtain.

import { FRAME } from "./texts/frame.js";
import { HOME } from "./texts/home.js";
import { byAgent } from "./bypasses.js";

/** @typedef {import("./types.js").Snapshot} Snapshot */
/** @typedef {import("./status_icon.js").Mood} Mood */

/**
 * Returns the icon, the label, the title of the home page and a sentence for the state.
 * @param {Snapshot} snapshot
 * @param {import("./bypasses.js").Bypass[]} bypasses
 * @param {string[] | null} unchecked Agents whose settings could not be read, or null if none could be.
 * @returns {{ mood: Mood, word: string, title: string, text: string, warning: string }} `warning` names the bypasses of IronCurtain.
 */
export function protectionState(snapshot, bypasses, unchecked) {
  const unknown = unchecked === null ? HOME.uncheckedAll : unchecked.length > 0 ? HOME.unchecked(unchecked) : "";
  return { ...stateOf(snapshot, bypasses, unknown !== ""), warning: [...describeBypasses(bypasses), unknown].filter(Boolean).join(" ") };
}

/**
 * @param {Snapshot} snapshot
 * @param {import("./bypasses.js").Bypass[]} bypasses
 * @param {boolean} isUnchecked
 * @returns {{ mood: Mood, word: string, title: string, text: string }}
 */
function stateOf({ status, sessions, waiting, clients, recent, changed_servers, changed_tools }, bypasses, isUnchecked) {
  const changed = new Set([...changed_servers, ...changed_tools]).size;
  if (status.protection === "degraded" && status.troubles.length === 0 && changed > 0) {
    const word = FRAME.changed(changed);
    return { mood: "degraded", word, title: word, text: HOME.changedText };
  }
  if (status.protection === "degraded") return { mood: "degraded", word: FRAME.wrong, title: FRAME.wrong, text: HOME.wrongText };
  if (status.lockdown) return { mood: "lockdown", word: FRAME.lockedDown, title: FRAME.lockedDown, text: HOME.lockedText };
  if (sessions.length === 0 && bypasses.length > 0) return { mood: "open", word: FRAME.notProtected, title: HOME.bypassOnly(bypasses.length), text: "" };
  if (sessions.length === 0) {
    const word = clients.length === 0 && recent.length === 0 ? FRAME.notProtected : FRAME.noAgent;
    return { mood: "open", word, title: word, text: "" };
  }
  if (bypasses.length > 0) return { mood: "part", word: FRAME.partly, title: HOME.except(bypasses.length), text: "" };
  if (isUnchecked) return { mood: "part", word: FRAME.unchecked, title: FRAME.unchecked, text: "" };
  return { mood: waiting.length > 0 ? "asking" : "protecting", word: FRAME.protected, title: FRAME.protected, text: "" };
}

/** @param {import("./bypasses.js").Bypass[]} bypasses */
function describeBypasses(bypasses) {
  const [here, remote] = [byAgent(bypasses.filter((bypass) => !bypass.isRemote)), byAgent(bypasses.filter((bypass) => bypass.isRemote))];
  return [here.length > 0 ? HOME.reachAll(here) : "", remote.length > 0 ? HOME.direct(remote) : ""];
}

/**
 * Returns the line below the state, with the numbers of agents and questions.
 * @param {Pick<Snapshot, "sessions" | "waiting">} snapshot
 */
export function connectedLine({ sessions, waiting }) {
  const agents = new Set(sessions.map((one) => one.client.name)).size;
  return [agents > 0 ? FRAME.agents(agents) : "", waiting.length > 0 ? FRAME.asking(waiting.length) : ""].filter(Boolean).join(" \u00b7 ");
}
