// The state of protection in words. Pure functions.

import { count } from "./words.js";

/** @typedef {import("./types.js").Snapshot} Snapshot */

/**
 * Returns the icon, title and sentence of the home page.
 * @param {Snapshot} snapshot
 * @returns {{ mood: "protecting" | "part" | "asking" | "lockdown" | "open" | "degraded", title: string, text: string }}
 */
export function protectionState({ status, sessions, waiting, clients, recent, changed_servers }) {
  if (status.protection === "degraded" && status.troubles.length === 0 && changed_servers.length > 0) {
    return { mood: "degraded", title: `${count(changed_servers.length, "server")} changed`, text: "Decide what happens to its permissions. Everything else is protected as before." };
  }
  if (status.protection === "degraded") {
    return { mood: "degraded", title: "Something is wrong", text: "Calls that cannot be checked or recorded are denied until this is fixed." };
  }
  if (status.lockdown) {
    return { mood: "lockdown", title: "Locked down", text: "Everything that would ask you is denied. Your permissions and rules still apply." };
  }
  if (waiting.length > 0) {
    return { mood: "asking", title: `${count(waiting.length, "question")} for you`, text: "Nothing happens until you answer. No answer means no." };
  }
  if (sessions.length === 0) {
    return clients.length === 0 && recent.length === 0
      ? { mood: "open", title: "Nothing is protected yet", text: "No agent has started a server through IronCurtain. Connect a client." }
      : { mood: "open", title: "No agent is connected", text: "Agents that start their servers through IronCurtain are listed here." };
  }
  const open = sessions.filter((session) => !session.sandboxed && !session.remote).length;
  const who = `${count(sessions.length, "session")} connected.`;
  if (open > 0) {
    return { mood: "part", title: "Partly protected", text: `${who} ${count(open, "server")} not sandboxed.` };
  }
  return { mood: "protecting", title: "Protecting", text: `${who} Agents can reach only what you granted and what your rules allow.` };
}

/**
 * Returns the line below the navigation, with a distinct symbol for each state.
 * @param {Snapshot} snapshot
 */
export function stateLine(snapshot) {
  const { mood, title } = protectionState(snapshot);
  if (mood === "asking") return `? ${count(snapshot.waiting.length, "question")} waiting`;
  return `${{ protecting: "\u2713", part: "\u26a0", lockdown: "\u2715", open: "\u25cb", degraded: "\u26a0" }[mood]} ${title}`;
}
