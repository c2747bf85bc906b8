// The state of protection in words. Pure functions.
//
// - Protection is claimed only for what was checked. The sentence for each state names every known way around
//   IronCurtain.

import { FRAME } from "./texts/frame.js";
import { HOME } from "./texts/home.js";
import { byAgent } from "./ways_around.js";

/** @typedef {import("./types.js").Snapshot} Snapshot */
/** @typedef {import("./status_icon.js").Mood} Mood */

/**
 * Returns the icon, the label, the title of the home page and a sentence for the state.
 * @param {Snapshot} snapshot
 * @param {import("./ways_around.js").WayAround[]} ways
 * @param {string[] | null} unchecked Agents whose settings could not be read, or null if none could be.
 * @returns {{ mood: Mood, word: string, title: string, text: string, warning: string }} `warning` names the ways around IronCurtain.
 */
export function protectionState(snapshot, ways, unchecked) {
  const unknown = unchecked === null ? HOME.uncheckedAll : unchecked.length > 0 ? HOME.unchecked(unchecked) : "";
  return { ...stateOf(snapshot, ways, unknown !== ""), warning: [...waysInWords(ways), unknown].filter(Boolean).join(" ") };
}

/**
 * @param {Snapshot} snapshot
 * @param {import("./ways_around.js").WayAround[]} ways
 * @param {boolean} isUnchecked
 * @returns {{ mood: Mood, word: string, title: string, text: string }}
 */
function stateOf({ status, sessions, waiting, clients, recent, changed_servers, changed_tools }, ways, isUnchecked) {
  const changed = new Set([...changed_servers, ...changed_tools]).size;
  if (status.protection === "degraded" && status.troubles.length === 0 && changed > 0) {
    const word = FRAME.changed(changed);
    return { mood: "degraded", word, title: word, text: HOME.changedText };
  }
  if (status.protection === "degraded") return { mood: "degraded", word: FRAME.wrong, title: FRAME.wrong, text: HOME.wrongText };
  if (status.lockdown) return { mood: "lockdown", word: FRAME.lockedDown, title: FRAME.lockedDown, text: HOME.lockedText };
  if (sessions.length === 0 && ways.length > 0) return { mood: "open", word: FRAME.notProtected, title: HOME.bypassOnly(ways.length), text: "" };
  if (sessions.length === 0) {
    const word = clients.length === 0 && recent.length === 0 ? FRAME.notProtected : FRAME.noAgent;
    return { mood: "open", word, title: word, text: "" };
  }
  if (ways.length > 0) return { mood: "part", word: FRAME.partly, title: HOME.except(ways.length), text: "" };
  if (isUnchecked) return { mood: "part", word: FRAME.unchecked, title: FRAME.unchecked, text: "" };
  return { mood: waiting.length > 0 ? "asking" : "protecting", word: FRAME.protected, title: FRAME.protected, text: "" };
}

/** @param {import("./ways_around.js").WayAround[]} ways */
function waysInWords(ways) {
  const [here, remote] = [byAgent(ways.filter((way) => !way.isRemote)), byAgent(ways.filter((way) => way.isRemote))];
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
